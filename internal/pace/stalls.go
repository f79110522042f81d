package pace

import "time"

// Stalls is how often, and for how long, a worker was off-CPU: gaps of more
// than StallAfter in which it should have been sending.
type Stalls struct {
	Count   uint64
	Sum     time.Duration
	Longest time.Duration
	Long    time.Duration // of Sum: in gaps over LongStall
}

// LongStall is more than any one call into the kernel takes: in a longer gap
// the worker was stopped, whatever the scheduler says.
const LongStall = 20 * time.Millisecond

// add counts the gap if it is a stall.
func (s *Stalls) add(from, to int64) {
	gap := time.Duration(to - from)
	if gap <= StallAfter {
		return
	}
	s.Count++
	s.Sum += gap
	s.Longest = max(s.Longest, gap)
	if gap > LongStall {
		s.Long += gap
	}
}

// NoteStall counts a gap that Due cannot see, if it is over StallAfter. Gaps
// between calls of Due, less the time in which no permit was due, are counted
// by Due itself.
func (p *Pacer) NoteStall(from, to int64) { p.stalls.add(from, to) }

// Stalls returns the stalls so far.
func (p *Pacer) Stalls() Stalls { return p.stalls }
