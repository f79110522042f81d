package meter

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestHistogramAgainstSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 1e9), 1, 300).Draw(t, "values")
		h := NewHistogram()
		for _, v := range values {
			h.Record(v)
		}
		slices.Sort(values)
		s, ok := h.Summary()
		if !ok || s.Count != uint64(len(values)) || s.Min != values[0] || s.Max != values[len(values)-1] {
			t.Fatalf("%+v, %v for %v", s, ok, values)
		}
		for _, q := range []struct {
			share float64
			got   int64
		}{{0.5, s.P50}, {0.9, s.P90}, {0.99, s.P99}, {0.999, s.P999}} {
			// The histogram rounds the rank, so a neighbour is as good.
			at := q.share * float64(len(values))
			low := values[max(int(math.Floor(at))-1, 0)]
			high := values[min(int(math.Ceil(at)), len(values)-1)]
			if float64(q.got) < float64(low)*0.999-1 || float64(q.got) > float64(high)*1.001+1 {
				t.Fatalf("p%v = %d, want %d to %d", q.share*100, q.got, low, high)
			}
		}
	})
}

func TestHistogramEdges(t *testing.T) {
	h := NewHistogram()
	if _, ok := h.Summary(); ok || h.Quantile(0.5) != 0 {
		t.Error("an empty histogram has a summary")
	}
	h.Record(-1)
	if h.Count() != 0 || h.Negative() != 1 {
		t.Errorf("negative: count %d, negative %d", h.Count(), h.Negative())
	}
	h.Record(longest + 5)
	if h.Count() != 1 || h.Clipped() != 1 {
		t.Errorf("too long: count %d, clipped %d", h.Count(), h.Clipped())
	}
	if s, _ := h.Summary(); s.Max != longest+5 {
		t.Errorf("max %d, want the true one", s.Max)
	}
	h.Reset()
	if h.Count() != 0 || h.Clipped() != 0 || h.Negative() != 0 {
		t.Error("reset leaves something")
	}
	h.Record(1_234_567) // in a cell that is wider than 1 ns
	if s, _ := h.Summary(); s.Min != 1_234_567 || s.Max != s.Min || s.Mean != 1_234_567 || s.P50 != s.Min {
		t.Errorf("after reset %+v", s)
	}
}

// Each time lies in its cell, and no cell is wider than a thousandth of it.
func TestHistogramCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := rapid.Int64Range(0, longest).Draw(t, "ns") >> rapid.IntRange(0, 40).Draw(t, "shift")
		c := cell(ns)
		if c < 0 || c >= cells || ns > top(c) || (c > 0 && ns <= top(c-1)) || float64(top(c)-ns) > float64(ns)/1000 {
			t.Fatalf("%d ns is in cell %d, which ends at %d", ns, c, top(c))
		}
	})
}

// What another counted by cells is what recording comes to, to three digits.
func TestHistogramAddCell(t *testing.T) {
	a, b := NewHistogram(), NewHistogram()
	for _, ns := range []int64{0, 5, 4096, 1_234_567, longest} {
		a.Record(ns)
		a.Record(ns)
		b.AddCell(cell(ns), 2)
	}
	b.AddCell(-1, 1)
	b.AddCell(cells, 1)
	b.AddCell(7, 0)
	want, _ := a.Summary()
	got, ok := b.Summary()
	near := func(x, y float64) bool { return math.Abs(x-y) <= y/1000 }
	if !ok || got.Count != want.Count || got.Min != want.Min || !near(float64(got.Max), float64(want.Max)) ||
		!near(got.Mean, want.Mean) || !near(float64(got.P50), float64(want.P50)) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestHistogramMerge(t *testing.T) {
	a, b, both := NewHistogram(), NewHistogram(), NewHistogram()
	for i := range int64(1000) {
		into := a
		if i%3 == 0 {
			into = b
		}
		into.Record(i * i)
		both.Record(i * i)
	}
	b.Record(-5)
	both.Record(-5)
	a.Merge(b)
	got, _ := a.Summary()
	want, _ := both.Summary()
	if got != want || a.Negative() != 1 {
		t.Errorf("merged %+v, want %+v", got, want)
	}
}

func TestRecordDoesNotAllocate(t *testing.T) {
	h, g := NewHistogram(), NewGaps(1e6)
	ns := int64(0)
	if n := testing.AllocsPerRun(10000, func() {
		ns += 10 // ten times too fast: every window is over
		h.Record(ns)
		h.Record(-1)
		h.Record(math.MaxInt64)
		g.Add(ns)
	}); n != 0 {
		t.Errorf("%v allocations per frame", n)
	}
}
