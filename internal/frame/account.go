package frame

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// Window is the number of sequence numbers per space that are remembered one
// by one. A frame up to Window-32 behind the newest of its space is always
// told from a duplicate.
const Window = 1 << 16

// MaxSpaces is the greatest number of sequence spaces of an Account: each
// holds 16 KiB, and forged tags could name 65,536. Frames of further spaces
// are counted as implausible.
const MaxSpaces = 4096

// Account counts what was received: distinct, duplicate, reordered, too late,
// per sequence space (stream, sending worker). Duplicates are judged over all
// receive queues together, reordering within each. Loss is never counted on
// the way: at the end it is the count sent less Distinct.
//
// A sequence number is too late when its place in the window has been taken by
// a newer one; whether it is new or a duplicate is then unknown, and it is
// counted as neither.
//
// Safe for any number of goroutines, each with its own QueueAccount.
type Account struct {
	space  [MaxWorkers]atomic.Pointer[[MaxStreams]atomic.Pointer[window]]
	mu     sync.Mutex // over the rest, and over making spaces
	spaces []*window
	queues []*QueueAccount
	noRoom uint64 // frames of spaces beyond MaxSpaces
}

// NewAccount makes an empty account.
func NewAccount() *Account { return &Account{} }

// window finds or makes the space; nil when there are MaxSpaces already.
func (a *Account) window(s Space) *window {
	worker, stream := s.Worker%MaxWorkers, s.Stream%MaxStreams
	if row := a.space[worker].Load(); row != nil {
		if w := row[stream].Load(); w != nil {
			return w
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	row := a.space[worker].Load()
	if row == nil {
		row = new([MaxStreams]atomic.Pointer[window])
		a.space[worker].Store(row)
	}
	if w := row[stream].Load(); w != nil {
		return w
	}
	if len(a.spaces) == MaxSpaces {
		return nil
	}
	w := &window{space: Space{Worker: worker, Stream: stream}}
	row[stream].Store(w)
	a.spaces = append(a.spaces, w)
	return w
}

// counts is what one queue counted of one space.
type counts struct {
	distinct, duplicate, reordered, between, late, corrupt uint64
}

// SpaceTotals is the account of one sequence space.
type SpaceTotals struct {
	Space
	Distinct         uint64 // frames received, each once
	Duplicate        uint64
	Reordered        uint64 // distinct, behind a newer one of the same space on the same queue
	ReorderedBetween uint64 // distinct, behind a newer one on another queue only
	TooLate          uint64
	Corrupt          uint64 // corrupt, identity kept
	Implausible      uint64 // sequence number out of the world
	LowestSeq        uint64 // of Distinct; meaningless while that is 0
	HighestSeq       uint64
	EndFrames        uint64
	// EndSeen: an END of this space is in, with no frame at or past the count
	// it names. EndSent is that count.
	EndSeen bool
	EndSent uint64
}

// StreamTotals is the sum over a stream's workers. EndSeen: all spaces seen
// have their END.
type StreamTotals struct {
	Stream                                            uint16
	Distinct, Duplicate, Reordered, ReorderedBetween  uint64
	TooLate, Corrupt, Implausible, EndFrames, EndSent uint64
	EndSeen                                           bool
}

// Totals is the sum over everything. Every frame is in exactly one of
// Distinct, Duplicate, TooLate, Corrupt, OtherRun, Untagged, Unreadable and
// EndFrames.
type Totals struct {
	Distinct, Duplicate, Reordered, ReorderedBetween, TooLate uint64
	Corrupt                                                   uint64 // all, Implausible included
	CorruptIdentified                                         uint64 // of Corrupt: identity kept, so the frame is not lost as well
	Implausible                                               uint64 // of Corrupt: checks right, sequence number or space out of the world
	OtherRun, Untagged, Unreadable                            uint64
	EndFrames                                                 uint64
}

// Spaces gives the account of each space, ordered by stream and worker, as
// last published by the queues.
func (a *Account) Spaces() []SpaceTotals {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := make(map[Space]int, len(a.spaces))
	all := make([]SpaceTotals, 0, len(a.spaces))
	slices.SortFunc(a.spaces, func(x, y *window) int {
		return cmp.Or(cmp.Compare(x.space.Stream, y.space.Stream), cmp.Compare(x.space.Worker, y.space.Worker))
	})
	for i, w := range a.spaces {
		at[w.space] = i
		all = append(all, w.totals())
	}
	for _, q := range a.queues {
		q.mu.Lock()
		for _, v := range q.views {
			v.addTo(&all[at[v.win.space]])
		}
		q.mu.Unlock()
	}
	for i := range all {
		if all[i].Distinct == 0 {
			all[i].LowestSeq = 0
		}
	}
	return all
}

// Streams gives the account of each stream, ordered.
func (a *Account) Streams() []StreamTotals { return StreamsOf(a.Spaces()) }

// Totals gives the sums over all spaces and queues, as last published.
func (a *Account) Totals() Totals {
	var t Totals
	for _, s := range a.Spaces() {
		t.AddSpace(s)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	t.Implausible += a.noRoom
	t.Corrupt += a.noRoom
	for _, q := range a.queues {
		t.Corrupt += q.corrupt.seen.Load()
		t.OtherRun += q.otherRun.seen.Load()
		t.Untagged += q.untagged.seen.Load()
		t.Unreadable += q.unreadable.seen.Load()
	}
	return t
}
