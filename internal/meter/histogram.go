package meter

import (
	"math"
	"math/bits"
)

const (
	// longest is the largest time that a Histogram tells apart, nanoseconds: twice
	// the turn of the tag's clock is never reached.
	longest = int64(600e9)
	// halfBits cells, log2, divide each octave: a cell is at most 1/1024 of the
	// time it stands for. Times under 2^(halfBits+1) ns have a cell each.
	halfBits = 10
	cells    = (41 - halfBits) << halfBits // longest is under 2^40
)

// Histogram is a distribution of times in nanoseconds, to three significant
// digits: linear cells within each power of two, as HdrHistogram has them. It is
// ours because a frame is recorded twice, and the library's call was half of
// what verifying a frame cost. It belongs to one goroutine; Merge joins those of
// several.
type Histogram struct {
	counts   []uint64
	count    uint64
	min, max int64
	sum      float64
	clipped  uint64
	negative uint64
}

// NewHistogram returns an empty histogram of about 250 KB.
func NewHistogram() *Histogram {
	return &Histogram{counts: make([]uint64, cells), min: math.MaxInt64}
}

// cell is the index of the cell that holds a time of 0 to longest.
func cell(ns int64) int {
	shift := max(bits.Len64(uint64(ns))-halfBits-1, 0)
	return shift<<halfBits + int(uint64(ns)>>shift)
}

// top is the largest time in a cell.
func top(cell int) int64 {
	shift := max(cell>>halfBits-1, 0)
	return int64(cell-shift<<halfBits+1)<<shift - 1
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
	h.count++
	h.counts[cell(ns)]++
}

// AddCell adds n times that another counted in a cell of the same index, as if
// all were at its end: extremes and mean are good to three digits.
func (h *Histogram) AddCell(cell int, n uint64) {
	if cell < 0 || cell >= len(h.counts) || n == 0 {
		return
	}
	h.min, h.max = min(h.min, top(cell)), max(h.max, top(cell))
	h.sum += float64(top(cell)) * float64(n)
	h.counts[cell] += n
	h.count += n
}

// Merge adds everything that other recorded.
func (h *Histogram) Merge(other *Histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.count += other.count
	h.min, h.max = min(h.min, other.min), max(h.max, other.max)
	h.sum += other.sum
	h.clipped += other.clipped
	h.negative += other.negative
}

// Count is the number of times recorded.
func (h *Histogram) Count() uint64 { return h.count }

// Clipped is how many of them were over the range.
func (h *Histogram) Clipped() uint64 { return h.clipped }

// Negative is how many times were left out for being negative.
func (h *Histogram) Negative() uint64 { return h.negative }

// Quantile is the time that the share q (0 to 1) of all times does not exceed;
// 0 when there are none.
func (h *Histogram) Quantile(q float64) int64 {
	if h.count == 0 {
		return 0
	}
	rank := uint64(math.Ceil(q * float64(h.count)))
	seen := uint64(0)
	for i, n := range h.counts {
		if seen += n; n > 0 && seen >= rank {
			// A cell answers with its upper end; the extremes are exact.
			return min(max(top(i), h.min), h.max)
		}
	}
	return h.max
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
	clear(h.counts)
	*h = Histogram{counts: h.counts, min: math.MaxInt64}
}
