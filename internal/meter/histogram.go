package meter

import (
	"fmt"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// longest is the largest time that a Histogram tells apart, nanoseconds: twice
// the turn of the tag's clock is never reached.
const longest = int64(600e9)

// Histogram is a distribution of times in nanoseconds, to three significant
// digits. It belongs to one goroutine; Merge joins those of several.
type Histogram struct {
	hdr      *hdrhistogram.Histogram
	min, max int64
	sum      float64
	clipped  uint64
	negative uint64
}

// NewHistogram returns an empty histogram of about 270 KB.
func NewHistogram() *Histogram {
	return &Histogram{hdr: hdrhistogram.New(1, longest, 3), min: math.MaxInt64}
}

// Record adds one time. It does not allocate. A negative time, which only a
// faulty clock makes, is left out and counted by Negative; one over ten minutes
// is recorded as ten minutes and counted by Clipped.
func (h *Histogram) Record(ns int64) {
	if ns < 0 {
		h.negative++
		return
	}
	h.min, h.max = min(h.min, ns), max(h.max, ns)
	h.sum += float64(ns)
	if ns > longest {
		h.clipped++
		ns = longest
	}
	// The only error is a value out of range, and ns is in it.
	_ = h.hdr.RecordValue(ns)
}

// Merge adds everything that other recorded. The error is that of a histogram of
// another range, which this package does not make.
func (h *Histogram) Merge(other *Histogram) error {
	if dropped := h.hdr.Merge(other.hdr); dropped != 0 {
		return fmt.Errorf("merge histogram: %d values out of range", dropped)
	}
	h.min, h.max = min(h.min, other.min), max(h.max, other.max)
	h.sum += other.sum
	h.clipped += other.clipped
	h.negative += other.negative
	return nil
}

// Count is the number of times recorded.
func (h *Histogram) Count() uint64 { return uint64(h.hdr.TotalCount()) }

// Clipped is how many of them were over the range.
func (h *Histogram) Clipped() uint64 { return h.clipped }

// Negative is how many times were left out for being negative.
func (h *Histogram) Negative() uint64 { return h.negative }

// Quantile is the time that the share q (0 to 1) of all times does not exceed;
// 0 when there are none.
func (h *Histogram) Quantile(q float64) int64 {
	if h.Count() == 0 {
		return 0
	}
	// The histogram answers with the upper end of a cell; the extremes are exact.
	return min(max(h.hdr.ValueAtQuantile(q*100), h.min), h.max)
}

// Summary is the shape of a distribution, nanoseconds.
type Summary struct {
	Count                         uint64
	Min, P50, P90, P99, P999, Max int64
	Mean                          float64
}

// Summary describes what was recorded; ok is false when that is nothing.
func (h *Histogram) Summary() (s Summary, ok bool) {
	if h.Count() == 0 {
		return Summary{}, false
	}
	return Summary{
		Count: h.Count(), Min: h.min, Max: h.max, Mean: h.sum / float64(h.Count()),
		P50: h.Quantile(0.5), P90: h.Quantile(0.9), P99: h.Quantile(0.99), P999: h.Quantile(0.999),
	}, true
}

// Reset forgets everything.
func (h *Histogram) Reset() {
	h.hdr.Reset()
	*h = Histogram{hdr: h.hdr, min: math.MaxInt64}
}
