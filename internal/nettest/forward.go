package nettest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"linerate/internal/netns"
)

const (
	receiveBuffer = 256 << 20             // bytes of kernel memory: 300,000 small frames
	idle          = 20 * time.Millisecond // held frames go out when nothing has come for so long
	patience      = 2 * time.Second       // how long a closed ring or link is tried
	vnetHeader    = 10                    // struct virtio_net_hdr
)

// openPort opens a packet socket on one interface of the middle namespace. It
// takes every frame that comes in, whomever it is addressed to, and none that
// goes out. The virtio header carries checksums that the sender's kernel left
// to the device.
func openPort(ns *netns.NS, name string) (fd int, err error) {
	err = ns.Do(func() error {
		link, err := net.InterfaceByName(name)
		if err != nil {
			return err
		}
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		if err = setUp(fd, link.Index); err != nil {
			unix.Close(fd)
		}
		return err
	})
	return fd, err
}

func setUp(fd, index int) error {
	for _, o := range []struct{ level, option, value int }{
		{unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1},
		{unix.SOL_PACKET, unix.PACKET_AUXDATA, 1},
		{unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1},
		{unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1},
		{unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer},
		{unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 1 << 20},
	} {
		if err := unix.SetsockoptInt(fd, o.level, o.option, o.value); err != nil {
			return fmt.Errorf("set packet option %d/%d: %w", o.level, o.option, err)
		}
	}
	wait := unix.NsecToTimeval(idle.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		return err
	}
	return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: index})
}

func htons(v uint16) uint16 { return v<<8 | v>>8 }

// way forwards one direction. The goroutine in run owns everything but what mu
// guards.
type way struct {
	in, out int
	port    uint16
	plan    map[uint64]Rule
	rnd     *rand.Rand
	held    []heldFrame

	mu     sync.Mutex
	counts BoxCounts
	errs   []error
}

// heldFrame waits until so many more frames have gone, or for a time.
type heldFrame struct {
	bytes  []byte
	behind int       // frames still to go first; 0: the time counts
	until  time.Time // zero: behind counts
}

func newWay(cfg BoxConfig, w Way, in, out int) *way {
	return &way{in: in, out: out, port: cfg.Port, plan: plan(cfg.Rules, w), rnd: rand.New(rand.NewPCG(cfg.Seed, uint64(w)))}
}

func (w *way) run(stop *atomic.Bool) {
	buf := make([]byte, vnetHeader+4+65536)
	oob := make([]byte, unix.CmsgSpace(64))
	for !stop.Load() {
		b, err := w.receive(buf, oob)
		switch {
		case err == nil:
			w.take(b)
			w.release(false)
		case errors.Is(err, unix.EAGAIN):
			w.release(true)
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENETDOWN):
			// A link that goes down under a test is the test's business.
		default:
			w.fail(fmt.Errorf("receive: %w", err))
			return
		}
	}
	w.release(true)
}

// receive gives one frame with its virtio header in front, and its VLAN tag,
// which the kernel has taken out, put back.
func (w *way) receive(buf, oob []byte) ([]byte, error) {
	const gap = 4 // room to shift the front for a VLAN tag
	n, oobn, _, _, err := unix.Recvmsg(w.in, buf[gap:], oob, 0)
	if err != nil {
		return nil, err
	}
	b := buf[gap : gap+n]
	tpid, tci, tagged := vlanOf(oob[:oobn])
	if !tagged || n < vnetHeader+12 {
		return b, nil
	}
	copy(buf, b[:vnetHeader+12])
	b = buf[:gap+n]
	binary.BigEndian.PutUint16(b[vnetHeader+12:], tpid)
	binary.BigEndian.PutUint16(b[vnetHeader+14:], tci)
	if b[0]&unix.VIRTIO_NET_HDR_F_NEEDS_CSUM != 0 {
		start := binary.NativeEndian.Uint16(b[6:])
		binary.NativeEndian.PutUint16(b[6:], start+4)
	}
	return b, nil
}

// vlanOf reads struct tpacket_auxdata from the control messages.
func vlanOf(oob []byte) (tpid, tci uint16, ok bool) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0, 0, false
	}
	for _, m := range messages {
		if m.Header.Level != unix.SOL_PACKET || m.Header.Type != unix.PACKET_AUXDATA || len(m.Data) < 20 {
			continue
		}
		if binary.NativeEndian.Uint32(m.Data)&unix.TP_STATUS_VLAN_VALID == 0 {
			return 0, 0, false
		}
		return binary.NativeEndian.Uint16(m.Data[18:]), binary.NativeEndian.Uint16(m.Data[16:]), true
	}
	return 0, 0, false
}

// take does to one frame what its rule says.
func (w *way) take(b []byte) {
	at, counts := where{}, false
	if len(b) > vnetHeader {
		at, counts = locate(b[vnetHeader:], w.port)
	}
	if !counts {
		w.count(func(c *BoxCounts) { c.Other++ })
		w.send(b, false)
		return
	}
	var number uint64
	w.count(func(c *BoxCounts) { c.Counted++; number = c.Counted })
	switch r := w.plan[number]; r.Fault {
	case Drop:
		w.count(func(c *BoxCounts) { c.Dropped++ })
		return
	case Duplicate:
		w.count(func(c *BoxCounts) { c.Duplicated++ })
		w.pass(b)
	case Swap:
		w.count(func(c *BoxCounts) { c.Swapped++ })
		w.hold(heldFrame{bytes: b, behind: 1})
		return
	case Delay:
		w.count(func(c *BoxCounts) { c.Delayed++ })
		h := heldFrame{bytes: b, behind: r.Behind}
		if r.Hold > 0 {
			h.until = time.Now().Add(r.Hold)
		}
		w.hold(h)
		return
	case Corrupt:
		if err := damage(b[vnetHeader:], at, r.Part, w.rnd); err != nil {
			w.fail(fmt.Errorf("frame %d: %w", number, err))
			break
		}
		w.count(func(c *BoxCounts) { c.Corrupted++ })
	}
	w.pass(b)
}

// hold keeps a copy: the buffer is needed for the next frame.
func (w *way) hold(h heldFrame) {
	h.bytes = append([]byte(nil), h.bytes...)
	w.held = append(w.held, h)
}

// pass sends a counted frame, and then what was waiting for it.
func (w *way) pass(b []byte) {
	w.send(b, true)
	for i := range w.held {
		if w.held[i].behind > 0 {
			w.held[i].behind--
		}
	}
}

// release sends the held frames whose turn it is; on a quiet line also those
// that wait for frames that do not come.
func (w *way) release(quiet bool) {
	if len(w.held) == 0 {
		return
	}
	now := time.Now()
	keep := w.held[:0]
	for _, h := range w.held {
		if timed := !h.until.IsZero(); timed && now.Before(h.until) || !timed && h.behind > 0 && !quiet {
			keep = append(keep, h)
			continue
		}
		w.send(h.bytes, true)
	}
	clear(w.held[len(keep):])
	w.held = keep
}

// send retries while the next ring is full: the box does not lose by itself.
func (w *way) send(b []byte, counted bool) {
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Microsecond) {
		err := w.write(b, counted)
		switch {
		case err == nil:
			return
		case errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
			if time.Now().Before(deadline) {
				continue
			}
		}
		w.count(func(c *BoxCounts) { c.Lost++ })
		w.fail(fmt.Errorf("send %d bytes: %w", len(b)-vnetHeader, err))
		return
	}
}

// write sends and counts in one step: who has the frame finds it counted.
func (w *way) write(b []byte, counted bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := unix.Write(w.out, b)
	if err == nil && counted {
		w.counts.Sent++
	}
	return err
}

func (w *way) count(f func(*BoxCounts)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(&w.counts)
}

// fail keeps the first few errors.
func (w *way) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.errs) < 5 {
		w.errs = append(w.errs, err)
	}
}

// read adds what the socket had no room for. PACKET_STATISTICS starts again
// from zero with each reading.
func (w *way) read() (BoxCounts, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, err := unix.GetsockoptTpacketStats(w.in, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return w.counts, fmt.Errorf("fault box: socket statistics: %w", err)
	}
	w.counts.Lost += uint64(s.Drops)
	return w.counts, nil
}

// verdict is what the test must hear of at its end.
func (w *way) verdict(which Way) error {
	name := [...]string{"a to b", "b to a"}[which]
	w.mu.Lock()
	defer w.mu.Unlock()
	errs := append([]error(nil), w.errs...)
	if n := w.counts.Lost; n > 0 {
		errs = append(errs, fmt.Errorf("fault box, %s: lost %d frames that no rule named", name, n))
	}
	return errors.Join(errs...)
}

// close reads the last statistics and closes the socket this way receives on.
func (w *way) close() error {
	_, err := w.read()
	return errors.Join(err, unix.Close(w.in))
}
