package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"linerate/bpf"
	"linerate/internal/frame"
	"linerate/internal/meter"
	"linerate/internal/pace"
	"linerate/internal/wire"
	"linerate/xsk"
)

const (
	// liveLead is how long before the first frame the workers enter the kernel:
	// preparing its pages takes 26-80 ms.
	liveLead = 120 * time.Millisecond
	// liveWatch is how often a worker in the kernel is looked at, and so how late
	// it may notice that there is no more to do.
	liveWatch = time.Millisecond
	// liveBatch is the kernel's batch: a veth's ring takes 256 frames, from all
	// CPUs that send to it.
	liveBatch = 64
	// liveStampEvery: reading the clock takes half as long as making a frame.
	liveStampEvery = 64
)

// liveSender makes frames in the kernel, as XDP live frames: one thread and one
// program a worker.
type liveSender struct {
	cfg     Config
	pass    *bpf.Pass
	att     *bpf.Attachment
	ns      *os.File // the port's network namespace
	granted Granted
	meters  []*meter.TxCounters
}

// liveWorker is one worker in one trial.
type liveWorker struct {
	live   *bpf.Live
	writer *frame.Writer
	size   wire.BufLen
	q      TxQueue
	rate   rating
}

// OpenLiveSender attaches a pass program: live frames need a device whose
// receive queues XDP knows, and ndo_xdp_xmit is offered only with one.
func OpenLiveSender(cfg Config) (Sender, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Generic {
		return nil, errors.New("XDP live frames are not sent through generic XDP: give --tx-engine xsk, or another --mode")
	}
	s := &liveSender{cfg: cfg}
	for range cfg.Queues {
		s.meters = append(s.meters, new(meter.TxCounters))
	}
	if err := cfg.Port.Do(s.open); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *liveSender) open() error {
	var err error
	if s.ns, err = os.Open("/proc/thread-self/ns/net"); err != nil {
		return fmt.Errorf("open the network namespace of %s: %w", s.cfg.Port.Name, err)
	}
	s.granted = Granted{Mode: string(Native), XDPMode: Native}
	if s.cfg.Shared { // the receiver's program is on it
		return nil
	}
	if s.pass, err = bpf.LoadPass(); err != nil {
		return err
	}
	if s.att, err = bpf.Attach(s.pass.Program(), s.cfg.Port.IfIndex, bpf.ModeNative); err != nil {
		return err
	}
	return nil
}

func (s *liveSender) Granted() Granted { return s.granted }

func (s *liveSender) Counters() []*meter.TxCounters { return s.meters }

// Run sends one trial. The programs are loaded anew for each: what the frames
// are is constant in them.
func (s *liveSender) Run(ctx context.Context, o Offer) (TxResult, error) {
	if err := o.validate(len(s.cfg.Queues)); err != nil {
		return TxResult{}, err
	}
	workers := make([]*liveWorker, len(s.cfg.Queues))
	defer func() {
		for _, w := range workers {
			if w != nil {
				_ = w.live.Close()
			}
		}
	}()
	for i := range workers {
		w, err := s.worker(o, i)
		if err != nil {
			return TxResult{}, err
		}
		workers[i] = w
	}
	o.Start = max(o.Start, xsk.NowNs()+int64(liveLead))
	var stop atomic.Bool
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()
	err := together(len(workers), &stop, func(i int) error { return s.run(&stop, workers[i], o, i, len(workers)) })
	return liveResult(workers), err
}

// worker loads the program of worker i.
func (s *liveSender) worker(o Offer, i int) (*liveWorker, error) {
	fw, err := frame.NewWriter(o.Writers[i])
	if err != nil {
		return nil, fmt.Errorf("prepare frames of worker %d: %w", i, err)
	}
	t, err := fw.Template()
	if err != nil {
		return nil, fmt.Errorf("engine live: %w", err)
	}
	c := bpf.LiveConfig{IfIndex: s.cfg.Port.IfIndex, Template: t.Frame, L3: t.L3, Payload: t.Payload, V6: t.V6,
		MACs: t.MACs, Fixed: t.Fixed, StampEvery: liveStampEvery,
		LoseOffered: uint32(s.cfg.Fault.of(i).LoseOffered), LoseSubmitted: uint32(s.cfg.Fault.of(i).LoseSubmitted)}
	if o.Writers[i].StampEvery == 0 {
		c.StampEvery = 0
	}
	for _, f := range t.Flows {
		c.Flows = append(c.Flows, bpf.LiveFlow(f))
	}
	l, err := bpf.LoadLive(c)
	if err != nil {
		return nil, err
	}
	q := s.cfg.Queues[i]
	return &liveWorker{live: l, writer: fw, size: wire.BufLen(len(t.Frame)), q: TxQueue{Queue: q, Space: fw.Space()},
		rate: rating{warmup: o.Warmup}}, nil
}

// run is one worker's trial, on a thread in the port's namespace.
func (s *liveSender) run(stop *atomic.Bool, w *liveWorker, o Offer, i, n int) error {
	if err := s.enter(w.q.Queue.CPU); err != nil {
		return err
	}
	share := o.Count / uint64(n)
	if uint64(i) < o.Count%uint64(n) {
		share++
	}
	offer := bpf.LiveOffer{StartNs: o.Start, Count: share, PPS: o.PPS / float64(n)}
	if o.Duration > 0 {
		offer.DeadlineNs = o.Start + int64(o.Duration)
	}
	if o.Count > 0 && share == 0 { // more workers than frames
		return nil
	}
	if err := w.live.Begin(offer); err != nil {
		return err
	}
	watched := make(chan struct{})
	over := make(chan struct{})
	go func() {
		defer close(watched)
		w.watch(stop, over, s.meters[i])
	}()
	err := w.live.Run(s.cfg.Port.IfIndex, min(s.cfg.Batch, liveBatch))
	close(over)
	<-watched
	w.finish(s.meters[i])
	if err != nil {
		return fmt.Errorf("send on %s: %w", s.cfg.Port.Name, err)
	}
	if w.q.Submitted == 0 && !stop.Load() {
		return fmt.Errorf("send on %s: the kernel made no frame", s.cfg.Port.Name)
	}
	if o.EndMarks {
		return w.end(s.cfg.Port.IfIndex)
	}
	return nil
}

// enter puts the calling goroutine's thread into the port's namespace and onto
// its CPU, for good: it ends with the goroutine.
func (s *liveSender) enter(cpu int) error {
	runtime.LockOSThread()
	if err := unix.Setns(int(s.ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the network namespace of %s: %w", s.cfg.Port.Name, err)
	}
	return pin(cpu)
}

// watch publishes what a worker in the kernel has done, and fetches it out when
// there is no more to do.
func (w *liveWorker) watch(stop *atomic.Bool, over <-chan struct{}, counters *meter.TxCounters) {
	tick := time.NewTicker(liveWatch)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		if stop.Load() {
			_ = w.live.Stop() // it fails only on a program that was unloaded
		}
		w.look(counters)
		w.live.Nudge()
	}
}

// look reads the program's counts.
func (w *liveWorker) look(counters *meter.TxCounters) {
	p, err := w.live.Progress()
	if err != nil {
		return
	}
	if more := p.Sent - w.q.Submitted; more > 0 {
		if w.rate.add(p.LastNs, more, more*w.bytes()) {
			w.q.Warmup = Warmup{Thrown: p.Thrown, Stalls: liveStalls(p)}
		}
		w.q.LastThrown = p.Thrown
	}
	w.q.Submitted, w.q.Completed = p.Sent, p.Sent
	w.q.Bytes = p.Sent * w.bytes()
	w.q.Offered, w.q.Thrown, w.q.Unsent = p.Sent+p.Thrown+p.Lost, p.Thrown, p.Thrown
	w.q.Stalls = liveStalls(p)
	counters.Publish(&meter.TxCounts{Offered: w.q.Offered, Submitted: p.Sent, Completed: p.Sent, Bytes: w.q.Bytes,
		Stalls: p.Stalls, OffCPUNs: uint64(p.StallNs)})
}

func (w *liveWorker) bytes() uint64 { return uint64(w.size) + wire.FCSBytes }

// finish takes the last look, once the kernel has returned.
func (w *liveWorker) finish(counters *meter.TxCounters) {
	w.look(counters)
	w.q.Tail = w.q.Thrown - w.q.LastThrown
	w.q.Rated = w.rate.Rated
}

func liveStalls(p bpf.LiveProgress) pace.Stalls {
	return pace.Stalls{Count: p.Stalls, Sum: time.Duration(p.StallNs), Longest: time.Duration(p.LongestStallNs)}
}

// end closes the worker's space.
func (w *liveWorker) end(ingress int) error {
	for k := range endMarks {
		if k > 0 {
			time.Sleep(endGap)
		}
		b := w.writer.PlainEnd(w.q.Submitted-w.q.EndFrames, uint64(xsk.NowNs()))
		if err := w.live.End(b, ingress); err != nil {
			return fmt.Errorf("send END frame: %w", err)
		}
		w.q.EndFrames++
		w.q.Submitted++
		w.q.Completed++
		w.q.Bytes += uint64(len(b)) + wire.FCSBytes
	}
	return nil
}

// liveResult joins what the workers did.
func liveResult(workers []*liveWorker) (r TxResult) {
	for _, w := range workers {
		p, err := w.live.Progress()
		if err == nil && p.FirstNs != 0 && (r.FirstNs == 0 || p.FirstNs < r.FirstNs) {
			r.FirstNs = p.FirstNs
		}
		r.LastNs, r.EndNs = max(r.LastNs, p.LastNs), max(r.EndNs, p.LastNs)
		r.Queues = append(r.Queues, w.q)
		r.Rated = r.Rated.Join(w.q.Rated)
	}
	r.RefusedUnknown = true
	return r
}

// Close detaches and unloads. It may be called twice.
func (s *liveSender) Close() error {
	var errs []error
	if s.att != nil {
		errs = append(errs, s.att.Close())
		s.att = nil
	}
	if s.pass != nil {
		errs = append(errs, s.pass.Close())
		s.pass = nil
	}
	if s.ns != nil {
		errs = append(errs, s.ns.Close())
		s.ns = nil
	}
	return errors.Join(errs...)
}
