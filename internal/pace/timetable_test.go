package pace

import (
	"testing"
	"time"
)

// row is frames at given times.
type row []int64

func (r *row) Due(since int64, most int) (n int, next int64) {
	for n < len(*r) && n < most && (*r)[n] <= since {
		n++
	}
	if n == len(*r) {
		return n, never
	}
	return n, (*r)[n]
}

func (r *row) Done() bool { return len(*r) == 0 }

func TestTimetable(t *testing.T) {
	const start = 1000
	ms := int64(time.Millisecond)
	r := &row{0, 0, ms, 2 * ms, 50 * ms, 60 * ms}
	p := NewTimetable(r)
	p.Start(start)
	for _, c := range []struct {
		at   int64
		most int
		n    int
		next int64
	}{
		{-1, 64, 0, 0}, {0, 64, 2, ms}, {ms - 1, 64, 0, ms}, {2 * ms, 1, 1, 2 * ms}, {2 * ms, 64, 1, 50 * ms},
		{50 * ms, 0, 0, 50 * ms},
	} {
		n, next := p.Due(start+c.at, c.most)
		if n != c.n || next != start+c.next {
			t.Errorf("at %d: %d and then %d, want %d and %d", c.at, n, next-start, c.n, c.next)
		}
		*r = (*r)[n:]
	}
	if p.Stalls().Count != 1 || p.Stalls().Longest != time.Millisecond { // the frame of 1 ms went at 2 ms
		t.Errorf("stalls %+v", p.Stalls())
	}
	p.Finish(start + 55*ms)
	if p.Offered() != 5 || p.Thrown() != 1 || p.Tail() != 1 || !p.Done() {
		t.Errorf("offered %d, thrown %d", p.Offered(), p.Thrown())
	}
	if n, _ := p.Due(start+time.Hour.Nanoseconds(), 64); n != 0 {
		t.Error("grants after the end")
	}
}
