package nic_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"linerate/internal/lab/veth"
	"linerate/internal/nettest"
	"linerate/internal/nic"
)

// Nobody has spoken yet: resolving asks the router, and its answer is the
// address of the router's interface.
func TestResolveAsksTheNextHop(t *testing.T) {
	l := nettest.Router(t, veth.Config{})
	p := port(t, l, veth.A)
	toA, err := nic.Open(l.NS(veth.Middle), veth.MiddleA)
	if err != nil {
		t.Fatal(err)
	}
	for dst, via := range map[string]string{nettest.RouterB4: nettest.RouterToA4, nettest.RouterB6: nettest.RouterToA6} {
		if _, err := p.NextHop(netip.MustParseAddr(dst)); !errors.As(err, new(*nic.NeighbourError)) {
			t.Errorf("%s is known before anybody asked: %v", via, err)
		}
		h, err := p.Resolve(context.Background(), netip.MustParseAddr(dst))
		if err != nil || h.MAC != toA.MAC || h.Gateway.String() != via || !strings.Contains(h.Route, "via "+via+" dev lr0") {
			t.Errorf("%s: %+v, %v, want %x at %s", dst, h, err, toA.MAC, via)
		}
		if _, err := p.Prime(context.Background(), netip.MustParseAddr(dst)); err != nil {
			t.Errorf("prime %s: %v", dst, err)
		}
		b, err := nic.Open(l.NS(veth.Middle), veth.MiddleB)
		if err != nil {
			t.Fatal(err)
		}
		if mac, err := b.NeighbourMAC(netip.MustParseAddr(dst)); err != nil || mac != veth.MAC(veth.B) {
			t.Errorf("the router does not know %s: %x, %v", dst, mac, err)
		}
	}
}

// A next hop that is not there: bounded, and the error has the address and the
// route.
func TestResolveSilentNextHop(t *testing.T) {
	l := nettest.Router(t, veth.Config{})
	p := port(t, l, veth.A)
	for _, dst := range []string{"198.18.0.77", "fd00:a::77"} {
		_, err := p.Resolve(context.Background(), netip.MustParseAddr(dst))
		var silent *nic.NeighbourError
		if !errors.As(err, &silent) || silent.Addr.String() != dst || !strings.Contains(err.Error(), "dev lr0") || !strings.Contains(err.Error(), "does not answer") {
			t.Errorf("%s: %v", dst, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.Resolve(ctx, netip.MustParseAddr("198.18.0.78")); !errors.As(err, new(*nic.NeighbourError)) {
		t.Errorf("ended: %v", err)
	}
}

// A veth has no table, and says so: not known, which is no error.
func TestNoRSS(t *testing.T) {
	l := lab(t, 2)
	if c, err := port(t, l, veth.A).RSS(); c != nil || err != nil {
		t.Errorf("%+v, %v", c, err)
	}
}
