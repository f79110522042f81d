package xsk

import (
	"time"

	"golang.org/x/sys/unix"
)

// rawKickBudget is the largest copy-mode budget whose kick may keep Go's
// scheduler waiting: 64 frames are 30 us on an idle machine (veth). RawSyscall
// sends 2 % or more above Syscall with 32 frames a kick, and is even from 128
// on, where a stop-the-world would wait for a quarter of a millisecond.
const rawKickBudget = 64

// KickCode says what a kick came to.
type KickCode uint8

// The codes. "Consumed" means taken from the TX ring for good.
const (
	// KickDone: no error. It does not say that all was taken, ask Tx.Pending:
	// the kernel stops without a word behind an invalid descriptor (consumed,
	// counted in TxInvalidDescs and completed under its own address: measured),
	// at a full completion ring (older kernels; EAGAIN in 6.18), and on a queue
	// that the device no longer has.
	KickDone KickCode = iota
	// KickAgain: kick again after reaping completions. Budget used up, device
	// queue, send buffer or completion ring full, a signal. The descriptor at
	// hand stays.
	KickAgain
	// KickRefused: copy mode, the device refused exactly one frame, with all
	// its descriptors. It is consumed, completed, and in the interface's
	// tx_dropped (measured); those before it were sent, those behind it stay.
	// Never resend it.
	KickRefused
	// KickNoBufs: no memory for a packet; nothing consumed for it, the
	// descriptor at hand stays (xsk_build_skb cancels its completion).
	KickNoBufs
	// KickNetDown: interface down or resetting; nothing consumed (measured).
	KickNetDown
	// KickFatal: the socket is of no more use (ENXIO: interface deleted), or
	// the descriptor at hand can never be sent; Errno says which. EINVAL is bad
	// TX metadata, which stays at the head of the ring and, on 6.18, is
	// completed anew by every kick (measured), or in zero-copy a driver that
	// wants an XDP program first.
	KickFatal
)

// String names the code.
func (c KickCode) String() string {
	names := [...]string{"done", "again", "refused", "no bufs", "net down", "fatal"}
	if int(c) < len(names) {
		return names[c]
	}
	return "unknown"
}

// KickResult is a code and the errno behind it, 0 if none.
type KickResult struct {
	Code  KickCode
	Errno unix.Errno
}

// classify gives an errno its meaning. EBUSY comes from NET_XMIT_DROP in copy
// mode; in zero-copy it can only be a driver that wants to be asked again.
func classify(errno unix.Errno, zc bool) KickResult {
	code := KickFatal
	switch errno {
	case 0:
		code = KickDone
	case unix.EAGAIN, unix.EINTR:
		code = KickAgain
	case unix.EBUSY:
		code = KickRefused
		if zc {
			code = KickAgain
		}
	case unix.ENOBUFS, unix.ENOMEM:
		code = KickNoBufs
	case unix.ENETDOWN:
		code = KickNetDown
	}
	return KickResult{code, errno}
}

// KickTx makes the kernel look at the TX ring. Zero-copy: it schedules the
// driver. Copy mode: the call itself sends up to the budget. Owner goroutine.
func (s *Socket) KickTx() KickResult {
	if s.Tx == nil || s.fd < 0 {
		return KickResult{KickFatal, unix.EBADF}
	}
	var errno unix.Errno
	if s.rawKick {
		_, _, errno = unix.RawSyscall6(unix.SYS_SENDTO, uintptr(s.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	} else {
		_, _, errno = unix.Syscall6(unix.SYS_SENDTO, uintptr(s.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	}
	s.count.kicks.Add(1)
	if errno == 0 {
		return KickResult{}
	}
	s.count.errno(errno)
	return classify(errno, s.zc)
}

// TxNeedsWakeup reports whether submitted frames need a KickTx. Call it after
// Submit. In copy mode it is always so.
func (s *Socket) TxNeedsWakeup() bool {
	return s.Tx != nil && (!s.needWakeup || s.Tx.NeedsWakeup())
}

// FillNeedsWakeup reports whether the driver waits for a WakeRx to look at the
// fill ring. Call it after Submit.
func (s *Socket) FillNeedsWakeup() bool {
	return s.needWakeup && s.Fill.NeedsWakeup()
}

// WakeRx makes the driver look at the fill ring (recvfrom). Owner goroutine.
func (s *Socket) WakeRx() KickResult {
	if s.Rx == nil || s.fd < 0 {
		return KickResult{KickFatal, unix.EBADF}
	}
	_, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	s.count.wakes.Add(1)
	if errno == 0 {
		return KickResult{}
	}
	s.count.errno(errno)
	return classify(errno, true)
}

// Poll waits until frames were received (rx) or half the TX ring is free, at
// most for timeout; negative waits for ever, also on an interface that goes.
// Owner goroutine. Errors: *Error, after a timeout ENETDOWN (interface down)
// or ENXIO (deleted).
// In copy mode the call sends from the TX ring too and keeps the errno to
// itself: a frame refused then shows in no KickRefused. So poll for rx only
// while nothing is pending in Tx.
func (s *Socket) Poll(rx bool, timeout time.Duration) (ready bool, err error) {
	events := int16(unix.POLLOUT)
	if rx {
		events = unix.POLLIN
	}
	s.pollFD[0] = unix.PollFd{Fd: int32(s.fd), Events: events}
	var wait *unix.Timespec
	if timeout >= 0 {
		ts := unix.NsecToTimespec(int64(timeout))
		wait = &ts
	}
	n, err := unix.Ppoll(s.pollFD[:], wait, nil)
	switch {
	case err == unix.EINTR:
		return false, nil
	case err == nil && n == 0:
		return false, s.boundError()
	case err != nil:
		return false, newError("poll", &s.cfg, asErrno(err))
	case s.pollFD[0].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0:
		return false, s.pollError()
	}
	return true, nil
}

// boundError tells a quiet queue from a dead one: poll itself just waits on
// an interface that is down or deleted (measured), recvfrom says so.
func (s *Socket) boundError() error {
	_, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	if errno == unix.ENXIO || errno == unix.ENETDOWN {
		return newError("poll", &s.cfg, errno)
	}
	return nil
}

// pollError fetches what the socket died of.
func (s *Socket) pollError() error {
	errno := unix.EBADF
	if n, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_ERROR); err == nil && n != 0 {
		errno = unix.Errno(n)
	}
	return newError("poll", &s.cfg, errno)
}

// stallNs is how long frames may be under way before a kick is due anyway.
const stallNs = int64(time.Millisecond)

// Watchdog finds the wake-up that was lost: frames are outstanding and nothing
// has completed for 1 ms. The zero value is ready; owner: one goroutine.
type Watchdog struct {
	completed uint64
	since     int64
	running   bool
}

// Due reports whether a kick is due at nowNs (CLOCK_MONOTONIC), given the
// frames outstanding and the count completed so far; then again after 1 ms.
func (w *Watchdog) Due(nowNs int64, outstanding, completed uint64) bool {
	if outstanding == 0 || completed != w.completed || !w.running {
		w.completed, w.since, w.running = completed, nowNs, outstanding != 0
		return false
	}
	if nowNs-w.since < stallNs {
		return false
	}
	w.since = nowNs
	return true
}

// KickIfStalled kicks when frames are outstanding and none has completed for
// 1 ms; kicked is false when there was no need. Owner goroutine; call it when
// idle, at most once per batch.
func (s *Socket) KickIfStalled(nowNs int64) (r KickResult, kicked bool) {
	if s.Tx == nil {
		return KickResult{}, false
	}
	completed := s.Comp.Produced()
	outstanding := s.Tx.Produced() - min(completed, s.Tx.Produced())
	if !s.watch.Due(nowNs, outstanding, completed) {
		return KickResult{}, false
	}
	s.count.stalls.Add(1)
	return s.KickTx(), true
}
