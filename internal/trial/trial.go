package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"linerate/bpf"
	"linerate/internal/engine"
	"linerate/internal/frame"
	"linerate/internal/meter"
	"linerate/internal/nic"
	"linerate/internal/pcap"
	"linerate/xsk"
)

const (
	carrierWait = 30 * time.Second      // ixgbe re-links for about 10 s after an attach
	leadIn      = 20 * time.Millisecond // from the baselines to the first frame
	endPoll     = 50 * time.Millisecond
	napi        = time.Millisecond      // much longer than the poll that hands a frame over
	quiet       = 50 * time.Millisecond // longer than the gap between two END frames
	eventGrace  = 20 * time.Millisecond // from an event to our hearing of it
)

// Observer is told of the trial's progress once an interval, from the trial's
// own goroutine.
type Observer func(Progress)

// Progress is what has happened since the trial began, and in the last
// interval; a nil end is not in hand.
type Progress struct {
	ElapsedNs    int64
	HasTx, HasRx bool
	Total, Last  meter.Interval
}

// running is the state of one trial; it belongs to the goroutine in Run.
type running struct {
	spec      Spec
	tx        engine.Sender
	rx        engine.Receiver
	trace     *bpf.Trace
	answers   []answering
	base      snapshot
	last      snapshot
	out       *Outcome
	keep      map[int]*pcap.Ring // of a capture, by queue
	observe   Observer
	offered   engine.Offer
	reflector *engine.Reflector
	startNs   int64
	overNs    int64          // when there was no more to wait for, but to settle
	first     meter.Snapshot // at the start
	tick      meter.Snapshot // at the last interval
}

// Run carries out one trial. It returns an outcome whenever anything was
// measured: with the error of a worker that ended early, or without. When ctx
// ends, the trial ends, drains and accounts for what it sent.
func Run(ctx context.Context, spec Spec, observe Observer) (*Outcome, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	r := &running{spec: spec, observe: observe, out: &Outcome{Spec: spec, Started: time.Now()}}
	err := r.open(ctx)
	if err == nil {
		err = r.measure(ctx)
		err = errors.Join(err, r.meet(context.WithoutCancel(ctx), Measured))
	}
	if cerr := r.close(); err == nil {
		err = cerr
	}
	if r.out.Rows == nil {
		return nil, err
	}
	return r.out, err
}

// open attaches both ends and waits until they can carry frames.
func (r *running) open(ctx context.Context) error {
	r.openTrace() // first: it takes a while, in which frames may come already
	r.keep = r.spec.rings()
	var err error
	if r.spec.Rx != nil {
		if r.rx, err = r.openReceiver(); err != nil {
			return fmt.Errorf("receive on %s: %w", r.spec.Rx.Endpoint, err)
		}
		r.out.RxGranted = r.rx.Granted()
	}
	if err := r.openReflector(); err != nil {
		return err
	}
	if err := r.meet(ctx, Listening); err != nil {
		return err
	}
	if r.spec.Tx != nil {
		if r.tx, err = r.openSender(); err != nil {
			return fmt.Errorf("send on %s: %w", r.spec.Tx.Endpoint, err)
		}
		r.out.TxGranted = r.tx.Granted()
	}
	for _, e := range r.ends() {
		wait, cancel := context.WithTimeout(ctx, carrierWait)
		err := nic.WaitCarrier(wait, e.Port)
		cancel()
		if err != nil {
			return fmt.Errorf("wait for the carrier of %s: %w", e.Endpoint, err)
		}
	}
	if err := r.openAnswers(); err != nil {
		return err
	}
	if r.spec.Attached != nil {
		if err := r.spec.Attached(); err != nil {
			return err
		}
	}
	return r.meet(ctx, Ready)
}

func (r *running) meet(ctx context.Context, at Step) error {
	if r.spec.Meet == nil {
		return nil
	}
	return r.spec.Meet(ctx, at)
}

func (r *running) ends() []*End {
	var out []*End
	for _, e := range []*End{r.spec.Tx, r.spec.Rx, r.spec.Reflector} {
		if e != nil && (e != r.spec.Rx || r.spec.Reflector == nil) { // of one port that is both, one
			out = append(out, e)
		}
	}
	return out
}

func (r *running) config(e *End) engine.Config {
	return engine.Config{
		Port:   engine.Port{Name: e.Endpoint, IfIndex: e.Port.Index, Do: e.Port.NS.Do},
		Queues: e.Queues, ZeroCopy: e.ZeroCopy, Generic: e.Generic, Chunk: e.Chunk, MaxLen: r.spec.maxLen(e),
		Batch: r.spec.Batch, Budget: r.spec.Budget, RingSize: r.spec.RingSize, Fault: r.spec.Fault,
	}
}

func (r *running) openSender() (engine.Sender, error) {
	c := r.config(r.spec.Tx)
	c.Shared = r.spec.Meet != nil || r.spec.Reflector != nil
	return engine.OpenSender(r.spec.Tx.Engine, c)
}

func (r *running) openReceiver() (engine.Receiver, error) {
	o := engine.RxOptions{Steer: r.spec.Steer, Drop: r.spec.Action == Drop}
	return engine.OpenReceiver(r.spec.Rx.Engine, r.config(r.spec.Rx), o)
}

// openTrace attaches the tracepoints; without them some rows are unknown and
// the outcome says so.
func (r *running) openTrace() {
	var targets []bpf.Target
	for _, e := range r.ends() {
		targets = append(targets, bpf.Target{Ifindex: e.Port.Index, Netns: uint32(e.Port.NS.Inum())})
	}
	t, err := bpf.LoadTraceTargets(targets)
	if err == nil {
		if err = t.Attach(); err == nil && r.spec.TraceDrops {
			err = t.AttachDrops()
		}
		if err != nil {
			err = errors.Join(err, t.Close())
		}
	}
	if err != nil {
		r.out.warn("tracepoints_unavailable", err)
		return
	}
	r.trace = t
}

// measure takes the baselines, runs both ends and reads the counters again.
func (r *running) measure(ctx context.Context) error {
	events, stopWatch, err := r.watch(ctx)
	if err != nil {
		return err
	}
	defer stopWatch()
	time.Sleep(leadIn)
	if r.base, err = r.rest("before the run"); err != nil {
		return err
	}
	if r.rx != nil { // not a frame of before the baselines is in a ring
		if err := r.rx.Arm(); err != nil {
			return err
		}
	}
	sendCtx, stopSend := context.WithCancel(ctx)
	defer stopSend()
	recvCtx, stopRecv := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRecv()
	r.startNs = xsk.NowNs() + int64(leadIn)
	if r.spec.Begin != nil {
		if r.startNs, err = r.spec.Begin(ctx, r.startNs); err != nil {
			return err
		}
	}
	r.first = r.meters()
	r.first.AtNs = r.startNs
	r.tick = r.first
	rxDone := r.receive(recvCtx)
	txDone := r.send(sendCtx)
	r.wait(ctx, events, stopSend, txDone, rxDone)
	r.overNs = xsk.NowNs()
	r.settle()
	disarmed := r.disarm()
	stopRecv()
	<-rxDone.done
	<-txDone.done
	r.out.Interrupted = ctx.Err() != nil
	r.out.Tx, r.out.Rx = txDone.tx, rxDone.rx
	if r.last, err = r.rest("after the run"); err != nil {
		r.out.unreadable = err
	}
	r.late(events)
	r.stopped(r.spec.Tx, txDone.err)
	r.stopped(r.spec.Rx, errors.Join(rxDone.err, disarmed))
	r.captured()
	r.finish()
	return errors.Join(txDone.err, rxDone.err, disarmed)
}

// disarm keeps later frames out of the rings that are emptied next.
func (r *running) disarm() error {
	if r.rx == nil {
		return nil
	}
	defer time.Sleep(napi)
	return r.rx.Disarm()
}

// side is one end's goroutine: its result is valid once done is closed.
type side struct {
	done chan struct{}
	tx   engine.TxResult
	rx   engine.RxResult
	err  error
}

func (r *running) send(ctx context.Context) *side {
	s := &side{done: make(chan struct{})}
	if r.tx == nil {
		close(s.done)
		return s
	}
	offer, err := r.offer()
	r.offered = offer
	if err != nil {
		s.err = err
		close(s.done)
		return s
	}
	go func() {
		defer close(s.done)
		s.tx, s.err = r.tx.Run(ctx, offer)
	}()
	return s
}

func (r *running) receive(ctx context.Context) *side {
	s := &side{done: make(chan struct{})}
	if r.rx == nil {
		close(s.done)
		return s
	}
	w := engine.Watch{Verify: r.spec.Action == Verify, Run: r.spec.Run, AnyRun: r.spec.AnyRun, PayloadCheck: r.spec.PayloadCheck, Warmup: r.spec.Warmup, Rings: r.keep, Foreign: r.spec.Foreign}
	if r.spec.Tx != nil {
		if pps, err := r.spec.PPS(); err == nil {
			w.PPS = float64(pps)
		}
	}
	go func() {
		defer close(s.done)
		s.rx, s.err = r.rx.Run(ctx, w)
	}()
	return s
}

// offer is the sender's part of the spec, one writer a queue.
func (r *running) offer() (engine.Offer, error) {
	pps, err := r.spec.PPS()
	if err != nil {
		return engine.Offer{}, err
	}
	n := len(r.spec.Tx.Queues)
	o := engine.Offer{PPS: float64(pps), Count: r.spec.Count, Start: r.startNs,
		Duration: r.spec.Duration, EndMarks: r.spec.Rx == nil, Warmup: r.spec.Warmup}
	if r.spec.Replay != nil {
		return r.replay(o), nil
	}
	if r.spec.Streams != nil {
		return r.streams(o)
	}
	for i := range n {
		o.Writers = append(o.Writers, frame.WriterConfig{
			Stream: r.spec.Stream, Run: r.spec.Run, Worker: uint8(i), Workers: n, StampEvery: 1})
	}
	return o, nil
}

// wait follows the trial until its sender is done, its time is up, every
// space has its END, or an event makes it worthless.
func (r *running) wait(ctx context.Context, events <-chan happening, stopSend func(), tx, rx *side) {
	tick := time.NewTicker(r.spec.Interval)
	defer tick.Stop()
	poll := time.NewTicker(endPoll)
	defer poll.Stop()
	txDone := tx.done
	if r.tx == nil {
		txDone = nil
	}
	for {
		select {
		case <-txDone:
			return
		case <-rx.done:
			if r.rx != nil { // it ended on its own: an error
				stopSend()
				<-tx.done
				return
			}
			rx = &side{done: make(chan struct{})}
		case <-ctx.Done():
			stopSend()
			if r.tx == nil {
				return
			}
			<-txDone
			return
		case e := <-events:
			r.event(e)
			stopSend()
			if r.tx == nil {
				return
			}
		case <-tick.C:
			r.progress()
		case <-poll.C:
			if r.tx == nil && r.sinkOver() {
				return
			}
		}
	}
}

// sinkOver tells whether a sink on its own has seen all it will.
func (r *running) sinkOver() bool {
	if r.spec.Duration > 0 && xsk.NowNs() > r.startNs+int64(r.spec.Duration) {
		return true
	}
	return r.spec.Action == Verify && r.rx.Ended()
}

// settle waits for frames under way and for counters that lag, and then, for
// as long again, until nothing more arrives.
func (r *running) settle() {
	time.Sleep(r.spec.Settle)
	before := r.meters()
	for end := time.Now().Add(max(r.spec.Settle, time.Second)); time.Now().Before(end); {
		time.Sleep(quiet)
		now := r.meters()
		d := meter.Between(before, now)
		if d.Rx.Taken == 0 && d.Tx.Completed == 0 {
			return
		}
		before = now
	}
}

func (r *running) close() error {
	errs := []error{r.closeAnswers()}
	if r.trace != nil {
		errs = append(errs, r.trace.Close())
	}
	if r.tx != nil {
		errs = append(errs, r.tx.Close())
	}
	if r.spec.Replay != nil {
		r.spec.Replay.Close()
	}
	if r.rx != nil {
		errs = append(errs, r.rx.Close())
	}
	if r.reflector != nil {
		errs = append(errs, r.reflector.Close())
	}
	return errors.Join(errs...)
}
