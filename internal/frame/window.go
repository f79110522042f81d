package frame

import (
	"sync"
	"sync/atomic"
)

// maxJump is how far a sequence number may run ahead of the newest of its
// space by itself: 70 ms of loss at 14.88 Mpps. A frame beyond is held as
// implausible until a second, different one within Window of it, or an END
// that covers it, bears it out; then it counts as if nothing had been. One
// forged or damaged number therefore changes nothing, and an outage of any
// length costs nothing.
const maxJump = 1 << 20

const (
	wordBits = 32
	words    = Window / wordBits
)

// window is the shared part of one sequence space.
type window struct {
	space Space
	next  atomic.Uint64 // newest sequence number published, + 1; 0 = none
	word  [words]atomic.Uint64

	mu          sync.Mutex // over the rest: seldom used
	held        int        // frames that wait as implausible for another near them,
	heldSeq     uint64     // all of this number
	implausible uint64
	end         uint64 // count sent, by majority of the ENDs
	endVotes    int
	ends        uint64
}

// mark enters the numbers base+i, for each bit i of set, base a multiple of
// 32, and returns those that were there already, and whether the place has
// gone to newer numbers. A word is epoch<<32 | bits: the epoch is the number of
// the window that the bits belong to.
func (w *window) mark(base uint64, set uint32) (had uint32, late bool) {
	p := &w.word[base/wordBits%words]
	epoch := base / Window
	for {
		old := p.Load()
		switch have := old >> 32; {
		case have > epoch:
			return 0, true
		case have == epoch:
			had = uint32(old)
		default:
			had = 0
		}
		if p.CompareAndSwap(old, epoch<<32|uint64(had|set)) {
			return had, false
		}
	}
}

// advance raises next.
func (w *window) advance(next uint64) {
	for {
		old := w.next.Load()
		if old >= next || w.next.CompareAndSwap(old, next) {
			return
		}
	}
}

// judgeJump decides about a number beyond maxJump. With ok it is borne out;
// held is then how many frames of number other were waiting for that.
func (w *window) judgeJump(seq uint64) (ok bool, other uint64, held int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting := w.held > 0
	switch {
	case seq < w.next.Load()+maxJump, w.endVotes > 0 && seq < w.end:
		ok = true
	case waiting && w.heldSeq != seq && within(w.heldSeq, seq):
		w.advance(seq + 1) // the other queues need not ask again
		other, held = w.release()
		ok = true
	case waiting && w.heldSeq == seq:
		w.held++
		w.implausible++
	default:
		w.held, w.heldSeq = 1, seq
		w.implausible++
	}
	return ok, other, held
}

// release gives back the frames held as implausible.
func (w *window) release() (seq uint64, n int) {
	n = w.held
	w.held = 0
	w.implausible -= uint64(n)
	return w.heldSeq, n
}

func within(a, b uint64) bool { return max(a, b)-min(a, b) < Window }

// sawEnd takes one END's vote. The count that has the majority stands: one
// forged END among ten changes nothing. It gives back what it bears out, as
// judgeJump does.
func (w *window) sawEnd(sent uint64) (other uint64, held int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends++
	switch {
	case w.endVotes == 0:
		w.end, w.endVotes = sent, 1
	case w.end == sent:
		w.endVotes++
	default:
		w.endVotes--
		return 0, 0
	}
	if w.held == 0 || w.heldSeq >= sent {
		return 0, 0
	}
	return w.release()
}

func (w *window) totals() SpaceTotals {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := SpaceTotals{Space: w.space, Implausible: w.implausible, EndFrames: w.ends, LowestSeq: ^uint64(0)}
	next := w.next.Load()
	if next != 0 {
		t.HighestSeq = next - 1
	}
	if w.endVotes > 0 && w.end >= next {
		t.EndSeen, t.EndSent = true, w.end
	}
	return t
}
