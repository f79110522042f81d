package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

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
	watched atomic.Pointer[watched]
}

// RxOptions is what a receiver steers to its sockets.
type RxOptions struct {
	Steer bpf.SteerConfig
	Drop  bool // count and drop in XDP: no sockets
}

// OpenXSKReceiver opens one socket a queue, fills its rings, and attaches the
// steer program last, so that no frame is redirected to a queue without
// buffers.
func OpenXSKReceiver(cfg Config, o RxOptions) (Receiver, error) {
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
	}
	r.granted.XDPMode = xdpMode(r.att)
	r.granted.Mode = socketMode(r.workers[0].sock.ZeroCopied(), r.granted.XDPMode)
	return nil
}

func (r *xskReceiver) Granted() Granted { return r.granted }

func (r *xskReceiver) Counters() []*meter.RxCounters {
	out := make([]*meter.RxCounters, len(r.workers))
	for i, w := range r.workers {
		out[i] = w.rx.counters
	}
	return out
}

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
	if err := r.Arm(); err != nil {
		return RxResult{}, err
	}
	shared := newWatched(w)
	r.watched.Store(shared)
	errs := make([]error, len(r.workers))
	loops := make([]*rxLoop, len(r.workers))
	var wg sync.WaitGroup
	for i, x := range r.workers {
		loops[i] = x.rx
		f := r.cfg.Fault
		if i > 0 {
			f = Fault{} // one queue is enough to lose N frames
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[i] = x.run(ctx, shared, len(r.workers), f)
		}()
	}
	wg.Wait()
	return *shared.result(loops), errors.Join(errs...)
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
	base  xsk.Stats
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

func (w *xskRx) run(ctx context.Context, watch *watched, queues int, f Fault) error {
	if err := pin(w.rx.q.Queue.CPU); err != nil {
		return err
	}
	var err error
	if w.base, err = w.sock.Stats(); err != nil {
		return err
	}
	w.rx.start(watch, queues, f)
	for {
		n := w.turn()
		if n > 0 {
			w.rx.publish()
			continue
		}
		if ctx.Err() != nil {
			break
		}
		if err = w.await(); err != nil {
			break
		}
	}
	w.rx.publish()
	st, serr := w.sock.Stats()
	if serr == nil {
		w.rx.socket(st, w.base)
	}
	return errors.Join(err, serr)
}

// await blocks until there are frames, or for pollEvery. An interface that is
// down or gone has none: whoever watches it ends the trial, and until then what
// the socket has counted is worth waiting for.
func (w *xskRx) await() error {
	if w.sock.FillNeedsWakeup() {
		w.sock.WakeRx()
	}
	_, err := w.sock.Poll(true, pollEvery)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENETDOWN), errors.Is(err, unix.ENXIO):
		sleep(time.Millisecond)
		return nil
	}
	return fmt.Errorf("wait on queue %d: %w", w.rx.q.Queue.ID, err)
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
