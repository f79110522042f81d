package nic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	resolvePoll = 20 * time.Millisecond
	resolveWait = 4 * time.Second // the kernel gives up after three tries, 1 s apart
	discardPort = 9               // RFC 863
	primeWait   = 500 * time.Millisecond
)

// Resolve is NextHop, and asks where the next hop's link address is not known:
// it has the kernel send ARP or neighbour solicitations, and waits for the
// answer until ctx ends, but not for longer than the kernel tries. Without one
// the error is an *Error wrapping a *NeighbourError. The kernel keeps what it
// learns; that is all that changes.
func (p *Port) Resolve(ctx context.Context, dst netip.Addr) (Hop, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveWait)
	defer cancel()
	asked := false
	for {
		h, err := p.NextHop(dst)
		var unknown *NeighbourError
		if !errors.As(err, &unknown) || asked && unknown.State == "failed" {
			return h, err
		}
		if !asked {
			asked = true
			if aerr := p.do("ask on", func() error { return askNeighbour(h.IfIndex, unknown.Addr) }); aerr != nil {
				return h, aerr
			}
			unknown.State = "asked"
		}
		select {
		case <-ctx.Done():
			return h, err
		case <-time.After(resolvePoll):
		}
	}
}

// askNeighbour makes the kernel resolve an address as if it had a packet for it
// (NTF_USE, net/core/neighbour.c, neigh_add).
func askNeighbour(index int, addr netip.Addr) error {
	family := unix.AF_INET6
	if addr.Is4() {
		family = unix.AF_INET
	}
	return netlink.NeighSet(&netlink.Neigh{LinkIndex: index, Family: family, State: netlink.NUD_NONE,
		Flags: netlink.NTF_USE, IP: addr.AsSlice()})
}

// Prime sends one UDP datagram to the discard port of each destination by way of
// the port and waits, bounded, for the first to say that nobody listens there.
// Then every router on the way has resolved its next hop. It tells whether that
// one answered; who is silent may be reached all the same.
func (p *Port) Prime(ctx context.Context, first netip.Addr, more ...netip.Addr) (answered bool, err error) {
	err = p.do("prime the way from", func() error {
		d := net.Dialer{ControlContext: p.bindTo}
		var wait net.Conn
		for _, dst := range append([]netip.Addr{first}, more...) {
			conn, err := d.DialContext(ctx, "udp", netip.AddrPortFrom(dst, discardPort).String())
			if err != nil {
				return err
			}
			defer conn.Close()
			if wait == nil {
				wait = conn
			}
			if _, err := conn.Write([]byte{0}); err != nil {
				return err
			}
		}
		if err := wait.SetDeadline(time.Now().Add(primeWait)); err != nil {
			return err
		}
		_, err := wait.Read(make([]byte, 1))
		answered = err == nil || errors.Is(err, unix.ECONNREFUSED)
		return nil
	})
	return answered, err
}

// bindTo ties a socket to the port, whatever the routes say.
func (p *Port) bindTo(_ context.Context, _, _ string, c syscall.RawConn) error {
	var bound error
	err := c.Control(func(fd uintptr) { bound = unix.BindToDevice(int(fd), p.Name) })
	return errors.Join(err, bound)
}

// routeText is a route in the words of iproute2.
func routeText(r netlink.Route, via netip.Addr, dev string) string {
	to := "default"
	if r.Dst != nil && !isDefault(r) {
		to = r.Dst.String()
	}
	if via.IsValid() {
		to += " via " + via.String()
	}
	return fmt.Sprintf("%s dev %s", to, dev)
}
