package pcap

import (
	"linerate/internal/wire"
)

// Source is one worker's frames of a replay, in the order of the file. It
// belongs to that worker's goroutine.
type Source interface {
	// Share is how many frames a loop has, and all of them; 0 of all: no end.
	Share() (loop, all uint64)
	// MaxLen is the longest frame.
	MaxLen() wire.BufLen
	// Ready is how many frames Batch can give now, at most most.
	Ready(most int) int
	// Due is how many of the frames next in line, at most most, have their time
	// up so many ns after the start, and the time of the one after them.
	Due(sinceNs int64, most int) (n int, nextNs int64)
	// Batch gives the next frames, at least one if any is ready and at most n.
	// They are read only, and valid until the next call.
	Batch(n int) [][]byte
	// Done says that there is none left.
	Done() bool
	// Err is why there is none left, if it was not the end.
	Err() error
}

// Sources gives each worker its frames from the start. Close ends what is left
// of the last ones.
func (p *Replay) Sources() []Source {
	var out []Source
	for i, share := range p.Shares {
		if !p.cfg.Stream {
			m := &memory{frames: p.loaded[i], lapNs: p.lapNs, loops: p.cfg.Loops, longest: wire.BufLen(p.Longest.Len)}
			m.done = len(m.data) == 0
			out = append(out, m)
			continue
		}
		s := newStreamed(p, i, share)
		p.open = append(p.open, s)
		out = append(out, s)
	}
	return out
}

// Starved is how often a worker found that the disk had not delivered yet.
func (p *Replay) Starved() (n uint64) {
	for _, s := range p.open {
		n += s.starved
	}
	return n
}

// Close ends the reading of streamed sources. It may be called twice.
func (p *Replay) Close() {
	for _, s := range p.open {
		s.close()
	}
}

// never is the time of a frame that does not come.
const never = int64(^uint64(0) >> 1)

// memory is a preloaded Source.
type memory struct {
	frames
	lapNs   int64
	loops   uint64 // 0: without end
	longest wire.BufLen

	pos  int
	lap  uint64
	base int64 // when this loop began, ns after the start
	done bool
}

func (m *memory) Share() (loop, all uint64) {
	return uint64(len(m.data)), uint64(len(m.data)) * m.loops
}

func (m *memory) MaxLen() wire.BufLen { return m.longest }

func (m *memory) Done() bool { return m.done }

func (m *memory) Err() error { return nil }

func (m *memory) Ready(most int) int {
	if m.done {
		return 0
	}
	if m.lap+1 == m.loops {
		return min(most, len(m.data)-m.pos)
	}
	return most
}

func (m *memory) Due(since int64, most int) (n int, next int64) {
	if m.done {
		return 0, never
	}
	at := m.at[m.pos:]
	for n < len(at) && n < most && m.base+at[n] <= since {
		n++
	}
	switch {
	case n < len(at):
		return n, m.base + at[n]
	case m.lap+1 == m.loops:
		return n, never
	}
	return n, m.base + m.lapNs + m.at[0]
}

func (m *memory) Batch(n int) [][]byte {
	if m.done {
		return nil
	}
	out := m.data[m.pos:min(m.pos+n, len(m.data))]
	if m.pos += len(out); m.pos == len(m.data) {
		m.pos = 0
		m.lap++
		m.base += m.lapNs
		m.done = m.lap == m.loops
	}
	return out
}
