package frame

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// QueueAccount is one receive queue's hand on an Account. It belongs to one
// goroutine, which calls Publish once per batch: nothing is seen by others, or
// by Totals, before.
type QueueAccount struct {
	account *Account
	id      int
	last    *view // the view used last: most often the next one too
	byKey   [MaxWorkers]*[MaxStreams]*view
	dirty   []*view // changed since Publish

	corrupt, otherRun, untagged, unreadable tally

	mu    sync.Mutex // over views: the owner adds, Account reads
	views []*view

	_ [64]byte // keeps the next queue's fields off this cache line
}

// tally is a counter of the owner's, and what others see of it.
type tally struct {
	n    uint64
	seen atomic.Uint64
}

func (t *tally) publish() {
	if t.n != t.seen.Load() {
		t.seen.Store(t.n)
	}
}

// view is what one queue knows of one space. Numbers of one window word are
// gathered here and entered into the shared window together: one atomic
// operation for up to 32 frames.
type view struct {
	win     *window
	space   Space
	next    uint64 // newest sequence number seen on this queue, + 1
	horizon uint64 // numbers under it are plausible without asking
	lowest  uint64 // least distinct number
	key     uint64 // seq/32 of the gathered word
	set     uint32 // gathered numbers,
	behind  uint32 // those of them that came reordered,
	between uint32 // or reordered between queues only
	again   uint64 // duplicates among themselves
	dirty   bool
	counts  counts

	mu        sync.Mutex // over the published copies
	published counts
	pubLowest uint64
}

// Queue gives receive queue id its QueueAccount; a second call with the same
// id gives the same one.
func (a *Account) Queue(id int) *QueueAccount {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, q := range a.queues {
		if q.id == id {
			return q
		}
	}
	q := &QueueAccount{account: a, id: id, last: &view{}}
	a.queues = append(a.queues, q)
	return q
}

// Add counts a good frame. A short tag holds 32 bits of the sequence number:
// they are completed to the number nearest to the newest one of the space, so
// that a wrap (after 4.3 thousand million frames, 288 s at 14.88 Mpps) goes
// unnoticed. A sink that joins after a wrap counts from the 32 bits up.
func (q *QueueAccount) Add(t *Tag, short bool) {
	v := q.last
	if v.win == nil || v.space != t.Space {
		if v = q.view(t.Space); v == nil {
			return
		}
	}
	if !v.dirty {
		q.touch(v)
	}
	seq := t.Seq
	if short {
		seq = nearest(uint32(seq), max(v.next, v.win.next.Load()))
	}
	if seq >= v.horizon && !v.plausible(seq) {
		return
	}
	v.add(seq)
}

// add counts a plausible number.
func (v *view) add(seq uint64) {
	if seq/wordBits != v.key || v.set == 0 {
		v.flush()
		v.key = seq / wordBits
	}
	bit := uint32(1) << (seq % wordBits)
	if v.set&bit != 0 {
		v.again++
		return
	}
	v.set |= bit
	switch {
	case seq < v.next:
		v.behind |= bit
		return
	case seq+1 < v.win.next.Load():
		v.between |= bit
	}
	v.next = seq + 1
}

// flush enters the gathered numbers into the window.
func (v *view) flush() {
	if v.set == 0 {
		return
	}
	had, late := v.win.mark(v.key*wordBits, v.set)
	fresh := v.set &^ had
	switch {
	case late:
		v.counts.late += uint64(bits.OnesCount32(v.set)) + v.again
	default:
		v.counts.distinct += uint64(bits.OnesCount32(fresh))
		v.counts.duplicate += uint64(bits.OnesCount32(v.set&had)) + v.again
		v.counts.reordered += uint64(bits.OnesCount32(v.behind & fresh))
		v.counts.between += uint64(bits.OnesCount32(v.between & fresh))
		if fresh != 0 {
			v.lowest = min(v.lowest, v.key*wordBits+uint64(bits.TrailingZeros32(fresh)))
		}
	}
	v.set, v.behind, v.between, v.again = 0, 0, 0, 0
}

// plausible decides about a number at or beyond the horizon, and moves that.
func (v *view) plausible(seq uint64) bool {
	v.horizon = max(v.next, v.win.next.Load()) + maxJump
	if seq < v.horizon {
		return true
	}
	ok, other, held := v.win.judgeJump(seq)
	v.addHeld(other, held)
	return ok
}

// addHeld counts n frames of a number that was implausible for a while.
func (v *view) addHeld(seq uint64, n int) {
	for range n {
		v.add(seq)
	}
}

// nearest completes a 32-bit number to the one nearest to next.
func nearest(seq uint32, next uint64) uint64 {
	n := int64(next) + int64(int32(seq-uint32(next)))
	if n < 0 {
		return uint64(seq)
	}
	return uint64(n)
}

// touch has Publish look at the view.
func (q *QueueAccount) touch(v *view) {
	if !v.dirty {
		v.dirty = true
		q.dirty = append(q.dirty, v)
	}
}

// view finds or makes the queue's view of a space; nil if the account has no
// room for the space.
func (q *QueueAccount) view(s Space) *view {
	row := q.byKey[s.Worker%MaxWorkers]
	if row == nil {
		row = new([MaxStreams]*view)
		q.byKey[s.Worker%MaxWorkers] = row
	}
	v := row[s.Stream%MaxStreams]
	if v == nil {
		w := q.account.window(s)
		if w == nil {
			q.account.mu.Lock()
			q.account.noRoom++
			q.account.mu.Unlock()
			return nil
		}
		v = &view{win: w, space: w.space, lowest: ^uint64(0), pubLowest: ^uint64(0)}
		row[s.Stream%MaxStreams] = v
		q.mu.Lock()
		q.views = append(q.views, v)
		q.mu.Unlock()
	}
	q.last = v
	return v
}

// End counts an END frame (ClassEnd) and takes the count sent from it.
func (q *QueueAccount) End(t *Tag) {
	v := q.view(t.Space)
	if v == nil {
		return
	}
	q.touch(v)
	v.addHeld(v.win.sawEnd(t.Seq))
}

// Corrupt counts a corrupt frame; identified: its space is known
// (Checked.Identified).
func (q *QueueAccount) Corrupt(identified bool, s Space) {
	if identified {
		if v := q.view(s); v != nil {
			v.counts.corrupt++
			q.touch(v)
		}
		return
	}
	q.corrupt.n++
}

// Foreign counts a frame that is not of this run: ClassOtherRun, ClassUntagged
// or ClassUnreadable.
func (q *QueueAccount) Foreign(c Class) {
	switch c {
	case ClassOtherRun:
		q.otherRun.n++
	case ClassUntagged:
		q.untagged.n++
	default:
		q.unreadable.n++
	}
}

// Count counts a checked frame by its class.
func (q *QueueAccount) Count(c *Checked) {
	switch c.Class {
	case ClassGood:
		q.Add(&c.Tag, c.Short)
	case ClassEnd:
		q.End(&c.Tag)
	case ClassCorrupt:
		q.Corrupt(c.Identified, c.Tag.Space)
	default:
		q.Foreign(c.Class)
	}
}

// Publish shows the others what was counted. Call it after every batch, and
// after the last.
func (q *QueueAccount) Publish() {
	for _, v := range q.dirty {
		v.flush()
		v.dirty = false
		v.win.advance(v.next)
		v.horizon = max(v.next, v.win.next.Load()) + maxJump
		v.mu.Lock()
		v.published, v.pubLowest = v.counts, v.lowest
		v.mu.Unlock()
	}
	q.dirty = q.dirty[:0]
	q.corrupt.publish()
	q.otherRun.publish()
	q.untagged.publish()
	q.unreadable.publish()
}

// addTo adds what the queue published.
func (v *view) addTo(t *SpaceTotals) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := &v.published
	t.Distinct += c.distinct
	t.Duplicate += c.duplicate
	t.Reordered += c.reordered
	t.ReorderedBetween += c.between
	t.TooLate += c.late
	t.Corrupt += c.corrupt
	t.LowestSeq = min(t.LowestSeq, v.pubLowest)
}
