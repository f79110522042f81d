package bpf

import (
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// eventually waits for what softirqs do a little later.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 5 s", what)
		}
	}
}

// stackSend sends a frame n times through the host's stack.
func stackSend(t testing.TB, ifindex int, frame []byte, n int) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(fd)
	for range n {
		must(t, unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: ifindex}))
	}
}

func newTrace(t testing.TB, ifindexes ...int) *Trace {
	t.Helper()
	requireCaps(t)
	tr, err := LoadTrace(ifindexes)
	must(t, err)
	closing(t, tr)
	must(t, tr.Attach())
	return tr
}

// wantTrace waits for exactly these counts, whose namespace is the trace's own.
func wantTrace(t *testing.T, tr *Trace, want ...TraceCount) {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Stat("/proc/thread-self/ns/net", &st))
	for i := range want {
		want[i].Netns = uint32(st.Ino)
	}
	slices.SortFunc(want, compareCounts)
	var got []TraceCount
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		var err error
		got, err = tr.Counters()
		must(t, err)
		if cmp.Equal(want, got) {
			break
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
	if missed, err := tr.Missed(); err != nil || missed != 0 {
		t.Errorf("%d events missed, %v", missed, err)
	}
}

func attached(t testing.TB, prog *ebpf.Program, ifindex int) {
	t.Helper()
	a, err := Attach(prog, ifindex, ModeNative)
	must(t, err)
	closing(t, a)
}

// What the stack sends passes net_dev_xmit, what AF_XDP sends does not; a
// redirection that fails counts under its errno either way.
func TestTraceStackAndRedirectErrors(t *testing.T) {
	p := newPair(t, 1, 1500)
	a, b := p.A.Attrs().Index, p.B.Attrs().Index
	s := newSteer(t, SteerConfig{})
	must(t, s.SetSocket(0, xskFD(t))) // never bound: takes no frame
	attached(t, s.Program(), b)
	attached(t, newPass(t).Program(), a)
	tr := newTrace(t, a, b)
	frame := udp4(t, longTag())

	stackSend(t, a, frame, 10)
	xmit := TraceCount{Target: Target{Ifindex: a}, Point: PointNetDevXmit, CodeName: "NETDEV_TX_OK", Events: 10, Sent: 10, Bytes: 600}
	redirect := func(n uint64) TraceCount {
		return TraceCount{Target: Target{Ifindex: b}, Point: PointXDPRedirectErr, Code: int(unix.ENXIO), CodeName: "ENXIO", Events: n, Dropped: n}
	}
	wantTrace(t, tr, xmit, redirect(10))

	openXSK(t, a).send(t, frame, 7)
	wantTrace(t, tr, xmit, redirect(17))
	moved := map[Reason]uint64{}
	all, err := s.Counters()
	must(t, err)
	for r, n := range all[0].Frames {
		if n > 0 {
			moved[r] = n
		}
	}
	if d := cmp.Diff(map[Reason]uint64{ReasonSeen: 17, ReasonRedirected: 17}, moved); d != "" {
		t.Errorf("steer (-want +got):\n%s", d)
	}
}

// A socket that is bound but has no buffers refuses with an errno of its own.
func TestTraceEmptyFillRing(t *testing.T) {
	p := newPair(t, 1, 1500)
	a, b := p.A.Attrs().Index, p.B.Attrs().Index
	s := newSteer(t, SteerConfig{})
	attached(t, s.Program(), b)
	must(t, s.SetSocket(0, openXSK(t, b).fd))
	tr := newTrace(t, b)
	stackSend(t, a, udp4(t, longTag()), 3)
	code := unix.ENOMEM // ENOBUFS is a full RX ring
	wantTrace(t, tr, TraceCount{Target: Target{Ifindex: b}, Point: PointXDPRedirectErr,
		Code: int(code), CodeName: unix.ErrnoName(code), Events: 3, Dropped: 3})
}

// xdpAsm attaches a program of a few instructions, as another's would be.
func xdpAsm(t testing.TB, ifindex int, ins ...asm.Instruction) {
	t.Helper()
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "GPL", Instructions: ins})
	must(t, err)
	closing(t, prog)
	attached(t, prog, ifindex)
}

func TestTraceException(t *testing.T) {
	p := newPair(t, 1, 1500)
	a, b := p.A.Attrs().Index, p.B.Attrs().Index
	xdpAsm(t, b, asm.Mov.Imm(asm.R0, 0), asm.Return())
	tr := newTrace(t, b)
	stackSend(t, a, arp(t), 4)
	wantTrace(t, tr, TraceCount{Target: Target{Ifindex: b}, Point: PointXDPException,
		Code: 0, CodeName: "XDP_ABORTED", Events: 4, Dropped: 4})
}

// XDP_TX into a peer that takes no XDP frames drops them; into one that does, sends.
func TestTraceBulkTx(t *testing.T) {
	p := newPair(t, 1, 1500)
	a, b := p.A.Attrs().Index, p.B.Attrs().Index
	xdpAsm(t, b, asm.Mov.Imm(asm.R0, 3), asm.Return())
	tr := newTrace(t, b)
	count := func(code unix.Errno, name string, sent, dropped uint64) TraceCount {
		return TraceCount{Target: Target{Ifindex: b}, Point: PointXDPBulkTx,
			Code: int(code), CodeName: name, Events: 1, Sent: sent, Dropped: dropped}
	}
	stackSend(t, a, arp(t), 1)
	wantTrace(t, tr, count(unix.ENXIO, "ENXIO", 0, 1))
	attached(t, newSink(t, SinkConfig{Match: MatchAll}).Program(), a)
	stackSend(t, a, arp(t), 1)
	wantTrace(t, tr, count(0, "0", 1, 0), count(unix.ENXIO, "ENXIO", 0, 1))
}

// A redirection to a device counts at the device it goes to.
func TestTraceDevmapXmit(t *testing.T) {
	p := newPair(t, 1, 1500)
	a, b := p.A.Attrs().Index, p.B.Attrs().Index
	xdpAsm(t, b, asm.Mov.Imm(asm.R1, int32(b)), asm.Mov.Imm(asm.R2, 0), asm.FnRedirect.Call(), asm.Return())
	attached(t, newSink(t, SinkConfig{Match: MatchAll}).Program(), a)
	tr := newTrace(t, b)
	stackSend(t, a, arp(t), 1)
	wantTrace(t, tr, TraceCount{Target: Target{Ifindex: b}, Point: PointXDPDevmapXmit,
		CodeName: "0", Events: 1, Sent: 1})
}

// Drops of the stack are counted on request only, under the kernel's own names.
func TestTraceDrops(t *testing.T) {
	p := newPair(t, 1, 1500)
	a, b := p.A.Attrs().Index, p.B.Attrs().Index
	tr := newTrace(t, b)
	unknown := patched(arp(t), 12, 0x88, 0xb5) // an EtherType that nobody takes
	stackSend(t, a, unknown, 3)
	time.Sleep(20 * time.Millisecond)
	wantTrace(t, tr)
	must(t, tr.AttachDrops())
	must(t, tr.AttachDrops())
	stackSend(t, a, unknown, 3)
	var got []TraceCount
	eventually(t, "three drops", func() bool {
		var err error
		got, err = tr.Counters()
		must(t, err)
		return len(got) == 1 && got[0].Events == 3
	})
	if c := got[0]; c.Ifindex != b || c.Point != PointKfreeSkb || c.CodeName != "UNHANDLED_PROTO" || c.Dropped != 3 {
		t.Errorf("got %+v", c)
	}
}

// An interface of the same index in another namespace is another interface.
func TestTraceOtherNamespace(t *testing.T) {
	p := newPair(t, 1, 1500)
	a := p.A.Attrs().Index
	tr := newTrace(t, a)
	twin := make(chan int)
	go func() { // on a thread of its own, which ends with it
		defer close(twin)
		other := newPair(t, 1, 1500).A.Attrs().Index
		stackSend(t, other, arp(t), 5)
		twin <- other
	}()
	if other := <-twin; other != a {
		t.Fatalf("the other namespace's interface has index %d, ours %d", other, a)
	}
	wantTrace(t, tr)
	stackSend(t, a, arp(t), 1)
	wantTrace(t, tr, TraceCount{Target: Target{Ifindex: a}, Point: PointNetDevXmit,
		CodeName: "NETDEV_TX_OK", Events: 1, Sent: 1, Bytes: uint64(len(arp(t)))})
}

func TestCodeNames(t *testing.T) {
	tr := &Trace{names: map[uint32]string{2: "NOT_SPECIFIED"}}
	for _, c := range []struct {
		point Point
		code  int
		want  string
	}{
		{PointXDPRedirectErr, int(unix.ENOSPC), "ENOSPC"},
		{PointXDPRedirectErr, 9999, "9999"},
		{PointXDPException, 3, "XDP_TX"},
		{PointXDPException, 77, "77"},
		{PointNetDevXmit, 16, "NETDEV_TX_BUSY"},
		{PointKfreeSkb, 2, "NOT_SPECIFIED"},
		{PointKfreeSkb, 3, "3"},
	} {
		if got := tr.codeName(c.point, c.code); got != c.want {
			t.Errorf("%s %d: %s, want %s", c.point, c.code, got, c.want)
		}
	}
}
