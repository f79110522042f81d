package engine

import (
	"linerate/internal/frame"
	"linerate/internal/wire"
	"linerate/xsk"
)

// fakePath is a ring of so many entries and a kernel that answers each kick by
// a script; after it, every kick sends everything.
type fakePath struct {
	size, ring, done int
	script           []func(*fakePath) xsk.KickResult
	kicks            int
	quiet            bool // the kernel needs no kick
	freshened        int
	invalids         uint64
	ends             []uint64 // counts of the END frames
	endsBehind       int      // END frames written while data frames stood in the ring
}

func (p *fakePath) fresh()                   { p.freshened++ }
func (p *fakePath) longest() wire.BufLen     { return 1514 }
func (p *fakePath) room() int                { return p.size - p.ring - p.done }
func (p *fakePath) needsKick() bool          { return !p.quiet }
func (p *fakePath) held() uint64             { return uint64(p.ring) }
func (p *fakePath) invalid() (uint64, error) { return p.invalids, nil }

func (p *fakePath) put(fw *frame.Writer, n int, now int64) (int, uint64) {
	n = min(n, p.room())
	b := make([]byte, fw.MaxLen())
	var bytes uint64
	for range n {
		bytes += uint64(fw.Next(b, 0, uint64(now))) + wire.FCSBytes
	}
	p.ring += n
	return n, bytes
}

func (p *fakePath) putEnd(_ *frame.Writer, sent uint64, _ int64) (uint64, bool) {
	if p.room() == 0 {
		return 0, false
	}
	if p.ring > 0 {
		p.endsBehind++
	}
	p.ends = append(p.ends, sent)
	p.ring++
	return 64, true
}

func (p *fakePath) reap() int {
	n := p.done
	p.done = 0
	return n
}

func (p *fakePath) kick() xsk.KickResult {
	p.kicks++
	if len(p.script) > 0 {
		answer := p.script[0]
		p.script = p.script[1:]
		return answer(p)
	}
	return p.send(p.ring, xsk.KickDone)
}

// send completes n frames and answers with a code.
func (p *fakePath) send(n int, code xsk.KickCode) xsk.KickResult {
	p.ring -= n
	p.done += n
	return xsk.KickResult{Code: code}
}

func answers(n int, code xsk.KickCode) func(*fakePath) xsk.KickResult {
	return func(p *fakePath) xsk.KickResult { return p.send(min(n, p.ring), code) }
}

func repeat(times int, f func(*fakePath) xsk.KickResult) (all []func(*fakePath) xsk.KickResult) {
	for range times {
		all = append(all, f)
	}
	return all
}
