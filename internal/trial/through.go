package trial

import (
	"slices"

	"linerate/bpf"
	"linerate/internal/budget"
)

// routed tells whether a router stands between the ends: then not every frame
// that left must arrive, and not every frame that arrives left here.
func (r *running) routed() bool {
	return r.both() && r.spec.Action == Verify && r.spec.Via != nil && r.spec.Via.Gateway.IsValid()
}

// ours tells of a reason for leaving a frame to the stack whether the frame has
// a tag of the run: nobody listens to its queue, or others were asked for.
func ours(reason string) bool {
	switch bpf.Reason(reason) {
	case bpf.ReasonNoQueue, bpf.ReasonNoSocket, bpf.ReasonNotMatched:
		return true
	}
	return false
}

// throughRows say what a device under test did at the wire. Its counters are not
// in hand: what it lost is what the sequence numbers miss and no counter of ours
// names, and what it sent of its own is what arrived and is not the run's. The
// counters of both devices have to agree with that.
func (r *running) throughRows(b *builder) {
	if !r.routed() {
		return
	}
	rest := b.rows[b.wire:]
	w := &builder{}
	if r.trace != nil {
		w.port(budget.Wire, budget.Loss, budget.RowStackTx, r.stackTx(), "tracepoint", "net_dev_xmit", "for the device under test, or lost in it like the rest")
	}
	r.answerRow(w, budget.Wire, budget.Loss)
	w.port(budget.Wire, budget.Loss, budget.RowDUTLost, r.lostBetween(rest), "account", "sequence", "not in a device of this host")
	t := r.out.Rx.Totals
	own := r.passedOf(false) + t.OtherRun + t.Untagged + t.Unreadable + t.Corrupt - t.CorruptIdentified
	w.port(budget.Wire, budget.Gain, budget.RowDUTOwn, r.verified(own), "bpf", "passed; foreign", "ARP, neighbour discovery, and what others sent")
	b.rows = slices.Insert(b.rows, b.wire, w.rows...)
}

// passedOf counts the frames left to the stack that are the run's, or not.
func (r *running) passedOf(run bool) (n uint64) {
	for q, now := range r.last.program.Passed {
		for reason, frames := range now {
			if ours(reason) == run {
				n += frames - r.base.program.Passed[q][reason]
			}
		}
	}
	return n
}

// lostBetween counts the frames, END frames too, that left here and have not
// arrived, by their sequence numbers, less those that a counter of the receiver
// names. Nil: not known.
func (r *running) lostBetween(rows []budget.Row) *uint64 {
	var sent uint64
	for _, q := range r.out.Tx.Queues {
		sent += q.Submitted - min(q.Submitted, q.Held+q.Invalid+q.Refused)
	}
	if r.out.Tx.RefusedUnknown {
		if r.out.TxDropped == nil {
			return nil
		}
		sent -= min(sent, *r.out.TxDropped)
	}
	t := r.out.Rx.Totals
	found := t.Distinct + t.TooLate + t.CorruptIdentified + t.EndFrames + r.passedOf(true)
	for _, row := range rows {
		after := slices.Contains([]budget.Boundary{budget.Wire, budget.RxDriver, budget.RxSocket}, row.Boundary)
		if after && row.Kind == budget.Loss && row.Frames != nil {
			found += *row.Frames
		}
	}
	return r.verified(sent - min(sent, found))
}
