package stream

import (
	"linerate/internal/frame"
	"linerate/internal/wire"
)

// MixWriter sends one worker's share of all streams, in the order of a Mix.
// Every stream counts its frames in a sequence space of its own. It belongs to
// one goroutine.
type MixWriter struct {
	mix      *Mix
	builders []*Builder
	seq      []uint64 // frames written, by stream
	ends     []int    // streams that carry the tag
	total    uint64
	last     int // stream of the last frame
	max      wire.BufLen
}

// NewMixWriter makes the MixWriter of one of the workers that share the
// streams, which are those of a file from the first on. Errors are those of
// NewMix.
func NewMixWriter(streams []*Stream, speed wire.Speed, c Config, workers int) (*MixWriter, error) {
	mix, err := NewMix(streams, speed, int(c.Worker), workers)
	if err != nil {
		return nil, err
	}
	w := &MixWriter{mix: mix, seq: make([]uint64, len(streams))}
	for i, s := range streams {
		mix.plans[i].stream = i
		b := NewBuilder(s, c)
		w.builders = append(w.builders, b)
		w.max = max(w.max, b.max)
		if b.Tagged() {
			w.ends = append(w.ends, i)
		}
	}
	return w, nil
}

// Mix gives the order and the times; only Peek, Unlimited and Duration may be
// called while the MixWriter is in use.
func (w *MixWriter) Mix() *Mix { return w.mix }

// Next writes the next frame into buf and returns its length, 0 if buf is
// shorter than MaxLen or all streams have ended. What the buffer held before
// does not matter. nowNs is the stamp, in ns of CLOCK_MONOTONIC.
func (w *MixWriter) Next(buf []byte, _ wire.BufLen, nowNs uint64) wire.BufLen {
	if len(buf) < int(w.max) {
		return 0
	}
	i, k, _, ok := w.mix.Next()
	if !ok {
		return 0
	}
	n := w.builders[i].Build(buf, k, w.seq[i], nowNs)
	w.seq[i]++
	w.last = i
	w.total++
	return n
}

// Ends is the number of sequence spaces to close: the streams with a tag.
func (w *MixWriter) Ends() int { return len(w.ends) }

// End writes an END frame of space i, under Ends, and returns its length.
// round picks the flow.
func (w *MixWriter) End(buf []byte, i, round int, nowNs uint64) wire.BufLen {
	s := w.ends[i]
	return w.builders[s].BuildEnd(buf, uint64(round), w.seq[s], nowNs)
}

// Space is the sequence space of stream i, and Sent the frames written to it.
func (w *MixWriter) Space(i int) (space frame.Space, sent uint64) {
	return w.builders[i].tag.Space, w.seq[i]
}

// Last is the stream of the frame that Next wrote last.
func (w *MixWriter) Last() int { return w.last }

// Seq is the number of frames written, of all streams.
func (w *MixWriter) Seq() uint64 { return w.total }

// MaxLen is the least length of a buffer.
func (w *MixWriter) MaxLen() wire.BufLen { return w.max }
