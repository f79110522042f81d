package nettest

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"linerate/internal/lab/veth"
)

// The addresses around a Router: two networks, A and the router in the first,
// B and the router in the second, for each family.
const (
	RouterA4, RouterToA4 = "198.18.0.1", "198.18.0.254"
	RouterB4, RouterToB4 = "198.18.1.2", "198.18.1.254"
	RouterA6, RouterToA6 = "fd00:a::1", "fd00:a::fe"
	RouterB6, RouterToB6 = "fd00:b::2", "fd00:b::fe"
)

// Router builds three hosts in a row, and the kernel of the middle one forwards
// IPv4 and IPv6. A and B each have a route to the other's network by way of it.
// Nobody knows a link address yet.
func Router(t testing.TB, cfg veth.Config) *veth.Lab {
	t.Helper()
	cfg.Middle = true
	l := Lab(t, cfg)
	for _, step := range []struct {
		end veth.End
		do  func() error
	}{
		{veth.A, func() error { return routedHost(RouterA4, RouterA6, RouterToA4, RouterToA6) }},
		{veth.B, func() error { return routedHost(RouterB4, RouterB6, RouterToB4, RouterToB6) }},
		{veth.Middle, forwardingHost},
	} {
		if err := l.NS(step.end).Do(step.do); err != nil {
			t.Fatalf("router lab: %v", err)
		}
	}
	return l
}

// routedHost gives one end its addresses and its routes, and takes away what
// the lab gave it.
func routedHost(ip4, ip6, via4, via6 string) error {
	if err := turnOnIPv6(veth.Interface); err != nil {
		return err
	}
	link, err := netlink.LinkByName(veth.Interface)
	if err != nil {
		return err
	}
	old, err := netlink.AddrList(link, unix.AF_INET)
	if err != nil {
		return err
	}
	for i := range old {
		if err := netlink.AddrDel(link, &old[i]); err != nil {
			return fmt.Errorf("delete address: %w", err)
		}
	}
	known, err := netlink.NeighList(link.Attrs().Index, unix.AF_INET)
	if err != nil {
		return err
	}
	for i := range known {
		if err := netlink.NeighDel(&known[i]); err != nil {
			return fmt.Errorf("delete neighbour: %w", err)
		}
	}
	if err := addAddresses(link, ip4, ip6); err != nil {
		return err
	}
	for via, all := range map[string]string{via4: "198.18.0.0/15", via6: "fd00::/16"} {
		_, dst, _ := net.ParseCIDR(all)
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: dst, Gw: net.ParseIP(via)}); err != nil {
			return fmt.Errorf("add route via %s: %w", via, err)
		}
	}
	return nil
}

// forwardingHost makes the middle namespace a router.
func forwardingHost() error {
	for name, ips := range map[string][2]string{veth.MiddleA: {RouterToA4, RouterToA6}, veth.MiddleB: {RouterToB4, RouterToB6}} {
		if err := turnOnIPv6(name); err != nil {
			return err
		}
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if err := addAddresses(link, ips[0], ips[1]); err != nil {
			return err
		}
	}
	for _, key := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"} {
		if err := os.WriteFile("/proc/sys/net/"+key, []byte("1"), 0); err != nil {
			return err
		}
	}
	return nil
}

func turnOnIPv6(name string) error {
	for _, set := range [][2]string{{"accept_dad", "0"}, {"accept_ra", "0"}, {"router_solicitations", "0"}, {"disable_ipv6", "0"}} {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/"+set[0], []byte(set[1]), 0); err != nil {
			return err
		}
	}
	return nil
}

func addAddresses(link netlink.Link, ips ...string) error {
	for _, ip := range ips {
		bits, size := 64, 128
		if netip.MustParseAddr(ip).Is4() {
			bits, size = 24, 32
		}
		a := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(ip), Mask: net.CIDRMask(bits, size)}, Flags: unix.IFA_F_NODAD}
		if size == 32 {
			a.Flags = 0
		}
		if err := netlink.AddrAdd(link, a); err != nil {
			return fmt.Errorf("add address %s: %w", ip, err)
		}
	}
	return nil
}
