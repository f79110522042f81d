package stream

import (
	"linerate/internal/frame"
	"linerate/internal/wire"
)

// Writer sends one worker's share of a stream: of Workers workers, worker i has
// the frames i, i + Workers, ... It has the methods of frame.Writer. It belongs
// to one goroutine.
type Writer struct {
	b         *Builder
	k, stride uint64
	seq, ends uint64
}

// NewWriter makes the Writer of one of the workers that share the stream.
func NewWriter(s *Stream, c Config, workers int) *Writer {
	return &Writer{b: NewBuilder(s, c), k: uint64(c.Worker), stride: uint64(max(1, workers))}
}

// Next writes the next frame into buf and returns its length, 0 if buf is
// shorter than MaxLen. What the buffer held before does not matter.
func (w *Writer) Next(buf []byte, _ wire.BufLen, nowNs uint64) wire.BufLen {
	n := w.b.Build(buf, w.k, w.seq, nowNs)
	if n != 0 {
		w.k += w.stride
		w.seq++
	}
	return n
}

// End writes an END frame with the count sent, 0 if the stream has no tag.
func (w *Writer) End(buf []byte, sent, nowNs uint64) wire.BufLen {
	w.ends++
	return w.b.BuildEnd(buf, w.ends-1, sent, nowNs)
}

// Space is the sequence space of the frames.
func (w *Writer) Space() frame.Space { return w.b.tag.Space }

// Seq is the number of frames written, and so the next sequence number.
func (w *Writer) Seq() uint64 { return w.seq }

// MaxLen is the least length of a buffer.
func (w *Writer) MaxLen() wire.BufLen { return w.b.max }
