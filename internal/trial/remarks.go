package trial

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"linerate/bpf"
	"linerate/internal/budget"
	"linerate/internal/engine"
	"linerate/internal/wire"
)

// both says that one clock stamped and received the frames.
func (r *running) both() bool { return r.spec.Tx != nil && r.spec.Rx != nil }

// backward counts frames that arrived before they were sent.
func (r *running) backward() uint64 {
	if !r.both() {
		return 0 // two hosts, two clocks
	}
	return r.out.Rx.ClockTrouble
}

// remarkNumbers says what the numbers themselves do not show.
func (r *running) remarkNumbers() {
	o := r.out
	if n := r.backward(); n > 0 {
		o.warn("clock_trouble", fmt.Sprintf("went backwards: %d frames arrived before they were sent", n))
	}
	var own uint64
	for _, q := range o.Tx.Queues {
		own += q.OwnQueue
	}
	if own > 0 && r.both() && o.Rx.Latency != nil {
		o.warn("own_queue_latency")
	}
	if n := o.Rx.Totals.OtherRun + o.Rx.Totals.Untagged + o.Rx.Totals.Unreadable; n > 0 {
		o.warn("foreign", n)
	}
	if o.Rx.Unjudged > 0 {
		o.warn("unjudged", o.Rx.Unjudged)
	}
	if r.spec.Tx == nil {
		return
	}
	if e := o.Rate.PacingError; e != nil && !(math.Abs(*e) <= r.spec.MaxRateError) {
		o.warn("rate_error", *e*100)
	}
	if n := r.notTaken(); n > 0 {
		o.warn("live_not_taken", r.spec.Tx.Endpoint, n)
	}
	speed := r.spec.Tx.Port.Speed
	if pps := o.Rate.TxPPS; pps != nil && speed > 0 {
		if l1 := *pps * 8 * (o.Rate.TxMeanFrame + wire.L1OverheadBytes); l1 > float64(speed) {
			o.warn("line_rate_exceeded", wire.FormatBits(wire.BitsPerSec(l1)), r.spec.Tx.Endpoint)
		}
	}
}

// notTaken is how many live frames were made for a device that took none at
// all, 0 if it took any: the kernel tells nobody who does not trace.
func (r *running) notTaken() (made uint64) {
	if r.spec.Tx == nil || r.spec.Tx.Engine != engine.Live {
		return 0
	}
	for _, row := range r.out.Rows {
		if row.Frames == nil || *row.Frames == 0 {
			continue
		}
		switch row.Row {
		case budget.RowSubmitted:
			made += *row.Frames
		case budget.RowDeviceTx, budget.RowDeviceRefused:
			return 0
		}
	}
	return made
}

// remarkRows says what the rows mean for the reader who looks at the sum only.
func (r *running) remarkRows() {
	o := r.out
	var held uint64
	for _, row := range o.Rows {
		switch {
		case row.Frames == nil && !row.Exact:
			o.warn("inexact_row", row.Row, strings.TrimPrefix(row.Note, "exact only if "))
		case row.Frames == nil:
		case row.Kind == budget.Held:
			held += *row.Frames
		case row.Row == budget.RowStackTx && row.Kind == budget.Gain && *row.Frames > 0:
			o.warn("stack_traffic", *row.Frames)
		}
	}
	if held > 0 && len(o.Events) > 0 {
		o.warn("held_frames", held, o.Events[0].What)
	}
	if r.both() && r.spec.Action == Verify && o.Closed.Unexplained == nil {
		o.warn("stage_without_counter", strings.Join(o.Closed.Unknown, ", "))
	}
}

// remarkDrops names why the kernel discarded frames, where that was asked for.
func (r *running) remarkDrops() {
	if r.trace == nil {
		return
	}
	if n, err := r.trace.Missed(); err != nil || n > 0 {
		r.out.warn("tracepoints_unavailable", fmt.Sprintf("%d events found no room (%v)", n, err))
	}
	if !r.spec.TraceDrops {
		return
	}
	for _, e := range r.ends() {
		var b bytes.Buffer
		var n uint64
		reasons := r.traced(e, bpf.PointKfreeSkb)
		for _, reason := range slices.Sorted(maps.Keys(reasons)) {
			if d := reasons[reason].Dropped; d > 0 {
				fmt.Fprintf(&b, ", %s %d", reason, d)
				n += d
			}
		}
		if n > 0 {
			r.out.warn("kernel_drops", n, e.Endpoint, strings.TrimPrefix(b.String(), ", "))
		}
	}
}
