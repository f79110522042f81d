package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"linerate/bpf"
	"linerate/internal/meter"
	"linerate/xsk"
)

// pollEvery bounds how long an idle receiver sleeps before it looks whether
// the trial is over.
const pollEvery = 50 * time.Millisecond

// headroom is what the kernel keeps before a received frame, bytes
// (XDP_PACKET_HEADROOM, include/uapi/linux/bpf.h at v6.18).
const headroom = 256

// metaBytes is the size of the receive stamp that the steer program leaves
// right before the frame.
const metaBytes = 16

// xskReceiver is the AF_XDP receiver: a steer program and one socket a queue.
type xskReceiver struct {
	cfg     Config
	steer   *bpf.Steer
	att     *bpf.Attachment
	workers []*xskRx
	granted Granted
	meters  []*meter.RxCounters
	watched atomic.Pointer[watched]
}

// RxOptions is what a receiver steers to its sockets.
type RxOptions struct {
	Steer bpf.SteerConfig
	Drop  bool // count and drop in XDP: no sockets
}

// OpenXSKReceiver attaches the steer program (ixgbe gives a zero-copy queue
// only to an interface that runs XDP) and opens one socket a queue. A socket is
// put into the program's map with its rings full: no frame is redirected to a
// queue without buffers.
func OpenXSKReceiver(cfg Config, o RxOptions) (Receiver, error) {
	if err := cfg.validateRx(); err != nil {
		return nil, err
	}
	r := &xskReceiver{cfg: cfg}
	if err := cfg.Port.Do(func() error { return r.open(o) }); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *xskReceiver) open(o RxOptions) error {
	var err error
	o.Steer.Frags = int(r.cfg.MaxLen) > RxBuffer(r.cfg.Chunk)
	o.Steer.LoseBeforeSeen = r.cfg.Fault.LoseBeforeSeen
	o.Steer.LoseAfterSeen = r.cfg.Fault.LoseAfterSeen
	if r.steer, err = bpf.LoadSteer(o.Steer); err != nil {
		return err
	}
	if r.att, err = attach(r.steer.Program(), r.cfg); err != nil {
		return err
	}
	for _, q := range r.cfg.Queues {
		w, err := newXSKRx(r.cfg, q)
		if err != nil {
			return err
		}
		r.workers = append(r.workers, w)
		r.meters = append(r.meters, w.rx.counters)
	}
	r.granted.Notes = fallback(r.att, r.cfg)
	r.granted.XDPMode = xdpMode(r.att)
	r.granted.Mode = socketMode(r.workers[0].sock.ZeroCopied(), r.granted.XDPMode)
	return nil
}

func (r *xskReceiver) Granted() Granted { return r.granted }

func (r *xskReceiver) Counters() []*meter.RxCounters { return r.meters }

// Arm puts the sockets in the program's map. It may be called again.
func (r *xskReceiver) Arm() error {
	for i, w := range r.workers {
		q := r.cfg.Queues[i].ID
		if err := r.steer.SetSocket(q, w.sock.FD()); err != nil {
			return fmt.Errorf("steer queue %d of %s: %w", q, r.cfg.Port.Name, err)
		}
	}
	return nil
}

// Disarm takes the sockets out of the program's map.
func (r *xskReceiver) Disarm() error { return disarm(r.steer, r.cfg.Queues) }

func (r *xskReceiver) Program() (ProgramCounts, error) { return steerCounts(r.steer) }

// Run takes frames until ctx ends; what is in the rings then is taken too.
func (r *xskReceiver) Run(ctx context.Context, w Watch) (RxResult, error) {
	n := len(r.workers)
	if n == 0 {
		return RxResult{}, ErrClosed
	}
	if err := r.Arm(); err != nil {
		return RxResult{}, err
	}
	shared := newWatched(w)
	r.watched.Store(shared)
	var stop atomic.Bool
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()
	err := together(n, &stop, func(i int) error { return r.workers[i].run(&stop, shared, n, r.cfg.Fault.of(i)) })
	var loops []*rxLoop
	for _, x := range r.workers {
		loops = append(loops, x.rx)
	}
	return *shared.result(loops), err
}

// Ended tells whether every sequence space has its END.
func (r *xskReceiver) Ended() bool {
	w := r.watched.Load()
	return w != nil && w.ended()
}

// Close detaches the program first: a frame then goes to the stack, not to a
// closed socket. It may be called twice.
func (r *xskReceiver) Close() error {
	var errs []error
	if r.att != nil {
		errs = append(errs, r.att.Close())
		r.att = nil
	}
	for _, w := range r.workers {
		errs = append(errs, w.close())
	}
	r.workers = nil
	if r.steer != nil {
		errs = append(errs, r.steer.Close())
		r.steer = nil
	}
	return errors.Join(errs...)
}

// xskRx is one receiving queue; it belongs to its worker while that runs.
type xskRx struct {
	rx    *rxLoop
	umem  *xsk.Umem
	sock  *xsk.Socket
	mem   []byte
	batch uint32
	// A frame of several buffers is joined here.
	joined     []byte
	joinedMeta [metaBytes]byte
}

func newXSKRx(cfg Config, q Queue) (*xskRx, error) {
	// Twice the ring: as many frames may wait in the RX ring as in the fill
	// ring, so a full RX ring and an empty fill ring cannot both be our doing.
	frames := 2 * cfg.RingSize
	u, err := xsk.NewUmem(xsk.UmemConfig{Frames: frames, Chunk: cfg.Chunk})
	if err != nil {
		return nil, err
	}
	prefill := make([]uint64, frames)
	for i := range prefill {
		prefill[i] = u.Chunk(i)
	}
	w := &xskRx{umem: u, batch: uint32(cfg.Batch), rx: newRxLoop(q), joined: make([]byte, 0, maxFragments*cfg.Chunk)}
	w.sock, err = xsk.Open(u, xsk.Config{
		IfIndex: cfg.Port.IfIndex, Queue: q.ID, ZeroCopy: cfg.ZeroCopy,
		RxSize: uint32(cfg.RingSize), FillSize: uint32(frames), Prefill: prefill,
		SG: int(cfg.MaxLen) > RxBuffer(cfg.Chunk),
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open queue %d of %s: %w", q.ID, cfg.Port.Name, err), u.Close())
	}
	w.mem = u.Data(0, uint32(frames*cfg.Chunk))
	return w, nil
}

func (w *xskRx) close() error { return errors.Join(w.sock.Close(), w.umem.Close()) }

// run is one trial of one of so many queues.
func (w *xskRx) run(stop *atomic.Bool, watch *watched, queues int, f Fault) error {
	w.rx.start(watch, queues, f) // first: nothing of the last trial may be reported again
	w.joined = w.joined[:0]
	if err := pin(w.rx.queue.CPU); err != nil {
		return err
	}
	base, err := w.sock.Stats()
	if err != nil {
		return err
	}
	rings := int(w.sock.Rx.Size() + w.sock.Fill.Size())
	err = w.rx.follow(stop, rings, w.turn, w.wait)
	return errors.Join(err, w.rx.end(base, w.sock.Stats))
}

// wait blocks until a frame is there, or for pollEvery; while frames flow, for
// the moment that lets a batch gather.
func (w *xskRx) wait() error {
	if w.sock.FillNeedsWakeup() {
		w.sock.WakeRx()
	}
	if w.rx.gather(int(w.sock.Rx.Size())) {
		return nil
	}
	_, err := w.sock.Poll(true, pollEvery)
	return err
}

// turn takes one batch from the RX ring and gives its buffers back.
func (w *xskRx) turn() int {
	idx, n := w.sock.Rx.Peek(w.batch)
	if n == 0 {
		return 0
	}
	w.rx.batch()
	for k := uint32(0); k < n; k++ {
		d := w.sock.Rx.Get(idx + k)
		end := d.Addr + uint64(d.Len)
		if d.Addr < headroom || end > uint64(len(w.mem)) || end < d.Addr {
			w.rx.bad()
			continue
		}
		meta, buf := w.join(w.mem[d.Addr-metaBytes:d.Addr], w.mem[d.Addr:end], d.Options&xsk.OptContinued != 0)
		if buf != nil {
			w.rx.take(meta, buf)
		}
	}
	// The chunks go back before the descriptors are released: the fill ring
	// holds as many entries as there are chunks, so it has room for all.
	at, got := w.sock.Fill.Reserve(n)
	for k := uint32(0); k < got; k++ {
		w.sock.Fill.Set(at+k, w.umem.Base(w.sock.Rx.Get(idx+k).Addr))
	}
	w.sock.Fill.Submit(got)
	w.sock.Rx.Release(n)
	return int(n)
}
