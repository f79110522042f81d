package engine

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/asavie/xdp"
	"golang.org/x/sys/unix"

	"linerate/internal/frame"
	"linerate/internal/wire"
	"linerate/xsk"
)

// The adapter to github.com/asavie/xdp v0.3.3, the one file that imports it.
// It uses NewSocket and FD only: the library's own attach replaces programs of
// others, and its Close keeps the queue taken while the process lives, which
// is why this runs in a child process (asavie_child.go). Its data path panics
// on any errno but three; the panic becomes an error here.

// asavieSocket is one socket of the library. It belongs to one goroutine.
type asavieSocket struct {
	sock *xdp.Socket
	opt  xdp.SocketOptions
}

// openAsavie opens one socket. The library takes its bind flags from a package
// variable: a process opens its sockets one after the other.
func openAsavie(c Config, q Queue, opt xdp.SocketOptions) (*asavieSocket, error) {
	switch c.ZeroCopy {
	case xsk.Require:
		xdp.DefaultSocketFlags = unix.XDP_ZEROCOPY
	case xsk.Forbid:
		xdp.DefaultSocketFlags = unix.XDP_COPY
	default:
		xdp.DefaultSocketFlags = 0
	}
	s, err := xdp.NewSocket(c.Port.IfIndex, q.ID, &opt)
	for end := time.Now().Add(bindTimeout); busy(err) && time.Now().Before(end); s, err = xdp.NewSocket(c.Port.IfIndex, q.ID, &opt) {
		time.Sleep(bindPause)
	}
	if err != nil {
		return nil, fmt.Errorf("open queue %d of %s with asavie/xdp: %w", q.ID, c.Port.Name, err)
	}
	return &asavieSocket{sock: s, opt: opt}, nil
}

// The kernel frees a queue some time after its last holder is gone.
const (
	bindTimeout = 2 * time.Second
	bindPause   = 20 * time.Millisecond
)

// busy finds EBUSY in an error of the library, which keeps the text only.
func busy(err error) bool {
	return err != nil && strings.HasSuffix(err.Error(), unix.EBUSY.Error())
}

// guarded runs a call into the library and turns its panic into an error.
func guarded(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("asavie/xdp panicked: %v", r)
		}
	}()
	f()
	return nil
}

// asavieTx is one sending queue.
type asavieTx struct {
	*asavieSocket
	prev []wire.BufLen
	errs error
}

func newAsavieTx(c Config, q Queue) (*asavieTx, error) {
	// RX ring never 0: the library reads through it without looking.
	s, err := openAsavie(c, q, xdp.SocketOptions{NumFrames: c.Budget, FrameSize: c.Chunk,
		FillRingNumDescs: 64, CompletionRingNumDescs: c.Budget, RxRingNumDescs: 64, TxRingNumDescs: c.Budget})
	if err != nil {
		return nil, err
	}
	return &asavieTx{asavieSocket: s, prev: make([]wire.BufLen, c.Budget)}, nil
}

func (a *asavieTx) room() int { return a.sock.NumFreeTxSlots() }

func (a *asavieTx) put(fw *frame.Writer, n int, now int64) (sent int, bytes uint64) {
	descs := a.sock.GetDescs(n)
	for i := range descs {
		c := descs[i].Addr / uint64(a.opt.FrameSize)
		size := fw.Next(a.sock.GetFrame(descs[i]), a.prev[c], uint64(now))
		a.prev[c] = size
		descs[i].Len = uint32(size)
		bytes += uint64(size) + wire.FCSBytes
	}
	return a.transmit(descs), bytes
}

// transmit hands descriptors over; the library kicks each time, and keeps to
// itself what the kick answered. There is room for all: put asked for no more.
func (a *asavieTx) transmit(descs []xdp.Desc) (n int) {
	if err := guarded(func() { n = a.sock.Transmit(descs) }); err != nil {
		a.errs = err
		n = len(descs) // they stand in the ring: the library published them first
	}
	return n
}

func (a *asavieTx) putEnd(fw *frame.Writer, sent uint64, now int64) (uint64, bool) {
	descs := a.sock.GetDescs(1)
	if len(descs) == 0 || a.room() == 0 {
		return 0, false
	}
	size := fw.End(a.sock.GetFrame(descs[0]), sent, uint64(now))
	a.prev[descs[0].Addr/uint64(a.opt.FrameSize)] = 0
	descs[0].Len = uint32(size)
	return uint64(size) + wire.FCSBytes, a.transmit(descs) == 1
}

func (a *asavieTx) reap() int {
	n := a.sock.NumCompleted()
	a.sock.Complete(n)
	return n
}

// kick sends what an EAGAIN or EBUSY has left in the ring. Which of the two it
// was the library does not tell: refusals are the device's own count.
func (a *asavieTx) kick() xsk.KickResult {
	a.transmit(nil)
	switch {
	case a.errs != nil && errors.Is(unix.ENETDOWN, a.errno()):
		a.errs = nil
		return xsk.KickResult{Code: xsk.KickNetDown, Errno: unix.ENETDOWN}
	case a.errs != nil:
		return xsk.KickResult{Code: xsk.KickFatal, Errno: a.errno()}
	case a.held() > 0:
		return xsk.KickResult{Code: xsk.KickAgain}
	}
	return xsk.KickResult{Code: xsk.KickDone}
}

// errno digs the number out of the library's panic text.
func (a *asavieTx) errno() unix.Errno {
	var rc uintptr // -1, as the library prints it
	var n int
	text := a.errs.Error()
	if _, err := fmt.Sscanf(text, "asavie/xdp panicked: sendto failed with rc=%d and errno=%d", &rc, &n); err != nil {
		return unix.EIO
	}
	return unix.Errno(n)
}

func (a *asavieTx) needsKick() bool { return a.held() > 0 }

func (a *asavieTx) held() uint64 { return uint64(a.opt.TxRingNumDescs - a.sock.NumFreeTxSlots()) }

// asavieRx is one receiving queue.
type asavieRx struct {
	*asavieSocket
	rx   *rxLoop
	base xsk.Stats
}

func newAsavieRx(c Config, q Queue) (*asavieRx, error) {
	s, err := openAsavie(c, q, xdp.SocketOptions{NumFrames: 2 * c.RingSize, FrameSize: c.Chunk,
		FillRingNumDescs: 2 * c.RingSize, CompletionRingNumDescs: 64, RxRingNumDescs: c.RingSize, TxRingNumDescs: 64})
	if err != nil {
		return nil, err
	}
	a := &asavieRx{asavieSocket: s, rx: newRxLoop(q)}
	a.sock.Fill(a.sock.GetDescs(2 * c.RingSize))
	return a, nil
}

// run takes frames until stop is set, then what is left.
func (a *asavieRx) run(stop *atomic.Bool, w *watched, queues int, f Fault, batch int) error {
	if err := pin(a.rx.q.Queue.CPU); err != nil {
		return err
	}
	var err error
	if a.base, err = xsk.ReadStatistics(a.sock.FD()); err != nil {
		return err
	}
	a.rx.start(w, queues, f)
	for {
		n := min(a.sock.NumReceived(), batch)
		if n > 0 {
			a.turn(n)
			continue
		}
		if stop.Load() {
			break
		}
		var perr error
		if err = guarded(func() { _, _, perr = a.sock.Poll(int(pollEvery / time.Millisecond)) }); err != nil || perr != nil {
			err = errors.Join(err, perr)
			break
		}
	}
	a.rx.publish()
	st, serr := xsk.ReadStatistics(a.sock.FD())
	if serr == nil {
		a.rx.socket(st, a.base)
	}
	return errors.Join(err, serr)
}

func (a *asavieRx) turn(n int) {
	descs := a.sock.Receive(n)
	a.rx.batch()
	for _, d := range descs {
		// The library shows a frame from its start; the stamp lies before it.
		with := xdp.Desc{Addr: d.Addr - metaBytes, Len: d.Len + metaBytes}
		buf := a.sock.GetFrame(with)
		a.rx.take(buf[:metaBytes], buf[metaBytes:])
	}
	for i := range descs {
		descs[i].Addr -= descs[i].Addr % uint64(a.opt.FrameSize)
	}
	a.sock.Fill(descs)
	a.rx.publish()
}
