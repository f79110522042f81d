package neighbor_test

import (
	"context"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"linerate/internal/lab/veth"
	"linerate/internal/neighbor"
	"linerate/internal/nettest"
	"linerate/internal/nic"
)

func TestMain(m *testing.M) { nettest.Main(m) }

var emulated = []neighbor.Range{
	{Lo: netip.MustParseAddr("198.18.0.10"), Hi: netip.MustParseAddr("198.18.0.13")},
	{Lo: netip.MustParseAddr("fd00:a::10"), Hi: netip.MustParseAddr("fd00:a::13")},
}

// respond starts a responder on end A of a lab.
func respond(t *testing.T, l *veth.Lab, every time.Duration) *neighbor.Responder {
	t.Helper()
	p, err := nic.Open(l.NS(veth.A), veth.Interface)
	if err != nil {
		t.Fatal(err)
	}
	r, err := neighbor.Open(neighbor.Config{Name: l.A(), IfIndex: p.Index, Do: p.NS.Do, MAC: p.MAC, Ranges: emulated, Every: every})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func middle(t *testing.T, l *veth.Lab) *nic.Port {
	t.Helper()
	p, err := nic.Open(l.NS(veth.Middle), veth.MiddleA)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ping sends one echo request to each address from the middle and waits for the
// answer.
func ping(t *testing.T, l *veth.Lab, network, from, to string, request []byte) {
	t.Helper()
	err := l.NS(veth.Middle).Do(func() error {
		conn, err := (&net.Dialer{LocalAddr: &net.IPAddr{IP: net.ParseIP(from)}}).Dial(network, to)
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(3 * time.Second)); err != nil {
			return err
		}
		if _, err := conn.Write(request); err != nil {
			return err
		}
		for b := make([]byte, 2000); ; {
			n, err := conn.Read(b)
			if err != nil || n > 20 && b[0]>>4 == 4 && b[20] == 0 || b[0] == 129 {
				return err
			}
		}
	})
	if err != nil {
		t.Errorf("ping %s: %v", to, err)
	}
}

// A kernel router resolves and pings addresses that no kernel owns, and only
// those.
func TestRouterResolvesEmulatedAddresses(t *testing.T) {
	nettest.Require(t, nettest.RawSockets)
	l := nettest.Router(t, veth.Config{})
	r := respond(t, l, 0)
	router := middle(t, l)
	for _, a := range []string{"198.18.0.10", "198.18.0.13", "fd00:a::10", "fd00:a::13"} {
		h, err := router.Resolve(context.Background(), netip.MustParseAddr(a))
		if err != nil || h.MAC != veth.MAC(veth.A) {
			t.Errorf("%s: %x, %v", a, h.MAC, err)
		}
	}
	if c := r.Counts(); c.ARP != 2 || c.Solicitation != 2 || c.Announced != 0 || c.Failed != 0 {
		t.Errorf("%+v", c)
	}
	if _, err := router.Resolve(context.Background(), netip.MustParseAddr("198.18.0.14")); err == nil {
		t.Error("198.18.0.14 is nobody's, and answers")
	}
	ping(t, l, "ip4:icmp", nettest.RouterToA4, "198.18.0.11", []byte{8, 0, 0xf7, 0xfe, 0, 1, 0, 0})
	ping(t, l, "ip6:ipv6-icmp", nettest.RouterToA6, "fd00:a::11", []byte{128, 0, 0, 0, 0, 1, 0, 0})
	if c := r.Counts(); c.Echo != 2 || c.Sent() != c.ARP+c.Solicitation+2 {
		t.Errorf("after two pings: %+v", c)
	}
}

// A router that is told to learns from the announcements alone, and from those
// that come by themselves.
func TestRouterLearnsFromAnnouncements(t *testing.T) {
	nettest.Require(t, nettest.RawSockets)
	l := nettest.Router(t, veth.Config{})
	router := middle(t, l)
	err := l.NS(veth.Middle).Do(func() error {
		for _, key := range []string{"ipv4/conf/toa/arp_accept", "ipv6/conf/toa/accept_untracked_na"} {
			if err := os.WriteFile("/proc/sys/net/"+key, []byte("1"), 0); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r := respond(t, l, 20*time.Millisecond)
	for _, a := range []string{"198.18.0.10", "198.18.0.13", "fd00:a::10", "fd00:a::13"} {
		var mac [6]byte
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end) && mac == ([6]byte{}); time.Sleep(time.Millisecond) {
			mac, err = router.NeighbourMAC(netip.MustParseAddr(a))
		}
		if err != nil || mac != veth.MAC(veth.A) {
			t.Errorf("%s: %x, %v", a, mac, err)
		}
	}
	if c := r.Counts(); c.Announced < 8 || c.ARP+c.Solicitation != 0 {
		t.Errorf("%+v", c)
	}
}

// A bridge learns where the address is, although nobody has asked.
func TestBridgeLearns(t *testing.T) {
	nettest.Require(t, nettest.RawSockets)
	l := nettest.Lab(t, veth.Config{Middle: true})
	var toA int
	err := l.NS(veth.Middle).Do(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = "bridge"
		br := &netlink.Bridge{LinkAttrs: attrs}
		if err := netlink.LinkAdd(br); err != nil {
			return err
		}
		for _, name := range []string{veth.MiddleA, veth.MiddleB} {
			port, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			if err := netlink.LinkSetMaster(port, br); err != nil {
				return err
			}
			if name == veth.MiddleA {
				toA = port.Attrs().Index
			}
		}
		return netlink.LinkSetUp(br)
	})
	if err != nil {
		t.Fatal(err)
	}
	learnt := func() (yes bool) {
		err := l.NS(veth.Middle).Do(func() error {
			entries, err := netlink.NeighList(toA, unix.AF_BRIDGE)
			mac := veth.MAC(veth.A)
			for _, e := range entries {
				yes = yes || [6]byte(e.HardwareAddr) == mac
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return yes
	}
	if learnt() {
		t.Error("the bridge knows A before it has said anything")
	}
	r := respond(t, l, time.Hour)
	r.Announce()
	for end := time.Now().Add(10 * time.Second); !learnt(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the bridge has not learnt: %+v", r.Counts())
		}
	}
	if c := r.Counts(); c.Announced != 8 || c.Failed != 0 {
		t.Errorf("%+v", c)
	}
}
