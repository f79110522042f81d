package nettest

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"

	"linerate/internal/lab/veth"
)

func xdpBoxFor(t *testing.T, r XDPRules) (*Box, *wire, *wire) {
	t.Helper()
	b := FaultBox(t, BoxConfig{XDP: &r})
	return b, openWire(t, b.NS(veth.A), unix.ETH_P_ALL), openWire(t, b.NS(veth.B), unix.ETH_P_ALL)
}

func TestXDPBoxForwards(t *testing.T) {
	CheckNothingLeft(t)
	b, a, z := xdpBoxFor(t, XDPRules{})
	ipv6 := make([]byte, 80)
	ipv6[12], ipv6[13], ipv6[14], ipv6[20] = 0x86, 0xdd, 0x60, protoUDP
	binary.BigEndian.PutUint16(ipv6[18:], 26)
	binary.BigEndian.PutUint16(ipv6[56:], defaultPort)
	binary.BigEndian.PutUint16(ipv6[58:], 26)
	a.send(udpFrame(1, 60, defaultPort), udpFrame(2, 1514, defaultPort), udpFrame(3, 64, defaultPort, 7), ipv6, udpFrame(4, 60, 9))
	z.take(5)
	if c := counts(t, b, AtoB); c != (BoxCounts{Counted: 4, Other: 1, Sent: 4}) {
		t.Errorf("%+v", c)
	}
	z.send(udpFrame(1, 60, defaultPort))
	a.take(1)
	if c := counts(t, b, BtoA); c != (BoxCounts{Counted: 1, Sent: 1}) {
		t.Errorf("back: %+v", c)
	}
}

func TestXDPBoxDropsAndCorrupts(t *testing.T) {
	for _, c := range []struct {
		rules            XDPRules
		dropped, damaged uint64
	}{
		{XDPRules{DropFirst: 5}, 5, 0},
		{XDPRules{DropEvery: 10}, 10, 0},
		{XDPRules{DropFirst: 5, DropEvery: 10}, 15, 0},
		{XDPRules{CorruptFirst: 5, CorruptEvery: 10}, 0, 15},
		{XDPRules{DropEvery: 10, CorruptEvery: 5}, 10, 10},
	} {
		b, a, z := xdpBoxFor(t, c.rules)
		a.send(numbered(100)...)
		got := z.take(100 - int(c.dropped))
		z.nothing()
		bad := uint64(0)
		for _, f := range got {
			if f[40] != 0x12 || f[41] != 0x34 {
				bad++
			}
		}
		if bad != c.damaged {
			t.Errorf("%+v: %d frames damaged, want %d", c.rules, bad, c.damaged)
		}
		want := BoxCounts{Counted: 100, Sent: 100 - c.dropped, Dropped: c.dropped, Corrupted: c.damaged}
		if n := counts(t, b, AtoB); n != want {
			t.Errorf("%+v: %+v, want %+v", c.rules, n, want)
		}
	}
}

// TestXDPBoxHidesNothing: with XDP dropping at the far end, what the box says
// it sent is what that end took, and what it lost is the rest.
func TestXDPBoxHidesNothing(t *testing.T) {
	b, a, _ := xdpBoxFor(t, XDPRules{DropFirst: 7})
	a.send(numbered(20_000)...)
	c := counts(t, b, AtoB)
	if c.Counted != 20_000 || c.Dropped != 7 || c.Sent+c.Lost != 20_000-7 {
		t.Errorf("%+v", c)
	}
}
