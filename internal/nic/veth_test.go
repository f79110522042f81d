package nic_test

import (
	"testing"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"linerate/internal/lab/veth"
	"linerate/internal/nic"
)

// fact is what 1,000 frames from A move when B is set up in one way.
type fact struct {
	name  string
	b     asm.Instructions // program of B, nil for none
	mode  link.XDPAttachFlags
	aPass bool // A has a native program too, and so NAPI
	want  map[nic.Role]uint64
	wantA map[nic.Role]uint64
}

const frames = 1000

func vethFacts(indexB int) []fact {
	native, generic := link.XDPDriverMode, link.XDPGenericMode
	sent := map[nic.Role]uint64{nic.RoleDeviceTx: frames, nic.RoleDeviceTxDropped: 0}
	taken := func(r nic.Role) map[nic.Role]uint64 {
		return map[nic.Role]uint64{nic.RoleDeviceRx: frames, nic.RoleRxQueue: frames, r: frames}
	}
	return []fact{
		{name: "no program", want: map[nic.Role]uint64{nic.RoleDeviceRx: frames, nic.RoleRxQueue: 0}, wantA: sent},
		{name: "generic drop", b: verdict(xdpDrop), mode: generic,
			want: map[nic.Role]uint64{nic.RoleDeviceRx: frames, nic.RoleRxQueue: 0, nic.RoleXDPDrops: 0}, wantA: sent},
		{name: "native drop", b: verdict(xdpDrop), mode: native, want: taken(nic.RoleXDPDrops), wantA: sent},
		{name: "native aborted", b: verdict(xdpAborted), mode: native, want: taken(nic.RoleXDPDrops), wantA: sent},
		{name: "native pass", b: verdict(xdpPass), mode: native, want: taken(nic.RoleDeviceRx), wantA: sent},
		{name: "transmit, no NAPI at A", b: verdict(xdpTx), mode: native, want: taken(nic.RoleXDPTxErrors), wantA: sent},
		{name: "transmit", b: verdict(xdpTx), mode: native, aPass: true, want: taken(nic.RoleXDPTx),
			wantA: map[nic.Role]uint64{nic.RoleDeviceTx: frames, nic.RoleDeviceRx: frames}},
		{name: "redirect to nothing", b: redirect(77), mode: native, want: taken(nic.RoleRxDriverDrops), wantA: sent},
		{name: "redirect to loopback", b: redirect(1), mode: native, want: taken(nic.RoleRxDriverDrops), wantA: sent},
		{name: "redirect, no NAPI at A", b: redirect(indexB), mode: native, want: taken(nic.RoleRxDriverDrops), wantA: sent},
		{name: "redirect", b: redirect(indexB), mode: native, aPass: true, want: map[nic.Role]uint64{
			nic.RoleDeviceRx: frames, nic.RoleXDPRedirect: frames, nic.RoleRxDriverDrops: 0,
			nic.RoleXDPXmit: frames, nic.RoleXDPXmitErrors: 0}, wantA: sent},
	}
}

// TestVethFacts holds the table of roles_veth.go against the running kernel.
func TestVethFacts(t *testing.T) {
	l := lab(t, 2)
	for _, f := range vethFacts(port(t, l, veth.B).Index) {
		t.Run(f.name, func(t *testing.T) {
			l := lab(t, 2)
			if f.b != nil {
				attach(t, l, veth.B, f.b, f.mode)
			}
			if f.aPass {
				attach(t, l, veth.A, verdict(xdpPass), link.XDPDriverMode)
			}
			pa, pb := port(t, l, veth.A), port(t, l, veth.B)
			a, b := counters(t, pa), counters(t, pb)
			if ok, refused := send(t, l, frames); ok != frames {
				t.Fatalf("accepted %d, refused %d", ok, refused)
			}
			compare(t, "B", b, settled(t, pb), f.want)
			compare(t, "A", a, settled(t, pa), f.wantA)
		})
	}
}

func compare(t *testing.T, end string, before, after nic.Counters, want map[nic.Role]uint64) {
	t.Helper()
	for role, n := range want {
		d, reset := after.Read(role).Sub(before.Read(role))
		if reset || d.Frames == nil {
			t.Errorf("%s %s: reset %v, %+v", end, role, reset, d)
			continue
		}
		if *d.Frames != n {
			t.Errorf("%s %s (%s): %d, want %d", end, role, d.Counter, *d.Frames, n)
		}
	}
}

func TestVethLinkDown(t *testing.T) {
	l := lab(t, 1)
	attach(t, l, veth.B, verdict(xdpDrop), link.XDPDriverMode)
	pa, pb := port(t, l, veth.A), port(t, l, veth.B)
	a, b := counters(t, pa), counters(t, pb)
	inside(t, l, veth.B, netlink.LinkSetDown)
	if ok, refused := send(t, l, frames); ok != 0 || refused != frames {
		t.Errorf("accepted %d, refused %d; want all refused", ok, refused)
	}
	compare(t, "A", a, settled(t, pa), map[nic.Role]uint64{nic.RoleDeviceTx: 0, nic.RoleDeviceTxDropped: frames})
	compare(t, "B", b, settled(t, pb), map[nic.Role]uint64{nic.RoleDeviceRx: 0})
}

// TestVethRingFull: what the sender was refused is tx_dropped, what it was not
// is what the peer took. The receiver shares the sender's processor and gives
// way to it, so that its ring overflows.
func TestVethRingFull(t *testing.T) {
	l := lab(t, 1)
	attach(t, l, veth.B, verdict(xdpDrop), link.XDPDriverMode)
	slowNAPI(t, l, veth.B)
	pa, pb := port(t, l, veth.A), port(t, l, veth.B)
	a, b := counters(t, pa), counters(t, pb)
	ok, refused := send(t, l, 2*frames)
	if refused == 0 {
		t.Errorf("nothing was refused: the ring did not overflow")
	}
	compare(t, "B", b, settled(t, pb), map[nic.Role]uint64{nic.RoleDeviceRx: ok})
	compare(t, "A", a, settled(t, pa), map[nic.Role]uint64{nic.RoleDeviceTx: ok, nic.RoleDeviceTxDropped: refused})
}

// TestVethRedirectRingFull: a redirect that finds the next ring full has
// already been counted as a success at the receiver.
func TestVethRedirectRingFull(t *testing.T) {
	l := lab(t, 1)
	pa, pb := port(t, l, veth.A), port(t, l, veth.B)
	attach(t, l, veth.A, verdict(xdpDrop), link.XDPDriverMode)
	attach(t, l, veth.B, redirect(pb.Index), link.XDPDriverMode)
	slowNAPI(t, l, veth.A)
	a, b := counters(t, pa), counters(t, pb)
	const n = 2 * frames
	send(t, l, n)
	back := settled(t, pa)
	took, _ := back.DeviceRx().Sub(a.DeviceRx())
	if *took.Frames == n {
		t.Error("everything came back: the ring did not overflow")
	}
	compare(t, "B", b, settled(t, pb), map[nic.Role]uint64{
		nic.RoleXDPRedirect: n, nic.RoleXDPXmit: *took.Frames, nic.RoleXDPXmitErrors: n - *took.Frames,
		nic.RoleRxDriverDrops: 0, nic.RoleDeviceTxDropped: n - *took.Frames,
	})
}

// slowNAPI puts the NAPI thread of one end on the sender's processor and makes
// the sender a real-time thread: the receiver runs only when it rests.
func slowNAPI(t *testing.T, l *veth.Lab, e veth.End) {
	t.Helper()
	if err := l.SetThreadedNAPI(e, true); err != nil {
		t.Fatal(err)
	}
	if err := l.PinNAPI(e, 0); err != nil {
		t.Fatal(err)
	}
	inside(t, l, veth.A, func(netlink.Link) error {
		var set unix.CPUSet
		set.Set(0)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return err
		}
		fifo := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
		return unix.SchedSetAttr(0, fifo, 0)
	})
}
