package pace

import "testing"

// What was due when the offer ended and nobody took is offered and unsent.
func TestFinishThrowsWhatIsOwed(t *testing.T) {
	for _, c := range []struct {
		name            string
		cfg             Config
		at              int64
		take            int
		granted, thrown uint64
	}{
		{"owed", Config{PPS: 1e6, Workers: 1}, 10_500, 4, 4, 7},
		{"nothing due", Config{PPS: 1e6, Workers: 1}, 0, 1, 1, 0},
		{"the count bounds it", Config{PPS: 1e6, Workers: 1, Count: 6}, 10_500, 4, 4, 2},
		{"unlimited owes nothing", Config{Workers: 1}, 10_500, 4, 4, 0},
		{"before the start", Config{PPS: 1e6, Workers: 1}, -5, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := New(c.cfg)
			p.Start(1_000_000)
			now := 1_000_000 + c.at
			for taken := 0; taken < c.take; {
				n, _ := p.Due(now, 1)
				if n == 0 {
					t.Fatalf("only %d granted", taken)
				}
				taken += n
			}
			p.Finish(now)
			if p.Granted() != c.granted || p.Thrown() != c.thrown {
				t.Errorf("granted %d thrown %d, want %d and %d", p.Granted(), p.Thrown(), c.granted, c.thrown)
			}
			if want := c.thrown; p.Tail() != want {
				t.Errorf("tail %d, want %d", p.Tail(), want)
			}
			if n, _ := p.Due(now+1e9, 10); n != 0 || !p.Done() {
				t.Errorf("grants %d after Finish", n)
			}
		})
	}
}

// A worker that does not come back before the time is up was stalled, from when
// the next permit was due.
func TestFinishNotesTheStall(t *testing.T) {
	p := New(Config{PPS: 1e6, Workers: 1})
	p.Start(0)
	for p.Granted() < 10 {
		p.Due(p.Next(), 1)
	}
	p.Finish(10_000 + 5e6)
	if s := p.Stalls(); s.Count != 1 || s.Sum != 5e6 || s.Longest != 5e6 {
		t.Errorf("stalls %+v, want one of 5 ms", s)
	}
	if p.Tail() != 5001 || p.Tail() != p.Thrown() {
		t.Errorf("tail %d of %d thrown, want 5001", p.Tail(), p.Thrown())
	}
}

// A gap that no call into the kernel explains is told apart.
func TestLongStall(t *testing.T) {
	p := New(Config{PPS: 1e5, Workers: 1})
	p.Start(0)
	for _, now := range []int64{0, 15e6, 100e6} {
		if n, _ := p.Due(now, 1); n != 1 {
			t.Fatalf("%d granted at %d", n, now)
		}
	}
	if s := p.Stalls(); s.Count != 2 || s.Long < LongStall || s.Long >= s.Sum {
		t.Errorf("stalls %+v, want one of two long", s)
	}
}
