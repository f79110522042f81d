package engine

import "time"

// Rated is the part of a trial that its rates are made of: what came behind
// the warm-up, END frames and frames of others not included. What stands at
// FirstNs itself came before the span, so PPS leaves it out.
type Rated struct {
	FirstNs, LastNs int64  // CLOCK_MONOTONIC of the first and the last batch
	First           uint64 // frames of the first batch
	Frames          uint64 // and of all
	Bytes           uint64 // L2 bytes with FCS of all
}

// PPS is the rate, and over so many frames less for each of them; ok is false
// when there is no span, or nothing in it.
func (r Rated) PPS(less uint64) (pps float64, ok bool) {
	if r.LastNs <= r.FirstNs || r.Frames <= r.First+less {
		return 0, false
	}
	return float64(r.Frames-r.First-less) * 1e9 / float64(r.LastNs-r.FirstNs), true
}

// MeanFrame is the mean length in bytes with FCS, 0 without frames.
func (r Rated) MeanFrame() float64 {
	if r.Frames == 0 {
		return 0
	}
	return float64(r.Bytes) / float64(r.Frames)
}

// Join is both queues together.
func (r Rated) Join(o Rated) Rated {
	switch {
	case o.Frames == 0:
		return r
	case r.Frames == 0:
		return o
	}
	if o.FirstNs < r.FirstNs {
		r.FirstNs, r.First = o.FirstNs, o.First
	}
	r.LastNs = max(r.LastNs, o.LastNs)
	r.Frames += o.Frames
	r.Bytes += o.Bytes
	return r
}

// rating collects a Rated, once a batch. It belongs to one worker.
type rating struct {
	Rated
	warmup time.Duration // counted from the first batch
	fromNs int64         // the first batch, and the warm-up
}

// add enters a batch; began says that it is the first behind the warm-up.
func (r *rating) add(nowNs int64, frames, bytes uint64) (began bool) {
	if frames == 0 {
		return false
	}
	if r.fromNs == 0 {
		r.fromNs = nowNs + int64(r.warmup)
	}
	if nowNs < r.fromNs {
		return false
	}
	if r.Frames == 0 {
		r.FirstNs, r.First, began = nowNs, frames, true
	}
	r.LastNs = nowNs
	r.Frames += frames
	r.Bytes += bytes
	return began
}
