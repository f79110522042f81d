package meter

import (
	"testing"

	"pgregory.net/rapid"
)

// overfull counts, by looking at every pair, the frames that end a window of
// 100 us with more than limit frames, and the fullest window.
func overfull(times []int64, limit int) (over uint64, worst int) {
	for i, end := range times {
		n := 0
		for _, ns := range times[:i+1] {
			if end-ns < WindowNs {
				n++
			}
		}
		if n > limit {
			over++
		}
		worst = max(worst, n)
	}
	return over, worst
}

func TestGapsAgainstEveryPair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pps := rapid.SampledFrom([]float64{1e4, 1e5, 2.5e5}).Draw(t, "pps")
		steps := rapid.SliceOfN(rapid.Int64Range(0, int64(2e9/pps)), 1, 80).Draw(t, "steps")
		g := NewGaps(pps)
		if want := int(pps/1e4) + 2; g.Limit() != want {
			t.Fatalf("limit %d, want %d", g.Limit(), want)
		}
		var times []int64
		ns := int64(1e9)
		for _, d := range steps {
			ns += d
			times = append(times, ns)
			g.Add(ns)
		}
		over, worst := overfull(times, g.Limit())
		if g.Over() != over {
			t.Fatalf("%d windows over, want %d", g.Over(), over)
		}
		if worst < 2*g.Limit()+64 && g.Worst() != worst {
			t.Fatalf("worst %d, want %d", g.Worst(), worst)
		}
		if g.Gaps().Count() != uint64(len(times)-1) {
			t.Fatalf("%d gaps of %d frames", g.Gaps().Count(), len(times))
		}
	})
}

func TestGapsEvenStreamIsWithinTheRule(t *testing.T) {
	for _, pps := range []float64{1e3, 1e5, 1e6, 14.88e6} {
		g := NewGaps(pps)
		for i := range 5000 {
			g.Add(int64(float64(i) * 1e9 / pps))
		}
		if g.Over() != 0 || g.Worst() > g.Limit() {
			t.Errorf("%v pps: %d windows over, worst %d of %d", pps, g.Over(), g.Worst(), g.Limit())
		}
	}
}

func TestGapsWindowIsHalfOpen(t *testing.T) {
	g := NewGaps(1e4) // 3 frames in 100 us
	for _, ns := range []int64{0, 1, 2, WindowNs} {
		g.Add(ns)
	}
	if g.Over() != 0 || g.Worst() != 3 {
		t.Errorf("%d over, worst %d: 100 us apart is not one window", g.Over(), g.Worst())
	}
	g.Add(WindowNs) // with 1, 2 and the one before: four
	if g.Over() != 1 || g.Worst() != 4 {
		t.Errorf("%d over, worst %d", g.Over(), g.Worst())
	}
}

func TestGapsExcusesCatchUp(t *testing.T) {
	g := NewGaps(1e4) // 3 frames in 100 us
	for i := range int64(6) {
		g.Add(1_000_000 + i)
	}
	for i := range int64(5) {
		g.Add(9_000_000 + i)
	}
	if g.Over() != 5 {
		t.Fatalf("%d windows over, want 3 and 2", g.Over())
	}
	if n := g.Over(Span{900_000, 1_900_000}); n != 2 {
		t.Errorf("%d windows over outside the first burst, want 2", n)
	}
	if n := g.Over(Span{900_000, 1_900_000}, Span{9_000_002, 9_000_002}); n != 0 {
		t.Errorf("%d windows over outside both, want 0", n)
	}
}

func TestGapsCountsWhatItCannotKeep(t *testing.T) {
	g := NewGaps(1e4)
	const frames = keptWindows + 100
	for i := range int64(frames) {
		g.Add(i)
	}
	want := uint64(frames - g.Limit())
	if g.Over() != want {
		t.Errorf("%d windows over, want %d", g.Over(), want)
	}
	if n := g.Over(Span{0, frames}); n != want-keptWindows {
		t.Errorf("%d windows over that cannot be excused, want %d", n, want-keptWindows)
	}
}

func TestGapsBackwardAndUnlimited(t *testing.T) {
	g := NewGaps(0)
	for _, ns := range []int64{100, 90, 110, 110} {
		g.Add(ns)
	}
	s, ok := g.Gaps().Summary()
	if !ok || s.Count != 2 || s.Min != 0 || s.Max != 10 || g.Backward() != 1 || g.Over() != 0 {
		t.Errorf("%+v, backward %d, over %d", s, g.Backward(), g.Over())
	}
}
