package xsk

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Socket is one AF_XDP socket bound to one queue. Tx, Comp, Fill and Rx belong
// to its owner goroutine; Tx or Rx is nil where the config gave no size.
type Socket struct {
	Tx   *DescProducer
	Comp *AddrConsumer
	Fill *AddrProducer
	Rx   *DescConsumer

	fd         int
	zc         bool
	needWakeup bool
	rawKick    bool
	watch      Watchdog
	count      counters

	umem   *Umem
	cfg    Config
	notes  []string
	pollFD [1]unix.PollFd

	mu     sync.Mutex // Close against Stats
	maps   [][]byte
	shared []sharedIndex
	closed bool
	last   Stats
}

// Open makes a socket on a queue. The calling thread must be in the network
// namespace of the interface. Sockets on one UMEM inherit the mode, the
// need_wakeup and the SG setting of the first that is open.
// Errors: *ConfigError, ErrUmemClosed, *Error, among them EBUSY when the queue
// stays taken for BindTimeout, EOPNOTSUPP when zero-copy is required and not
// granted, EINVAL for no such queue, ENODEV for no such interface.
func Open(u *Umem, cfg Config) (*Socket, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return nil, ErrUmemClosed
	}
	if err := u.checkShare(&cfg); err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, newError("socket", &cfg, asErrno(err))
	}
	s := &Socket{fd: fd, umem: u, cfg: cfg, needWakeup: !cfg.NoNeedWakeup}
	if err := s.setUp(); err != nil {
		return nil, errors.Join(err, s.release())
	}
	u.addSocket(s)
	return s, nil
}

// checkShare refuses what the kernel would refuse with an unhelpful EINVAL, or
// would grant otherwise than asked.
func (u *Umem) checkShare(cfg *Config) error {
	for _, other := range u.sockets {
		if other.cfg.IfIndex == cfg.IfIndex && other.cfg.Queue == cfg.Queue {
			return newError("bind", cfg, unix.EBUSY)
		}
		if other.cfg.SG != cfg.SG || other.cfg.NoNeedWakeup != cfg.NoNeedWakeup {
			return &ConfigError{"SG and NoNeedWakeup", cfg.SG, "the same for all sockets of a umem"}
		}
		if cfg.ZeroCopy == Require && !other.zc || cfg.ZeroCopy == Forbid && other.zc {
			return &ConfigError{"zero copy", int(cfg.ZeroCopy), "the mode the umem's other sockets have"}
		}
	}
	return nil
}

// setUp runs the steps in the order the kernel wants: UMEM, rings and maps
// before bind (mmap of the buffer rings and all options need XSK_READY).
func (s *Socket) setUp() error {
	if len(s.umem.sockets) == 0 {
		if err := s.umem.register(s.fd, &s.cfg); err != nil {
			return err
		}
	}
	for _, step := range []func() error{s.sizeRings, s.setOptions, s.mapRings, s.prefill, s.bind, s.readMode} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Socket) sizeRings() error {
	rings := []struct {
		op   string
		opt  int
		size uint32
	}{
		{"size fill ring", unix.XDP_UMEM_FILL_RING, s.cfg.FillSize},
		{"size completion ring", unix.XDP_UMEM_COMPLETION_RING, s.cfg.CompSize},
		{"size rx ring", unix.XDP_RX_RING, s.cfg.RxSize},
		{"size tx ring", unix.XDP_TX_RING, s.cfg.TxSize},
	}
	for _, r := range rings {
		if r.size == 0 {
			continue
		}
		if errno := setOption(s.fd, r.opt, &r.size); errno != 0 {
			return newError(r.op, &s.cfg, errno)
		}
	}
	return nil
}

func (s *Socket) setOptions() error {
	if err := s.setTxBudget(); err != nil {
		return err
	}
	if n := s.cfg.SendBuffer; n > 0 {
		// FORCE goes over net.core.wmem_max and needs CAP_NET_ADMIN.
		err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, n/2)
		if err != nil {
			err = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUF, n/2)
		}
		if err != nil {
			return newError("set send buffer", &s.cfg, asErrno(err))
		}
	}
	busy := s.cfg.BusyPoll
	prefer := 0
	if busy.Prefer {
		prefer = 1
	}
	for _, o := range []struct{ opt, value int }{
		{unix.SO_PREFER_BUSY_POLL, prefer},
		{unix.SO_BUSY_POLL, busy.Usecs},
		{unix.SO_BUSY_POLL_BUDGET, busy.Budget},
	} {
		if o.value == 0 {
			continue
		}
		if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, o.opt, o.value); err != nil {
			return newError("set busy poll", &s.cfg, asErrno(err))
		}
	}
	return nil
}

// setTxBudget asks for more descriptors per copy-mode kick, Linux 6.17.
func (s *Socket) setTxBudget() error {
	if s.cfg.TxBudget == 0 {
		return nil
	}
	budget := uint32(s.cfg.TxBudget)
	switch errno := setOption(s.fd, unix.XDP_MAX_TX_SKB_BUDGET, &budget); errno {
	case 0:
		return nil
	case unix.ENOPROTOOPT, unix.EINVAL:
		s.notes = append(s.notes, fmt.Sprintf(
			"tx budget %d not set (%v): needs Linux 6.17; a kick sends up to %d", budget, errno, defaultTxBudget))
		s.cfg.TxBudget = 0
		return nil
	default:
		return newError("set tx budget", &s.cfg, errno)
	}
}

// bind takes the queue. The kernel frees a queue some time after the last
// close, so EBUSY is asked again with growing pauses.
func (s *Socket) bind() error {
	addr := sockaddrXDP{
		Family: unix.AF_XDP, Flags: s.cfg.bindFlags(),
		IfIndex: uint32(s.cfg.IfIndex), Queue: uint32(s.cfg.Queue),
	}
	if len(s.umem.sockets) > 0 {
		addr.Flags = unix.XDP_SHARED_UMEM
		addr.SharedUmemFD = uint32(s.umem.sockets[0].fd)
	}
	deadline := time.Now().Add(s.cfg.BindTimeout)
	for pause := time.Millisecond; ; pause = min(2*pause, 32*time.Millisecond) {
		errno := bindAddr(s.fd, &addr)
		switch {
		case errno == 0:
			return nil
		case errno == unix.EINTR:
		case errno != unix.EBUSY || time.Now().Add(pause).After(deadline):
			return newError("bind", &s.cfg, errno)
		default:
			time.Sleep(pause)
		}
	}
}

// readMode asks what the kernel granted and picks the kick accordingly.
func (s *Socket) readMode() error {
	var opts xdpOptions
	if _, errno := getOption(s.fd, unix.XDP_OPTIONS, &opts); errno != 0 {
		return newError("read options", &s.cfg, errno)
	}
	s.zc = opts.Flags&unix.XDP_OPTIONS_ZEROCOPY != 0
	if s.cfg.ZeroCopy == Require && !s.zc || s.cfg.ZeroCopy == Forbid && s.zc {
		return newError("bind", &s.cfg, unix.EOPNOTSUPP)
	}
	s.rawKick = s.zc || s.cfg.TxBudget <= rawKickBudget
	return nil
}

// FD is the file descriptor, for an XSKMAP; it stays the Socket's and is -1
// after Close.
func (s *Socket) FD() int { return s.fd }

// ZeroCopied is the mode as read back after bind.
func (s *Socket) ZeroCopied() bool { return s.zc }

// Config is what Open was given, with its defaults filled in and with what the
// kernel did not take set to 0.
func (s *Socket) Config() Config { return s.cfg }

// Umem is the memory the socket works on.
func (s *Socket) Umem() *Umem { return s.umem }

// Notes says what was asked for and not granted.
func (s *Socket) Notes() []string { return slices.Clone(s.notes) }

// Close releases the queue: rings unmapped, descriptor closed. A ring mapped
// anywhere would hold the queue for ever; the kernel itself lets go some
// milliseconds later, which Open waits for. The rings then read as full or
// empty. The owner goroutine must have stopped. A second call does nothing.
func (s *Socket) Close() error {
	s.umem.mu.Lock()
	defer s.umem.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.last, _ = s.readStats()
	s.umem.dropSocket(s)
	return s.release()
}

// release undoes setUp, however far it came.
func (s *Socket) release() error {
	s.closed = true
	s.detachRings()
	var errs []error
	for _, m := range s.maps {
		if err := unix.Munmap(m); err != nil {
			errs = append(errs, newError("unmap ring", &s.cfg, asErrno(err)))
		}
	}
	s.maps = nil
	if err := unix.Close(s.fd); err != nil {
		errs = append(errs, newError("close", &s.cfg, asErrno(err)))
	}
	s.fd = -1
	return errors.Join(errs...)
}
