package veth

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"linerate/internal/netns"
)

// The ends get different interface indexes (B without a middle gets 2, the
// first after loopback), so that a mix-up of the two namespaces shows as an
// error and not as the wrong port.
const indexOfA, indexOfB = 10, 11

// build makes the two namespaces and all that is in them.
func (l *Lab) build() error {
	alias, err := l.alias()
	if err != nil {
		return err
	}
	for e := range l.ends {
		if End(e) == Middle && !l.cfg.Middle {
			continue
		}
		n, err := netns.New()
		if err != nil {
			return err
		}
		l.ends[e] = n
		if err := n.Do(func() error { return prepare(alias) }); err != nil {
			return err
		}
	}
	if err := l.join(); err != nil {
		return err
	}
	for e, n := range l.ends[:Middle] {
		err := n.Do(func() error { return address(End(e), alias) })
		if err != nil {
			return fmt.Errorf("end %c: %w", 'a'+e, err)
		}
	}
	return l.waitCarrier()
}

// prepare marks the namespace and keeps its kernel from sending anything of its
// own: no IPv6, and so no neighbour discovery or multicast listener reports.
// The mark is on loopback too, which stays when the veth pair has died with the
// other namespace.
func prepare(alias string) error {
	for _, conf := range []string{"all", "default", "lo"} {
		// A kernel without IPv6 has nothing to turn off.
		err := os.WriteFile("/proc/sys/net/ipv6/conf/"+conf+"/disable_ipv6", []byte("1"), 0)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return needs(err, "CAP_NET_ADMIN")
		}
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	if err := netlink.LinkSetAlias(lo, alias); err != nil {
		return fmt.Errorf("set alias of lo: %w", needs(err, "CAP_NET_ADMIN"))
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	return nil
}

// join connects the ends, directly or by way of the middle.
func (l *Lab) join() error {
	if !l.cfg.Middle {
		return l.makePair(A, indexOfA, B, Interface)
	}
	if err := l.makePair(A, indexOfA, Middle, MiddleA); err != nil {
		return err
	}
	if err := l.makePair(B, indexOfB, Middle, MiddleB); err != nil {
		return err
	}
	return l.ends[Middle].Do(func() error {
		for _, name := range []string{MiddleA, MiddleB} {
			link, err := netlink.LinkByName(name)
			if err == nil {
				err = netlink.LinkSetUp(link)
			}
			if err != nil {
				return fmt.Errorf("set %s up: %w", name, err)
			}
		}
		return nil
	})
}

// makePair creates a veth inside the namespace of one side with its peer
// straight in the other's, so that no interface ever shows up in the caller's
// namespace.
func (l *Lab) makePair(e End, index int, other End, peerName string) error {
	to, err := handle(l.ends[other])
	if err != nil {
		return err
	}
	defer to.Close()
	err = l.ends[e].Do(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU, attrs.Index = Interface, l.cfg.MTU, index
		attrs.NumTxQueues, attrs.NumRxQueues = l.cfg.Queues, l.cfg.Queues
		mac := MAC(e)
		attrs.HardwareAddr = mac[:]
		v := netlink.NewVeth(attrs)
		v.PeerName = peerName
		if other != Middle { // the middle's own addresses are never used
			peer := MAC(other)
			v.PeerHardwareAddr = peer[:]
		}
		v.PeerNamespace = netlink.NsFd(int(to.Fd()))
		return netlink.LinkAdd(v)
	})
	runtime.KeepAlive(to)
	if err != nil {
		return fmt.Errorf("create veth pair with %d queues: %w", l.cfg.Queues, needs(err, "CAP_NET_ADMIN"))
	}
	return nil
}

// handle opens the namespace of n as a file, which works without a name.
func handle(n *netns.NS) (f *os.File, err error) {
	err = n.Do(func() error {
		f, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	return f, err
}

// address gives the interface of one end its alias, address, neighbour entry
// and carrier. The neighbour is permanent, so nobody ever asks by ARP.
func address(e End, alias string) error {
	link, err := netlink.LinkByName(Interface)
	if err != nil {
		return fmt.Errorf("find %s: %w", Interface, err)
	}
	if err := netlink.LinkSetAlias(link, alias); err != nil {
		return fmt.Errorf("set alias: %w", err)
	}
	ip := Addr(e).As4()
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: ip[:], Mask: net.CIDRMask(24, 32)}}
	if err := netlink.AddrAdd(link, addr); err != nil {
		return fmt.Errorf("add address %s: %w", addr, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", Interface, err)
	}
	other := 1 - e
	otherIP, otherMAC := Addr(other).As4(), MAC(other)
	err = netlink.NeighSet(&netlink.Neigh{
		LinkIndex: link.Attrs().Index, Family: unix.AF_INET, State: netlink.NUD_PERMANENT,
		IP: otherIP[:], HardwareAddr: otherMAC[:],
	})
	if err != nil {
		return fmt.Errorf("add neighbour %s: %w", Addr(other), err)
	}
	return nil
}

// waitCarrier checks that both ends have carrier. On a veth the kernel turns
// it on while the second end is set up, so there is nothing to wait for.
func (l *Lab) waitCarrier() error {
	for e, n := range l.ends[:Middle] {
		err := n.Do(func() error {
			link, err := netlink.LinkByName(Interface)
			if err != nil {
				return err
			}
			if link.Attrs().RawFlags&unix.IFF_LOWER_UP == 0 {
				return errors.New("no carrier")
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("end %c: %w", 'a'+e, err)
		}
	}
	return nil
}

// dropInterface deletes the veth pair through one of its namespaces.
func dropInterface(ns string) error {
	n, err := netns.Open(ns)
	if err != nil {
		return err
	}
	defer n.Close()
	return n.Do(func() error {
		link, err := netlink.LinkByName(Interface)
		if errors.As(err, new(netlink.LinkNotFoundError)) {
			return nil // deleted with its peer
		}
		if err != nil {
			return err
		}
		err = netlink.LinkDel(link)
		if errors.Is(err, unix.ENODEV) {
			return nil
		}
		return err
	})
}

// needs names the capability if the kernel refused for want of one.
func needs(err error, capability string) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return fmt.Errorf("%w (needs %s)", err, capability)
	}
	return err
}
