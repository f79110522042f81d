package nic_test

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"linerate/internal/lab/veth"
	"linerate/internal/nic"
)

func TestOpenFacts(t *testing.T) {
	l := lab(t, 3)
	p := port(t, l, veth.A)
	if p.Driver != "veth" || p.Speed != 10_000_000_000 || p.RxQueues != 3 || p.TxQueues != 3 || p.PCI != "" ||
		p.NUMANode != -1 || !p.Up || !p.Carrier || p.PeerIndex == 0 || !strings.HasPrefix(p.Alias, "linerate ") {
		t.Errorf("%+v", p)
	}
	if p.Endpoint() != l.A() {
		t.Errorf("endpoint %s, want %s", p.Endpoint(), l.A())
	}
	inside(t, l, veth.B, netlink.LinkSetDown)
	if err := p.Refresh(); err != nil || p.Carrier || !p.Up {
		t.Errorf("peer down: up %v, carrier %v, %v", p.Up, p.Carrier, err)
	}
}

func TestOpenNamesWhatExists(t *testing.T) {
	l := lab(t, 1)
	_, err := nic.Open(l.NS(veth.A), "eth7")
	var nf *nic.NotFoundError
	if !errors.As(err, &nf) || !strings.Contains(err.Error(), "lr0") || !strings.Contains(err.Error(), l.Namespace(veth.A)) {
		t.Errorf("%v: want the namespace and the interfaces it has", err)
	}
}

func TestXDPIsReadBack(t *testing.T) {
	l := lab(t, 1)
	p := port(t, l, veth.B)
	if id, _, mode, err := p.XDP(); id != 0 || mode != "none" || err != nil {
		t.Errorf("without a program: %d %s %v", id, mode, err)
	}
	for mode, flag := range map[string]link.XDPAttachFlags{"native": link.XDPDriverMode, "generic": link.XDPGenericMode} {
		lk := attach(t, l, veth.B, verdict(xdpPass), flag)
		id, name, got, err := p.XDP()
		if id == 0 || name != "test_verdict" || got != mode || err != nil {
			t.Errorf("%s: %d %q %s %v", mode, id, name, got, err)
		}
		if c := counters(t, p); c.XDP != mode {
			t.Errorf("counters say %s, want %s", c.XDP, mode)
		}
		if err := lk.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDefaultRoute(t *testing.T) {
	l := lab(t, 1)
	p := port(t, l, veth.A)
	check := func(want bool, when string) {
		t.Helper()
		if got, err := p.DefaultRoute(); got != want || err != nil {
			t.Errorf("%s: %v, %v; want %v", when, got, err, want)
		}
	}
	check(false, "no default")
	for _, table := range []int{unix.RT_TABLE_MAIN, 100} {
		r := &netlink.Route{Gw: net.IPv4(198, 18, 0, 2), Table: table}
		add := func(k netlink.Link) error { r.LinkIndex = k.Attrs().Index; return netlink.RouteAdd(r) }
		inside(t, l, veth.A, add)
		check(true, "IPv4")
		inside(t, l, veth.A, func(netlink.Link) error { return netlink.RouteDel(r) })
		check(false, "removed")
	}
	inside(t, l, veth.A, func(netlink.Link) error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		all := &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: lo.Attrs().Index, Dst: all, Scope: netlink.SCOPE_LINK})
	})
	check(false, "default through loopback")
}

func TestDefaultRouteIPv6(t *testing.T) {
	l := lab(t, 1)
	p := port(t, l, veth.A)
	on := func(name string) error {
		return os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("0"), 0)
	}
	inside(t, l, veth.A, func(k netlink.Link) error {
		if err := on("lr0"); err != nil {
			return err
		}
		_, all, _ := net.ParseCIDR("::/0")
		return netlink.RouteAdd(&netlink.Route{LinkIndex: k.Attrs().Index, Dst: all})
	})
	if got, err := p.DefaultRoute(); !got || err != nil {
		t.Errorf("IPv6 default: %v, %v", got, err)
	}
}

func TestNextHop(t *testing.T) {
	l := lab(t, 1)
	p := port(t, l, veth.A)
	peer := veth.Addr(veth.B)
	h, err := p.NextHop(peer)
	if err != nil || h.MAC != veth.MAC(veth.B) || h.Source != veth.Addr(veth.A) || h.Gateway.IsValid() || h.IfIndex != p.Index {
		t.Errorf("on the link: %+v, %v", h, err)
	}
	far := netip.MustParseAddr("203.0.113.9")
	if _, err := p.NextHop(far); !errors.Is(err, unix.ENETUNREACH) {
		t.Errorf("no route: %v, want ENETUNREACH", err)
	}
	inside(t, l, veth.A, func(k netlink.Link) error {
		return netlink.RouteAdd(&netlink.Route{LinkIndex: k.Attrs().Index, Gw: peer.AsSlice()})
	})
	if h, err = p.NextHop(far); err != nil || h.MAC != veth.MAC(veth.B) || h.Gateway != peer {
		t.Errorf("by the gateway: %+v, %v", h, err)
	}
	before := counters(t, p)
	var ne *NeighbourError
	if _, err = p.NextHop(netip.MustParseAddr("198.18.0.77")); !errors.As(err, &ne) {
		t.Errorf("unknown neighbour: %v", err)
	}
	if d, _ := counters(t, p).DeviceTx().Sub(before.DeviceTx()); *d.Frames != 0 {
		t.Errorf("looking a neighbour up sent %d frames", *d.Frames)
	}
	if mac, err := p.NeighbourMAC(peer); err != nil || mac != veth.MAC(veth.B) {
		t.Errorf("neighbour: %x, %v", mac, err)
	}
}

// NeighbourError is nic.NeighbourError, for errors.As above.
type NeighbourError = nic.NeighbourError

func TestCarriesSSH(t *testing.T) {
	l := lab(t, 1)
	p := port(t, l, veth.B)
	t.Setenv("SSH_CONNECTION", "")
	if got, err := p.CarriesSSH(); got || err != nil {
		t.Errorf("idle: %v, %v", got, err)
	}
	for addr, want := range map[string]bool{"198.18.0.2": true, "198.18.0.3": false} {
		t.Setenv("SSH_CONNECTION", "192.0.2.1 50000 "+addr+" 22")
		if got, err := p.CarriesSSH(); got != want || err != nil {
			t.Errorf("session at %s: %v, %v", addr, got, err)
		}
	}
	t.Setenv("SSH_CONNECTION", "")
	connect22(t, l)
	if got, err := p.CarriesSSH(); !got || err != nil {
		t.Errorf("established connection to port 22: %v, %v", got, err)
	}
	if got, err := port(t, l, veth.A).CarriesSSH(); got || err != nil {
		t.Errorf("the client's end: %v, %v; only the server's is cut off by us", got, err)
	}
}

// connect22 makes a TCP connection from A to port 22 of B.
func connect22(t *testing.T, l *veth.Lab) {
	t.Helper()
	socket := func(e veth.End, use func(fd int) error) {
		err := l.NS(e).Do(func() error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			t.Cleanup(func() { unix.Close(fd) })
			return use(fd)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	at := &unix.SockaddrInet4{Port: 22, Addr: veth.Addr(veth.B).As4()}
	socket(veth.B, func(fd int) error {
		if err := unix.Bind(fd, at); err != nil {
			return err
		}
		return unix.Listen(fd, 1)
	})
	socket(veth.A, func(fd int) error { return unix.Connect(fd, at) })
}

// TestQueueHolder: an AF_XDP socket with a mapped fill ring is found.
func TestQueueHolder(t *testing.T) {
	l := lab(t, 1)
	p := port(t, l, veth.B)
	if desc, _ := nic.QueueHolder(p, 0); strings.Contains(desc, "nic.test") {
		t.Errorf("nobody holds it: %q", desc)
	}
	var ring []byte
	err := l.NS(veth.B).Do(func() error {
		fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		t.Cleanup(func() { unix.Close(fd) })
		if err := unix.SetsockoptInt(fd, unix.SOL_XDP, unix.XDP_UMEM_FILL_RING, 64); err != nil {
			return err
		}
		ring, err = unix.Mmap(fd, unix.XDP_UMEM_PGOFF_FILL_RING, 4096, unix.PROT_READ, unix.MAP_SHARED)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(ring)
	desc, guess := nic.QueueHolder(p, 0)
	if guess && !strings.Contains(desc, "(nic.test)") {
		t.Errorf("guess: %q, want this process", desc)
	}
	if !guess && desc != "" {
		t.Errorf("%q is said to hold a queue that no socket is bound to", desc)
	}
}

func TestHostFacts(t *testing.T) {
	h := nic.HostFacts()
	if h.Kernel == "" || h.CPU == "" || h.CPUs < 1 || h.Architecture == "" {
		t.Errorf("%+v", h)
	}
}
