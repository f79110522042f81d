package engine

import (
	"errors"
	"fmt"
	"strconv"
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
	s, err := bindAsavie(c, q, opt)
	if err != nil {
		return nil, fmt.Errorf("open queue %d of %s with asavie/xdp: %w", q.ID, c.Port.Name, err)
	}
	return &asavieSocket{sock: s, opt: opt}, nil
}

// The kernel frees a queue some time after its last socket, another process's
// too, is gone: 10 to 55 ms measured. The library gives up at once.
const (
	bindPatience = 2 * time.Second
	bindPause    = 20 * time.Millisecond
)

// bindAsavie opens a socket as soon as the queue is free.
func bindAsavie(c Config, q Queue, opt xdp.SocketOptions) (*xdp.Socket, error) {
	for until := time.Now().Add(bindPatience); ; time.Sleep(bindPause) {
		s, err := xdp.NewSocket(c.Port.IfIndex, q.ID, &opt)
		// The errno is in the text only.
		if err == nil || time.Now().After(until) || !strings.HasSuffix(err.Error(), unix.EBUSY.Error()) {
			return s, err
		}
	}
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
	err  error // of the last call that panicked, until the next kick
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

// fresh: another trial's frames may differ where this one writes nothing.
func (a *asavieTx) fresh() {
	a.err = nil
	clear(a.prev)
}

func (a *asavieTx) longest() wire.BufLen { return wire.BufLen(a.opt.FrameSize) }

func (a *asavieTx) invalid() (uint64, error) {
	st, err := xsk.ReadStatistics(a.sock.FD())
	return st.TxInvalidDescs, err
}

// room is what put takes now: the ring has room for frames that the kernel has
// taken and not yet given back, but there are no buffers for them.
func (a *asavieTx) room() int {
	return min(a.sock.NumFreeTxSlots(), a.opt.NumFrames-a.sock.NumTransmitted())
}

func (a *asavieTx) put(fw *frame.Writer, n int, now int64) (sent int, bytes uint64) {
	descs := a.sock.GetDescs(min(n, a.room()))
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
		a.err = err
		n = len(descs) // they stand in the ring: the library published them first
	}
	return n
}

func (a *asavieTx) putEnd(fw *frame.Writer, sent uint64, now int64) (uint64, bool) {
	descs := a.sock.GetDescs(min(1, a.room()))
	if len(descs) == 0 {
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
	a.err = nil // of an earlier call: what it was about stands in the ring still
	a.transmit(nil)
	switch {
	case a.err != nil:
		return kickResult(a.err)
	case a.held() > 0:
		return xsk.KickResult{Code: xsk.KickAgain}
	}
	return xsk.KickResult{Code: xsk.KickDone}
}

// kickResult gives the library's panic its meaning.
func kickResult(err error) xsk.KickResult {
	r := xsk.KickResult{Code: xsk.KickFatal, Errno: panicErrno(err)}
	switch r.Errno {
	case unix.ENETDOWN:
		r.Code = xsk.KickNetDown
	case unix.ENOBUFS, unix.ENOMEM:
		r.Code = xsk.KickNoBufs
	}
	return r
}

// panicErrno digs the number out of the library's panic text, EIO if there is
// none: "sendto failed with rc=18446744073709551615 and errno=100".
func panicErrno(err error) unix.Errno {
	_, number, found := strings.Cut(err.Error(), " and errno=")
	n, perr := strconv.ParseUint(number, 10, 12)
	if !found || perr != nil || n == 0 {
		return unix.EIO
	}
	return unix.Errno(n)
}

func (a *asavieTx) needsKick() bool { return a.err != nil || a.held() > 0 }

func (a *asavieTx) held() uint64 { return uint64(a.opt.TxRingNumDescs - a.sock.NumFreeTxSlots()) }

// asavieRx is one receiving queue.
type asavieRx struct {
	*asavieSocket
	rx    *rxLoop
	batch int
}

func newAsavieRx(c Config, q Queue) (*asavieRx, error) {
	s, err := openAsavie(c, q, xdp.SocketOptions{NumFrames: 2 * c.RingSize, FrameSize: c.Chunk,
		FillRingNumDescs: 2 * c.RingSize, CompletionRingNumDescs: 64, RxRingNumDescs: c.RingSize, TxRingNumDescs: 64})
	if err != nil {
		return nil, err
	}
	a := &asavieRx{asavieSocket: s, rx: newRxLoop(q), batch: c.Batch}
	a.sock.Fill(a.sock.GetDescs(2 * c.RingSize))
	return a, nil
}

// run takes frames until stop is set, then what is left.
func (a *asavieRx) run(stop *atomic.Bool, w *watched, queues int, f Fault) error {
	a.rx.start(w, queues, f) // first: nothing of the last trial may be reported again
	if err := pin(a.rx.queue.CPU); err != nil {
		return err
	}
	read := func() (xsk.Stats, error) { return xsk.ReadStatistics(a.sock.FD()) }
	base, err := read()
	if err != nil {
		return err
	}
	err = a.rx.follow(stop, a.opt.RxRingNumDescs+a.opt.FillRingNumDescs, a.turn, a.wait)
	return errors.Join(err, a.rx.end(base, read))
}

// wait blocks until a frame is there, or for pollEvery.
func (a *asavieRx) wait() error {
	_, _, err := a.sock.Poll(int(pollEvery / time.Millisecond))
	return err
}

// turn takes one batch and gives its buffers back.
func (a *asavieRx) turn() int {
	descs := a.sock.Receive(a.batch)
	if len(descs) == 0 {
		return 0
	}
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
	return len(descs)
}
