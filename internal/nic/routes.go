package nic

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// DefaultRoute says whether a default route of any table, IPv4 or IPv6, leaves
// through the port. Loopback and "unreachable" defaults do not count.
func (p *Port) DefaultRoute() (found bool, err error) {
	err = p.do("read routes of", func() error {
		l, err := p.link()
		if err != nil {
			return err
		}
		for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
			filter := &netlink.Route{Table: unix.RT_TABLE_UNSPEC}
			routes, err := netlink.RouteListFiltered(family, filter, netlink.RT_FILTER_TABLE)
			if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EAFNOSUPPORT) {
				continue // kernel without that family
			}
			if err != nil {
				return err
			}
			for _, r := range routes {
				found = found || isDefault(r) && leavesBy(r, l.Attrs().Index)
			}
		}
		return nil
	})
	return found, err
}

func isDefault(r netlink.Route) bool {
	if r.Type != 0 && r.Type != unix.RTN_UNICAST {
		return false
	}
	if r.Dst == nil {
		return true
	}
	ones, bits := r.Dst.Mask.Size()
	return ones == 0 && bits > 0 && r.Dst.IP.IsUnspecified()
}

// leavesBy also looks at the hops of a multipath route.
func leavesBy(r netlink.Route, index int) bool {
	for _, hop := range r.MultiPath {
		if hop.LinkIndex == index {
			return true
		}
	}
	return r.LinkIndex == index
}

// Hop is where a packet to some destination goes first.
type Hop struct {
	IfIndex int
	Source  netip.Addr // the address the kernel would send from, invalid if none
	Gateway netip.Addr // invalid if the destination is on the link
	MAC     [6]byte
	Route   string // the route that was taken, as iproute2 would print it
}

// NeighbourError says that the kernel does not know the link address of a next
// hop.
type NeighbourError struct {
	Addr  netip.Addr
	State string // "unknown", "incomplete", "failed", "asked"
	Route string // the route that leads there, "" if none was looked up
}

// Error gives the whole message on one line.
func (e *NeighbourError) Error() string {
	by := ""
	if e.Route != "" {
		by = ", the next hop of the route " + e.Route
	}
	if e.State == "failed" || e.State == "asked" {
		return fmt.Sprintf("%s%s does not answer: see that it is up, or give its MAC address", e.Addr, by)
	}
	return fmt.Sprintf("no link address known for %s%s (%s): reach it once, or give the MAC address", e.Addr, by, e.State)
}

// NextHop looks up the way to dst through this port: route, then neighbour. It
// sends nothing. Errors are an *Error wrapping a *NeighbourError or an errno.
func (p *Port) NextHop(dst netip.Addr) (Hop, error) {
	var h Hop
	err := p.do("look up next hop from", func() error {
		l, err := p.link()
		if err != nil {
			return err
		}
		matched, routes, err := routesTo(dst, l.Attrs().Index)
		if err != nil {
			return fmt.Errorf("route to %s: %w", dst, err)
		}
		h.IfIndex = routes[0].LinkIndex
		h.Source, h.Gateway = toAddr(routes[0].Src), gateway(routes[0])
		h.Route = routeText(matched, h.Gateway, p.Name)
		next := dst
		if h.Gateway.IsValid() {
			next = h.Gateway
		}
		h.MAC, err = neighbourMAC(h.IfIndex, next)
		if unknown := (*NeighbourError)(nil); errors.As(err, &unknown) {
			unknown.Route = h.Route
		}
		return err
	})
	return h, err
}

// routesTo looks dst up with the port as way out. Given an interface the kernel
// takes any address it has no route for as on the link, so the table is asked
// first whether there is a route at all, and which.
func routesTo(dst netip.Addr, index int) (matched netlink.Route, routes []netlink.Route, err error) {
	for _, match := range []bool{true, false} {
		routes, err = netlink.RouteGetWithOptions(dst.AsSlice(), &netlink.RouteGetOptions{OifIndex: index, FIBMatch: match})
		if errors.Is(err, unix.EHOSTUNREACH) {
			err = unix.ENETUNREACH
		}
		if err != nil {
			return matched, nil, err
		}
		if len(routes) == 0 || routes[0].LinkIndex != index {
			return matched, nil, unix.ENETUNREACH
		}
		if match {
			matched = routes[0]
		}
	}
	return matched, routes, nil
}

// NeighbourMAC is the link address of addr in the port's neighbour table.
func (p *Port) NeighbourMAC(addr netip.Addr) (mac [6]byte, err error) {
	err = p.do("look up neighbour of", func() error {
		l, err := p.link()
		if err != nil {
			return err
		}
		mac, err = neighbourMAC(l.Attrs().Index, addr)
		return err
	})
	return mac, err
}

// gateway also knows an IPv6 gateway of an IPv4 route (RFC 8950).
func gateway(r netlink.Route) netip.Addr {
	if v, ok := r.Via.(*netlink.Via); ok && v != nil {
		return toAddr(v.Addr)
	}
	return toAddr(r.Gw)
}

func toAddr(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}

func neighbourMAC(index int, addr netip.Addr) (mac [6]byte, err error) {
	family := unix.AF_INET6
	if addr.Is4() {
		family = unix.AF_INET
	}
	neighbours, err := netlink.NeighList(index, family)
	if err != nil {
		return mac, fmt.Errorf("neighbours: %w", err)
	}
	unknown := &NeighbourError{Addr: addr, State: "unknown"}
	for _, n := range neighbours {
		if toAddr(n.IP) != addr.WithZone("") {
			continue
		}
		switch {
		case n.State&netlink.NUD_FAILED != 0:
			unknown.State = "failed"
		case n.State&netlink.NUD_INCOMPLETE != 0 || len(n.HardwareAddr) != len(mac):
			unknown.State = "incomplete"
		default:
			copy(mac[:], n.HardwareAddr)
			return mac, nil
		}
	}
	return mac, unknown
}
