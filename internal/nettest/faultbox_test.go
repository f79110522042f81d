package nettest

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"linerate/internal/lab/veth"
	"linerate/internal/netns"
)

// udpFrame is a frame of size bytes to port, with number i and the magic of a
// long tag in the payload's last 18 bytes, behind vlans tags.
func udpFrame(i uint32, size int, port uint16, vlans ...uint16) []byte {
	b := make([]byte, 0, size)
	dst, src := veth.MAC(veth.B), veth.MAC(veth.A)
	b = append(append(b, dst[:]...), src[:]...)
	for _, v := range vlans {
		b = binary.BigEndian.AppendUint16(append(b, 0x81, 0x00), v)
	}
	b = append(b, 0x08, 0x00)
	l3 := len(b)
	b = b[:size]
	ip := b[l3:]
	ip[0], ip[8], ip[9] = 0x45, 64, protoUDP
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	copy(ip[12:], []byte{198, 18, 0, 1, 198, 18, 0, 2})
	udp := ip[20:]
	binary.BigEndian.PutUint16(udp, 49184)
	binary.BigEndian.PutUint16(udp[2:], port)
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	udp[6], udp[7] = 0x12, 0x34
	tag := b[size-longTag:]
	binary.BigEndian.PutUint16(tag, longMagic)
	binary.BigEndian.PutUint32(tag[4:], i)
	return b
}

func seqOf(b []byte) uint32 { return binary.BigEndian.Uint32(b[len(b)-longTag+4:]) }

// wire is a packet socket at one end, that takes VLAN tags as they come.
type wire struct {
	t     *testing.T
	fd    int
	index int
}

func openWire(t *testing.T, ns *netns.NS, kind uint16) *wire {
	t.Helper()
	w := &wire{t: t}
	err := ns.Do(func() error {
		link, err := net.InterfaceByName(veth.Interface)
		if err != nil {
			return err
		}
		w.index = link.Index
		w.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return errors.Join(
			unix.SetsockoptInt(w.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
			unix.SetsockoptInt(w.fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1),
			unix.SetsockoptInt(w.fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1),
			unix.SetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20),
			unix.SetsockoptTimeval(w.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5}),
			unix.Bind(w.fd, &unix.SockaddrLinklayer{Protocol: htons(kind), Ifindex: link.Index}),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(w.fd) })
	return w
}

func (w *wire) send(frames ...[]byte) {
	w.t.Helper()
	for _, f := range frames {
		for {
			err := unix.Sendto(w.fd, f, 0, &unix.SockaddrLinklayer{Ifindex: w.index})
			if err == nil {
				break
			}
			if !errors.Is(err, unix.ENOBUFS) {
				w.t.Fatal(err)
			}
		}
	}
}

// take reads n frames; a frame that never comes ends the test.
func (w *wire) take(n int) (frames [][]byte) {
	w.t.Helper()
	buf, oob := make([]byte, 65536), make([]byte, 256)
	for len(frames) < n {
		size, oobn, _, _, err := unix.Recvmsg(w.fd, buf, oob, 0)
		if errors.Is(err, unix.EINTR) {
			continue // a receive with a time limit is not restarted
		}
		if err != nil {
			w.t.Fatalf("after %d of %d frames: %v", len(frames), n, err)
		}
		b := slices.Clone(buf[:size])
		if tpid, tci, ok := vlanOf(oob[:oobn]); ok {
			b = slices.Insert(b, 12, byte(tpid>>8), byte(tpid), byte(tci>>8), byte(tci))
		}
		frames = append(frames, b)
	}
	return frames
}

// nothing says that no further frame comes.
func (w *wire) nothing() {
	w.t.Helper()
	time.Sleep(3 * idle) // held frames would be released by now
	if n, _, err := unix.Recvfrom(w.fd, make([]byte, 2048), unix.MSG_DONTWAIT); err == nil {
		w.t.Errorf("a frame of %d bytes too many", n)
	}
}

func numbered(n int) (frames [][]byte) {
	for i := range n {
		frames = append(frames, udpFrame(uint32(i+1), 100, defaultPort))
	}
	return frames
}

func order(frames [][]byte) (seq []uint32) {
	for _, f := range frames {
		seq = append(seq, seqOf(f))
	}
	return seq
}

func counts(t *testing.T, b *Box, w Way) BoxCounts {
	t.Helper()
	c, err := b.Counts(w)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestBoxForwardsEverything(t *testing.T) {
	CheckNothingLeft(t)
	b := FaultBox(t, BoxConfig{})
	a, z := openWire(t, b.NS(veth.A), unix.ETH_P_ALL), openWire(t, b.NS(veth.B), unix.ETH_P_ALL)
	sent := [][]byte{
		udpFrame(1, 60, defaultPort), udpFrame(2, 1514, defaultPort), udpFrame(3, 64, defaultPort, 7),
		udpFrame(4, 1518, defaultPort, 4095), udpFrame(5, 80, defaultPort, 100, 200), udpFrame(6, 60, 9),
		append(slices.Clone(udpFrame(7, 60, 1)[:12]), make([]byte, 48)...),
	}
	a.send(sent...)
	for i, got := range z.take(len(sent)) {
		if !slices.Equal(got, sent[i]) {
			t.Errorf("frame %d: sent\n%x, got\n%x", i+1, sent[i], got)
		}
	}
	want := BoxCounts{Counted: 5, Other: 2, Sent: 5}
	if c := counts(t, b, AtoB); c != want {
		t.Errorf("%+v, want %+v", c, want)
	}
	z.send(udpFrame(1, 60, defaultPort))
	a.take(1)
	if c := counts(t, b, BtoA); c != (BoxCounts{Counted: 1, Sent: 1}) {
		t.Errorf("back: %+v", c)
	}
	a.nothing()
	z.nothing()
}

func TestBoxOrder(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules []Rule
		send  int
		want  []uint32
		count BoxCounts
	}{
		{"drop", []Rule{{Fault: Drop, Frames: []uint64{1, 3}}}, 4, []uint32{2, 4}, BoxCounts{Counted: 4, Sent: 2, Dropped: 2}},
		{"duplicate", []Rule{{Fault: Duplicate, Frames: []uint64{2}}}, 3, []uint32{1, 2, 2, 3}, BoxCounts{Counted: 3, Sent: 4, Duplicated: 1}},
		{"swap", []Rule{{Fault: Swap, Frames: []uint64{2}}}, 4, []uint32{1, 3, 2, 4}, BoxCounts{Counted: 4, Sent: 4, Swapped: 1}},
		{"swap the last", []Rule{{Fault: Swap, Frames: []uint64{3}}}, 3, []uint32{1, 2, 3}, BoxCounts{Counted: 3, Sent: 3, Swapped: 1}},
		{"behind three", []Rule{{Fault: Delay, Behind: 3, Frames: []uint64{1}}}, 5, []uint32{2, 3, 4, 1, 5}, BoxCounts{Counted: 5, Sent: 5, Delayed: 1}},
		{"hold", []Rule{{Fault: Delay, Hold: 100 * time.Millisecond, Frames: []uint64{1}}}, 3, []uint32{2, 3, 1}, BoxCounts{Counted: 3, Sent: 3, Delayed: 1}},
		{"first rule wins", []Rule{{Fault: Drop, Frames: []uint64{1}}, {Fault: Duplicate, Frames: []uint64{1, 2}}}, 2,
			[]uint32{2, 2}, BoxCounts{Counted: 2, Sent: 2, Dropped: 1, Duplicated: 1}},
		{"other way", []Rule{{Way: BtoA, Fault: Drop, Frames: []uint64{1}}}, 2, []uint32{1, 2}, BoxCounts{Counted: 2, Sent: 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := FaultBox(t, BoxConfig{Rules: c.rules})
			a, z := openWire(t, b.NS(veth.A), unix.ETH_P_ALL), openWire(t, b.NS(veth.B), unix.ETH_P_ALL)
			a.send(numbered(c.send)...)
			if got := order(z.take(len(c.want))); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
			z.nothing()
			if got := counts(t, b, AtoB); got != c.count {
				t.Errorf("%+v, want %+v", got, c.count)
			}
		})
	}
}

func TestBoxCorrupts(t *testing.T) {
	part := map[Part]func(b []byte) []byte{
		Payload:  func(b []byte) []byte { return b[42 : len(b)-longTag] },
		Tag:      func(b []byte) []byte { return b[len(b)-longTag+2:] },
		Magic:    func(b []byte) []byte { return b[len(b)-longTag:][:2] },
		Checksum: func(b []byte) []byte { return b[40:42] },
	}
	for p, of := range part {
		t.Run(p.String(), func(t *testing.T) {
			b := FaultBox(t, BoxConfig{Seed: 3, Rules: []Rule{{Fault: Corrupt, Part: p, Frames: []uint64{2}}}})
			a, z := openWire(t, b.NS(veth.A), unix.ETH_P_ALL), openWire(t, b.NS(veth.B), unix.ETH_P_ALL)
			sent := numbered(3)
			a.send(sent...)
			got := z.take(3)
			if !slices.Equal(got[0], sent[0]) || !slices.Equal(got[2], sent[2]) {
				t.Error("a frame that no rule names was changed")
			}
			if slices.Equal(of(got[1]), of(sent[1])) {
				t.Error("the part is not damaged")
			}
			copy(of(got[1]), of(sent[1]))
			if !slices.Equal(got[1], sent[1]) {
				t.Errorf("more than the part is damaged:\n%x\n%x", got[1], sent[1])
			}
			if c := counts(t, b, AtoB); c != (BoxCounts{Counted: 3, Sent: 3, Corrupted: 1}) {
				t.Errorf("%+v", c)
			}
		})
	}
}

// TestBoxLosesNothing sends faster than the box forwards.
func TestBoxLosesNothing(t *testing.T) {
	b := FaultBox(t, BoxConfig{Rules: []Rule{{Fault: Drop, Frames: Pick(1, 100, 20_000)}}})
	a, z := openWire(t, b.NS(veth.A), unix.ETH_P_ALL), openWire(t, b.NS(veth.B), unix.ETH_P_IP)
	a.send(numbered(20_000)...)
	seq := order(z.take(19_900))
	if !slices.IsSorted(seq) {
		t.Error("out of order")
	}
	if c := counts(t, b, AtoB); c != (BoxCounts{Counted: 20_000, Sent: 19_900, Dropped: 100}) {
		t.Errorf("%+v", c)
	}
}

// TestBoxTellsOnItself: a frame it cannot send, and a rule it cannot follow,
// fail the test that uses it.
func TestBoxTellsOnItself(t *testing.T) {
	Require(t, Namespaces, RawSockets)
	ft := run(func(ft *fakeT) {
		b := FaultBox(ft, BoxConfig{Rules: []Rule{{Fault: Corrupt, Part: Payload, Frames: []uint64{1}}}})
		a := openWire(t, b.NS(veth.A), unix.ETH_P_ALL)
		a.send(udpFrame(1, 60, defaultPort)) // all of its payload is tag
		for counts(t, b, AtoB).Sent < 1 {
			time.Sleep(time.Millisecond)
		}
		err := b.NS(veth.B).Do(func() error {
			l, err := netlink.LinkByName(veth.Interface)
			if err != nil {
				return err
			}
			return netlink.LinkSetDown(l)
		})
		if err != nil {
			t.Error(err)
		}
		a.send(udpFrame(2, 60, defaultPort))
		for counts(t, b, AtoB).Lost < 1 {
			time.Sleep(time.Millisecond)
		}
	})
	if len(ft.errors) != 1 || !strings.Contains(ft.errors[0], "corrupt payload") || !strings.Contains(ft.errors[0], "lost 1 frames") {
		t.Errorf("%q", ft.errors)
	}
}

func TestBoxRefusesNonsense(t *testing.T) {
	for _, c := range []BoxConfig{
		{Rules: []Rule{{}}},
		{Rules: []Rule{{Fault: Corrupt, Frames: []uint64{1}}}},
		{Rules: []Rule{{Fault: Delay}}},
		{Rules: []Rule{{Fault: Delay, Hold: 1, Behind: 1}}},
		{Rules: []Rule{{Fault: Drop, Frames: []uint64{0}}}},
		{Rules: []Rule{{Fault: Drop, Way: 5}}},
		{Rules: []Rule{{Fault: Drop}}, XDP: &XDPRules{}},
	} {
		if b, err := newBox(c); err == nil {
			t.Errorf("%+v was built", c)
			_ = b.close()
		}
	}
}

func TestPick(t *testing.T) {
	got := Pick(7, 50, 1000)
	if len(got) != 50 || !slices.IsSorted(got) || got[0] < 1 || got[49] > 1000 || len(slices.Compact(slices.Clone(got))) != 50 {
		t.Errorf("%v", got)
	}
	if !slices.Equal(got, Pick(7, 50, 1000)) || slices.Equal(got, Pick(8, 50, 1000)) {
		t.Error("the seed does not choose")
	}
	if all := Pick(1, 10, 3); !slices.Equal(all, []uint64{1, 2, 3}) {
		t.Errorf("%v", all)
	}
}

func FuzzLocateAndDamage(f *testing.F) {
	f.Add(udpFrame(1, 60, defaultPort))
	f.Add(udpFrame(1, 100, defaultPort, 1, 2))
	f.Add(append([]byte{12: 0x86, 13: 0xdd, 14: 0x60, 20: protoUDP, 53: 0}, 0, 0, 0x1e, 0x61, 0, 8, 0, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		w, ok := locate(b, defaultPort)
		if !ok {
			return
		}
		if w.payload < 22 || w.payload > w.end || w.end > len(b) || w.tag >= 0 && (w.tag < w.payload || w.tag+w.tagLen != w.end) {
			t.Fatalf("%+v of %d bytes", w, len(b))
		}
		rnd := rand.New(rand.NewPCG(1, 1))
		for p := Payload; p <= Checksum; p++ {
			c := slices.Clone(b)
			if err := damage(c, w, p, rnd); (err == nil) == slices.Equal(b, c) {
				t.Errorf("%s: error %v, same bytes %v", p, err, slices.Equal(b, c))
			}
		}
	})
}
