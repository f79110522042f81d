package engine

import (
	"testing"
	"time"
)

// batches are frames at times, all of 64 bytes.
type batches []struct{ at, frames uint64 }

func rate(warmup time.Duration, all batches) Rated {
	r := rating{warmup: warmup}
	for _, b := range all {
		r.add(int64(b.at), b.frames, 64*b.frames)
	}
	return r.Rated
}

func TestRatingLeavesTheWarmUpOut(t *testing.T) {
	// A slow start, then 10 frames every 10 ms: 1,000 a second.
	slow := batches{{1e9, 1}, {2e9, 1}}
	for at := uint64(3e9); at <= 4e9; at += 1e7 {
		slow = append(slow, struct{ at, frames uint64 }{at, 10})
	}
	for _, c := range []struct {
		warmup time.Duration
		first  int64
		frames uint64
		pps    float64
	}{
		{0, 1e9, 1012, 1011.0 / 3},
		{time.Second, 2e9, 1011, 1010.0 / 2},
		{2 * time.Second, 3e9, 1010, 1000},
		{2*time.Second + 5*time.Millisecond, 3.01e9, 1000, 1000},
	} {
		r := rate(c.warmup, slow)
		pps, ok := r.PPS(0)
		if r.FirstNs != c.first || r.LastNs != 4e9 || r.Frames != c.frames || pps != c.pps || !ok {
			t.Errorf("warm-up %s: %+v, %f pps", c.warmup, r, pps)
		}
		if r.MeanFrame() != 64 {
			t.Errorf("warm-up %s: mean frame %f", c.warmup, r.MeanFrame())
		}
	}
	if r := rate(time.Hour, slow); r != (Rated{}) {
		t.Errorf("all of it is warm-up: %+v", r)
	}
}

func TestRatedNeedsASpan(t *testing.T) {
	for name, all := range map[string]batches{
		"nothing": nil, "one batch": {{5, 9}}, "one time": {{5, 9}, {5, 9}}, "empty batches": {{5, 9}, {6, 0}, {7, 0}},
	} {
		if pps, ok := rate(0, all).PPS(0); ok {
			t.Errorf("%s: %f pps", name, pps)
		}
	}
	r := rate(0, batches{{0, 1}, {1e9, 10}})
	if pps, ok := r.PPS(4); !ok || pps != 6 {
		t.Errorf("10 frames in a second, 4 of them not sent: %f pps", pps)
	}
	if pps, ok := r.PPS(11); ok {
		t.Errorf("more refused than written: %f pps", pps)
	}
	if (Rated{}).MeanFrame() != 0 {
		t.Error("no frames have a mean length")
	}
}

func TestRatedJoin(t *testing.T) {
	early, late := rate(0, batches{{10, 3}, {20, 1}}), rate(0, batches{{12, 4}, {40, 5}})
	want := Rated{FirstNs: 10, LastNs: 40, First: 3, Frames: 13, Bytes: 13 * 64}
	for _, got := range []Rated{early.Join(late), late.Join(early), (Rated{}).Join(early).Join(Rated{}).Join(late)} {
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// A counter that is read every 50 ms cannot tell when its last frames came.
func TestTickRating(t *testing.T) {
	var r tickRating
	for i, frames := range []uint64{0, 0, 30, 130, 230, 230, 330, 340, 340, 340} {
		r.tick(int64(i+1)*50e6, dropped{frames, 100 * frames})
	}
	// From the look at 30 frames to the one at 330.
	if pps, ok := r.PPS(0); !ok || pps != 300/0.2 || r.MeanFrame() != 100 {
		t.Errorf("%f pps, %+v", pps, r.Rated)
	}
}
