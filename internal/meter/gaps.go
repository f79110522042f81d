package meter

import "slices"

// WindowNs is the window in which pacing is judged, nanoseconds.
const WindowNs = 100_000

// keptWindows bounds the overfull windows that are remembered one by one.
const keptWindows = 4096

// Span is a stretch of CLOCK_MONOTONIC, nanoseconds.
type Span struct{ FromNs, ToNs int64 }

// overlaps reports whether s and other share a moment.
func (s Span) overlaps(other Span) bool { return s.FromNs <= other.ToNs && other.FromNs <= s.ToNs }

// Gaps measures how evenly frames arrive at one queue. It belongs to one
// goroutine.
type Gaps struct {
	gaps *Histogram
	// limit is how many frames any window may hold.
	limit int
	// recent holds the last times of arrival, oldest at head: what a window
	// that ends now can hold, and some more to say by how much it is over.
	recent   []int64
	head     int
	size     int
	last     int64
	started  bool
	backward uint64
	worst    int
	over     []Span
	dropped  uint64
}

// NewGaps returns a measure for frames that should arrive at pps frames per
// second at this queue; 0 sets no limit on a window.
func NewGaps(pps float64) *Gaps {
	g := &Gaps{gaps: NewHistogram()}
	if pps > 0 {
		g.limit = int(pps*WindowNs/1e9) + 2
		g.recent = make([]int64, 2*g.limit+64)
		g.over = make([]Span, 0, keptWindows)
	}
	return g
}

// Add takes the arrival of the next frame, nanoseconds of CLOCK_MONOTONIC in
// order of arrival. It does not allocate.
func (g *Gaps) Add(ns int64) {
	if !g.started {
		g.started, g.last = true, ns
		g.window(ns)
		return
	}
	if ns < g.last {
		g.backward++
		return
	}
	g.gaps.Record(ns - g.last)
	g.last = ns
	g.window(ns)
}

// window checks the window of 100 us that ends with the frame at ns.
func (g *Gaps) window(ns int64) {
	if g.limit == 0 {
		return
	}
	for g.size > 0 && ns-g.recent[g.head] >= WindowNs {
		g.drop()
	}
	if g.size == len(g.recent) {
		g.drop()
	}
	tail := g.head + g.size
	if tail >= len(g.recent) { // no %: a division a frame
		tail -= len(g.recent)
	}
	g.recent[tail] = ns
	g.size++
	g.worst = max(g.worst, g.size)
	if g.size <= g.limit {
		return
	}
	if len(g.over) == cap(g.over) {
		g.dropped++
		return
	}
	g.over = append(g.over, Span{g.recent[g.head], ns})
}

func (g *Gaps) drop() {
	if g.head++; g.head == len(g.recent) {
		g.head = 0
	}
	g.size--
}

// Limit is how many frames a window may hold: rate x 100 us + 2; 0 is no limit.
func (g *Gaps) Limit() int { return g.limit }

// Worst is the most frames that any window held. Far above the limit, over
// 2 x Limit + 64, it stops counting.
func (g *Gaps) Worst() int { return g.worst }

// Backward counts arrivals earlier than the one before; they are left out.
func (g *Gaps) Backward() uint64 { return g.backward }

// Gaps is the distribution of the times between frames.
func (g *Gaps) Gaps() *Histogram { return g.gaps }

// Windows are the overfull windows, in order, and the number of those past the
// first 4096 that were not kept.
func (g *Gaps) Windows() (kept []Span, dropped uint64) { return g.over, g.dropped }

// Over counts the frames that ended a window over the limit, outside the spans
// in which catching up is allowed. Windows past the first 4096 count always.
func (g *Gaps) Over(allowed ...Span) uint64 { return g.dropped + Unexcused(g.over, allowed) }

// Unexcused counts the windows that share no moment with an allowed span.
func Unexcused(windows, allowed []Span) (n uint64) {
	for _, w := range windows {
		if !slices.ContainsFunc(allowed, w.overlaps) {
			n++
		}
	}
	return n
}
