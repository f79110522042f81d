package trial

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"linerate/bpf"
	"linerate/internal/budget"
	"linerate/internal/engine"
	"linerate/internal/frame"
	"linerate/internal/meter"
)

// Remark is something the reader of an outcome must know, by its code in the
// table of package report, with the arguments of its text.
type Remark struct {
	Code string
	Args []any
}

// Event is something that happened to an interface during the trial.
type Event struct {
	Endpoint string
	What     string
}

// Outcome is one trial as it was measured.
type Outcome struct {
	SentByStream []uint64 // with Spec.Streams; nil: not known
	Spec         Spec
	Started      time.Time
	Measured     time.Duration // the offer's own time, without settling
	Interrupted  bool

	TxGranted, RxGranted engine.Granted
	Tx                   engine.TxResult
	Rx                   engine.RxResult

	Captured *Captured // nil: nothing was to be kept

	Rows      []budget.Row
	Closed    budget.Result
	Frames    budget.Frames
	Verdict   budget.Verdict
	Reasons   []budget.Reason
	Rate      Rate
	Predicted map[int]uint64 // frames that each receive queue should have got, nil: not known
	TxDropped *uint64        // what the sending device says it refused
	Busy      *float64       // core seconds, nil: unknown
	Events    []Event
	Stopped   []Event // workers that met an error they could not go on from
	Remarks   []Remark

	unreadable error // what could not be read at the end

	drift []drift // a port never came to rest
}

// Rate is what the trial did per second; nil is not known.
type Rate struct {
	OfferedPPS   *float64
	TxPPS        *float64
	RxPPS        *float64
	TxMeanFrame  float64 // bytes with FCS
	RxMeanFrame  float64
	PacingError  *float64 // relative error of the rate asked for, outside stalls
	StallCount   uint64
	StallNs      int64
	LongestStall int64
	Overfull     uint64 // windows of 100 us over the pacing rule, outside stalls and catching up
}

func (o *Outcome) warn(code string, args ...any) {
	o.Remarks = append(o.Remarks, Remark{code, args})
}

// finish closes the books: rows, rates, summary and verdict.
func (r *running) finish() {
	o := r.out
	o.Busy = r.last.cpu.busySince(r.base.cpu)
	if r.tx != nil {
		d, _ := r.last.tx.DeviceTxDropped().Sub(r.base.tx.DeviceTxDropped())
		o.TxDropped = d.Frames
	}
	o.Rows = r.rows()
	events := r.budgetEvents()
	o.Rows = budget.Hold(o.Rows, events...)
	o.Closed = budget.Close(o.Rows, events...)
	if unverified := "verify/" + budget.RowReceived; r.spec.Action != Verify && r.tx != nil && slices.Equal(o.Closed.Unknown, []string{unverified}) {
		// Nothing is verified on request: the budget ends where the frames do.
		o.Closed.Unexplained = &o.Closed.Known
	}
	o.Frames = budget.Tally(o.Rows, r.sequence(), o.Closed)
	o.SentByStream = r.sentByStream(r.offered)
	r.foreignLost()
	r.addPassed()
	r.rates()
	r.remarks()
	j := budget.Judgement{
		Frames: o.Frames, MaxLoss: r.spec.MaxLoss, RateError: o.Rate.PacingError,
		MaxRateError: r.spec.MaxRateError, OneEnd: r.tx == nil || r.rx == nil || r.spec.Action != Verify,
		Known: o.Closed.Known, Invalid: r.invalid(),
	}
	o.Verdict, o.Reasons = budget.Judge(j)
}

// addPassed counts as foreign what the program left to the stack, by reason:
// those frames never reach the verifier.
func (r *running) addPassed() {
	if r.rx == nil {
		return
	}
	f := &r.out.Frames.Foreign
	for q, now := range r.last.program.Passed {
		for reason, n := range now {
			n -= r.base.program.Passed[q][reason]
			to := &f.Untagged
			if ours(reason) {
				continue
			}
			switch bpf.Reason(reason) {
			case bpf.ReasonOtherRun:
				to = &f.OtherRun
			case bpf.ReasonTruncated, bpf.ReasonBadIP, bpf.ReasonBadUDPLength, bpf.ReasonExtChain, bpf.ReasonVLANDepth:
				to = &f.Unreadable
			}
			if *to != nil {
				n += **to
			}
			*to = &n
		}
	}
}

// sequence is what the account knows beyond the rows.
func (r *running) sequence() budget.Sequence {
	var s budget.Sequence
	for _, q := range r.out.Tx.Queues {
		s.EndRefused += q.RefusedEnd
	}
	if r.rx == nil || r.spec.Action != Verify || len(r.out.Rx.Queues) == 0 {
		return s
	}
	t := r.out.Rx.Totals
	s.Reordered, s.ReorderedBetween = &t.Reordered, &t.ReorderedBetween
	var sent uint64
	ended := len(r.out.Rx.Spaces) > 0
	for _, sp := range r.out.Rx.Spaces {
		s.CorruptIdentified += sp.Corrupt
		ended = ended && sp.EndSeen
		sent += sp.EndSent
	}
	if ended {
		s.EndSent = &sent
	}
	return s
}

// deviceRing is the most that stands in the rings of a device queue: 256 in
// veth's pointer ring, 512 descriptors in ixgbe's (IXGBE_DEFAULT_TXD and _RXD).
const deviceRing = 512

// budgetEvents are the events that emptied rings, with the most that stood in
// them: our own TX and RX rings and those of the device.
func (r *running) budgetEvents() []budget.Event {
	var out []budget.Event
	var limit uint64
	if r.spec.Tx != nil {
		limit += uint64(len(r.spec.Tx.Queues) * (deviceRing + r.spec.Budget))
	}
	if r.spec.Rx != nil {
		limit += uint64(len(r.spec.Rx.Queues) * (deviceRing + r.spec.RingSize))
	}
	for _, e := range r.out.Events {
		out = append(out, budget.Event{Kind: e.What, Limit: limit})
		limit = 0 // two events empty the same rings only once
	}
	return out
}

// rates computes frames per second, warm-up left out, from the counts and the
// clocks of the workers.
func (r *running) rates() {
	o := r.out
	o.Measured = time.Duration(max(0, r.overNs-r.startNs))
	if r.tx != nil {
		o.Measured = time.Duration(max(0, o.Tx.EndNs-r.startNs))
		r.txRate(o.Tx.Rated)
	}
	o.Rate.RxMeanFrame = o.Rx.Rated.MeanFrame()
	if pps, ok := o.Rx.Rated.PPS(0); ok {
		o.Rate.RxPPS = &pps
	}
}

func (r *running) txRate(rated engine.Rated) {
	o := r.out
	var excused []meter.Span
	queues := make([]engine.TxQueue, 0, len(o.Tx.Queues))
	for _, q := range o.Tx.Queues {
		o.Rate.StallCount += q.Stalls.Count
		excused = append(excused, q.Excused...)
		o.Rate.StallNs += int64(q.Stalls.Sum)
		o.Rate.LongestStall = max(o.Rate.LongestStall, int64(q.Stalls.Longest))
		queues = append(queues, afterWarmup(q))
	}
	o.Rate.Overfull = o.Rx.OverfullMore + meter.Unexcused(o.Rx.Overfull, excused)
	if asked, err := r.spec.PPS(); err == nil && asked > 0 {
		p := float64(asked)
		o.Rate.OfferedPPS = &p
	}
	o.Rate.TxMeanFrame = rated.MeanFrame()
	if refused, known := r.refusedSinceWarmup(); known {
		if pps, ok := rated.PPS(refused); ok {
			o.Rate.TxPPS = &pps
		}
	}
	if o.Rate.OfferedPPS != nil {
		o.Rate.PacingError = pacingErrorOf(queues, r.shares(*o.Rate.OfferedPPS))
	} else {
		o.Rate.PacingError = timingError(queues)
	}
}

// refusedSinceWarmup counts the frames that were written and not sent behind
// the warm-up. An engine that does not count refusals itself cannot tell when
// they were.
func (r *running) refusedSinceWarmup() (n uint64, known bool) {
	all := r.out.Frames.Refused
	if all == nil {
		return 0, false
	}
	if r.out.Tx.RefusedUnknown {
		return *all, *all == 0 || r.spec.Warmup == 0
	}
	for _, q := range r.out.Tx.Queues {
		n += q.Warmup.Refused
	}
	return *all - min(n, *all), true
}

// invalid lists what makes the measurement worthless.
func (r *running) invalid() []budget.Reason {
	var out []budget.Reason
	for _, e := range r.out.Events {
		out = append(out, budget.Reason{Code: "link_event", Text: fmt.Sprintf("%s: %s", e.Endpoint, e.What)})
	}
	for _, e := range r.out.Stopped {
		out = append(out, budget.Reason{Code: "worker_stopped", Text: fmt.Sprintf("%s: %s", e.Endpoint, e.What)})
	}
	if n := r.notTaken(); n > 0 {
		out = append(out, budget.Reason{Code: "live_not_taken", Text: fmt.Sprintf("%s took none of %d live frames", r.spec.Tx.Endpoint, n)})
	}
	if n := r.backward(); n > 0 {
		out = append(out, budget.Reason{Code: "clock_trouble", Text: fmt.Sprintf("%d frames arrived before they were sent", n)})
	}
	if err := r.out.unreadable; err != nil {
		out = append(out, budget.Reason{Code: "run_broken", Text: strings.ReplaceAll(err.Error(), "\n", "; ")})
	}
	for _, d := range r.out.drift {
		out = append(out, budget.Reason{Code: "counter_drift", Text: "the port did not come to rest " + d.when + ": other traffic moves its counters"})
	}
	if r.tx == nil && r.spec.Action == Verify && (r.spec.Foreign == "" || len(r.out.Rx.Spaces) == 0) {
		if ended, all := r.endedSpaces(); ended < all || all == 0 {
			out = append(out, budget.Reason{Code: "tail_unknown", Text: "no END frame: how many frames were sent is not known"})
		}
	}
	return out
}

func (r *running) endedSpaces() (ended, all int) {
	for _, s := range r.out.Rx.Spaces {
		all++
		if s.EndSeen {
			ended++
		}
	}
	return ended, all
}

// lostAtLeast is what the sequences prove lost when the tail is unknown.
func (r *running) lostAtLeast() uint64 {
	var lost uint64
	for _, s := range r.out.Rx.Spaces {
		seen := s.Distinct + s.Corrupt + s.TooLate
		expected := s.EndSent
		if !s.EndSeen {
			expected = s.HighestSeq + 1
			if s.Distinct == 0 {
				expected = 0
			}
		}
		lost += expected - min(expected, seen)
	}
	return lost
}

// remarks collects what a reader must know.
func (r *running) remarks() {
	o := r.out
	if r.spec.LossAnyByRate {
		o.warn("loss_any", "--rate max")
	}
	r.remarkReplay()
	if r.tx != nil && r.spec.Replay == nil && r.spec.Streams == nil && r.spec.Stream.NeedsShort() {
		long, _ := frame.LeastFrame(r.spec.Stream.Stack)
		o.warn("short_tag", fmt.Sprintf("a frame of %d bytes", r.spec.Stream.Sizes.Min()), long)
	}
	if r.spec.Action == Count || r.spec.Action == Drop {
		o.warn("loss_not_judged", r.spec.Action)
	}
	for _, e := range o.Events {
		o.warn("link_event", e.What, e.Endpoint)
	}
	for _, e := range o.Stopped {
		o.warn("worker_stopped", e.Endpoint, e.What)
	}
	if err := o.unreadable; err != nil {
		o.warn("run_broken", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if r.tx == nil && r.spec.Action == Verify && r.spec.Foreign == "" {
		if ended, all := r.endedSpaces(); ended < all || all == 0 {
			o.warn("tail_unknown", r.lostAtLeast(), all-ended, all)
		}
	}
	if o.Rate.StallCount > 0 {
		o.warn("stalls", o.Rate.StallCount, time.Duration(o.Rate.StallNs).Round(time.Microsecond), time.Duration(o.Rate.LongestStall).Round(time.Microsecond))
	}
	if o.Rate.Overfull > 0 {
		o.warn("burst", o.Rate.Overfull)
	}
	r.remarkNumbers()
	r.remarkRows()
	r.remarkDrops()
	r.remarkAnswers()
	r.remarkQueues()
	for _, f := range o.Closed.Faults {
		o.warn("counter_fault", f.Counter, f.Frames)
	}
	if o.Rx.Totals.Untagged+o.Rx.Totals.Unreadable > 0 && o.Frames.Lost != nil && *o.Frames.Lost > 0 {
		o.warn("corrupt_identity", min(o.Rx.Totals.Untagged+o.Rx.Totals.Unreadable, *o.Frames.Lost))
	}
	for _, d := range o.drift {
		o.warn("counter_drift", d.when, d.frames)
	}
	if o.Interrupted {
		o.warn("interrupted", o.Measured.Round(time.Millisecond))
	}
	for _, g := range []struct {
		e *End
		g engine.Granted
	}{{r.spec.Tx, o.TxGranted}, {r.spec.Rx, o.RxGranted}} {
		for _, note := range g.g.Notes {
			o.warn(note.Code, note.Args...)
		}
	}
}
