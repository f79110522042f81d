package neighbor

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// MostAnnounced is how many addresses of all ranges are announced, the first
// ones: a bridge needs one frame for each link address, a router asks.
const MostAnnounced = 256

// DefaultEvery is how often the addresses are announced again: well within the
// 30 s for which a kernel believes a neighbour, and the 300 s of a bridge.
const DefaultEvery = 10 * time.Second

// wake is how long a closed responder may take to notice.
const wake = 50 * time.Millisecond

// Config is one responder.
type Config struct {
	Name    string                           // of the interface, for messages
	IfIndex int                              // of the interface
	Do      func(f func() error) (err error) // runs f inside the interface's namespace
	MAC     [6]byte                          // that the addresses are at
	Ranges  []Range                          // that are answered for
	Every   time.Duration                    // between announcements, 0: DefaultEvery
}

// Counts is what a responder has sent and could not send.
type Counts struct {
	ARP, Solicitation, Echo uint64 // answers, by what was asked
	Announced               uint64
	Failed                  uint64 // answers and announcements the device did not take
}

// Sent is the number of frames that left.
func (c Counts) Sent() uint64 { return c.ARP + c.Solicitation + c.Echo + c.Announced }

// Responder answers and announces on one interface until it is closed. Its
// methods are safe for concurrent use.
type Responder struct {
	cfg       Config
	fd        int
	announced []netip.Addr
	stop      chan struct{}
	closing   atomic.Bool
	workers   sync.WaitGroup

	mu     sync.Mutex // over sending and counting: who has a frame finds it counted
	counts Counts
}

// Open starts a responder. It needs CAP_NET_RAW. The frames it sends pass by the
// traffic control and the taps of the interface, so no counter of the host's
// stack has them; Counts has.
func Open(cfg Config) (*Responder, error) {
	if cfg.Every <= 0 {
		cfg.Every = DefaultEvery
	}
	r := &Responder{cfg: cfg, fd: -1, stop: make(chan struct{})}
	for _, span := range cfg.Ranges {
		r.announced = append(r.announced, span.First(MostAnnounced-len(r.announced))...)
	}
	if err := cfg.Do(r.open); err != nil {
		if errors.Is(err, unix.EPERM) {
			err = fmt.Errorf("%w (needs CAP_NET_RAW)", err)
		}
		return nil, fmt.Errorf("answer for addresses on %s: %w", cfg.Name, err)
	}
	r.workers.Go(r.serve)
	r.workers.Go(r.keepAlive)
	return r, nil
}

func (r *Responder) open() error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := r.setUp(fd); err != nil {
		unix.Close(fd)
		return err
	}
	r.fd = fd
	return nil
}

func (r *Responder) setUp(fd int) error {
	filter := classify()
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program); err != nil {
		return fmt.Errorf("set filter: %w", err)
	}
	for _, option := range []int{unix.PACKET_QDISC_BYPASS, unix.PACKET_IGNORE_OUTGOING} {
		if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, option, 1); err != nil {
			return fmt.Errorf("set packet option %d: %w", option, err)
		}
	}
	// Solicitations go to group addresses, and mac need not be the device's own.
	groups := unix.PacketMreq{Ifindex: int32(r.cfg.IfIndex), Type: unix.PACKET_MR_ALLMULTI}
	own := unix.PacketMreq{Ifindex: int32(r.cfg.IfIndex), Type: unix.PACKET_MR_UNICAST, Alen: 6}
	copy(own.Address[:], r.cfg.MAC[:])
	for _, m := range []unix.PacketMreq{groups, own} {
		if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &m); err != nil {
			return fmt.Errorf("join: %w", err)
		}
	}
	wait := unix.NsecToTimeval(wake.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		return err
	}
	const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8 // network order
	return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: r.cfg.IfIndex})
}

// classify is the socket's filter: ARP, ICMP and ICMPv6, so that no other
// traffic wakes the responder.
func classify() []unix.SockFilter {
	const (
		loadHalf = unix.BPF_LD | unix.BPF_H | unix.BPF_ABS
		loadByte = unix.BPF_LD | unix.BPF_B | unix.BPF_ABS
		equal    = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		give     = unix.BPF_RET | unix.BPF_K
	)
	return []unix.SockFilter{
		{Code: loadHalf, K: 12},
		{Code: equal, K: typeARP, Jt: 6},
		{Code: equal, K: typeIPv4, Jf: 2},
		{Code: loadByte, K: etherBytes + 9},
		{Code: equal, K: protoICMP, Jt: 3, Jf: 4},
		{Code: equal, K: typeIPv6, Jf: 3},
		{Code: loadByte, K: etherBytes + 6},
		{Code: equal, K: protoICMPv6, Jf: 1},
		{Code: give, K: 1 << 16},
		{Code: give, K: 0},
	}
}

func (r *Responder) serve() {
	in, out := make([]byte, 1<<16), make([]byte, 0, 1<<16)
	for !r.closing.Load() {
		n, _, err := unix.Recvfrom(r.fd, in, 0)
		if err != nil {
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
				continue
			}
			select { // a link that goes down, or is gone: others say so
			case <-r.stop:
			case <-time.After(wake):
			}
			continue
		}
		answer, kind := Answer(out, in[:n], r.cfg.MAC, r.cfg.Ranges)
		switch kind {
		case ARP:
			r.send(answer, &r.counts.ARP)
		case Solicitation:
			r.send(answer, &r.counts.Solicitation)
		case Echo:
			r.send(answer, &r.counts.Echo)
		}
	}
}

func (r *Responder) keepAlive() {
	tick := time.NewTicker(r.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-tick.C:
			r.Announce()
		}
	}
}

// Announce tells the link where the addresses are, now.
func (r *Responder) Announce() {
	out := make([]byte, 0, 128)
	for _, a := range r.announced {
		r.send(Announce(out, a, r.cfg.MAC), &r.counts.Announced)
	}
}

// send sends and counts in one step.
func (r *Responder) send(frame []byte, count *uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := unix.Write(r.fd, frame); err != nil {
		r.counts.Failed++
		return
	}
	*count++
}

// Counts is what has been sent so far.
func (r *Responder) Counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts
}

// Close ends the responder and waits for it. It may be called once.
func (r *Responder) Close() error {
	r.closing.Store(true)
	close(r.stop)
	r.workers.Wait()
	if err := unix.Close(r.fd); err != nil {
		return fmt.Errorf("close responder on %s: %w", r.cfg.Name, err)
	}
	return nil
}
