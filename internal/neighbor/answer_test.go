package neighbor

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

var (
	ours   = [6]byte{2, 0, 0, 0, 0, 1}
	theirs = net.HardwareAddr{2, 0, 0, 0, 0, 9}
	ranges = []Range{
		{Lo: ip("198.18.0.10"), Hi: ip("198.18.0.19"), Except: []netip.Addr{ip("198.18.0.12")}},
		{Lo: ip("fd00::10"), Hi: ip("fd00::19")},
	}
)

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

// build writes a frame with an implementation that is not ours.
func build(t testing.TB, l ...gopacket.SerializableLayer) []byte {
	t.Helper()
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, l...); err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(b.Bytes())
}

// read takes an answer apart with an implementation that is not ours.
func read(t testing.TB, frame []byte) gopacket.Packet {
	t.Helper()
	p := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
	if e := p.ErrorLayer(); e != nil {
		t.Fatalf("%v in %x", e.Error(), frame)
	}
	eth := p.LinkLayer().(*layers.Ethernet)
	if !bytes.Equal(eth.SrcMAC, ours[:]) || len(frame) < minFrame {
		t.Errorf("from %v, %d bytes", eth.SrcMAC, len(frame))
	}
	return p
}

func request(t testing.TB, target, sender string) []byte {
	return build(t, &layers.Ethernet{SrcMAC: theirs, DstMAC: layers.EthernetBroadcast, EthernetType: layers.EthernetTypeARP},
		&layers.ARP{AddrType: 1, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: layers.ARPRequest,
			SourceHwAddress: theirs, SourceProtAddress: ip(sender).AsSlice(), DstHwAddress: make([]byte, 6), DstProtAddress: ip(target).AsSlice()})
}

func TestARP(t *testing.T) {
	out, kind := Answer(nil, request(t, "198.18.0.19", "198.18.0.254"), ours, ranges)
	if kind != ARP {
		t.Fatalf("kind %d", kind)
	}
	a := read(t, out).Layer(layers.LayerTypeARP).(*layers.ARP)
	if a.Operation != layers.ARPReply || !bytes.Equal(a.SourceHwAddress, ours[:]) || !bytes.Equal(a.DstHwAddress, theirs) ||
		net.IP(a.SourceProtAddress).String() != "198.18.0.19" || net.IP(a.DstProtAddress).String() != "198.18.0.254" {
		t.Errorf("%+v", a)
	}
	for _, target := range []string{"198.18.0.9", "198.18.0.20", "198.18.0.12"} {
		if _, kind := Answer(nil, request(t, target, "198.18.0.254"), ours, ranges); kind != None {
			t.Errorf("answers for %s", target)
		}
	}
	if _, kind := Answer(nil, request(t, "198.18.0.10", "198.18.0.10"), ours, ranges); kind != None {
		t.Error("answers an announcement")
	}
}

func solicit(t testing.TB, target, src string, hops uint8) []byte {
	l3 := &layers.IPv6{Version: 6, NextHeader: layers.IPProtocolICMPv6, HopLimit: hops, SrcIP: ip(src).AsSlice(), DstIP: ip("ff02::1:ff00:10").AsSlice()}
	head := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeNeighborSolicitation, 0)}
	if err := head.SetNetworkLayerForChecksum(l3); err != nil {
		t.Fatal(err)
	}
	ns := &layers.ICMPv6NeighborSolicitation{TargetAddress: ip(target).AsSlice()}
	if !ip(src).IsUnspecified() {
		ns.Options = layers.ICMPv6Options{{Type: layers.ICMPv6OptSourceAddress, Data: theirs}}
	}
	return build(t, &layers.Ethernet{SrcMAC: theirs, DstMAC: net.HardwareAddr{0x33, 0x33, 0xff, 0, 0, 0x10}, EthernetType: layers.EthernetTypeIPv6}, l3, head, ns)
}

func TestSolicitation(t *testing.T) {
	for src, want := range map[string]struct {
		dst   string
		flags uint8
	}{"fd00::fe": {"fd00::fe", 0x60}, "::": {"ff02::1", 0x20}} {
		out, kind := Answer(nil, solicit(t, "fd00::10", src, 255), ours, ranges)
		if kind != Solicitation {
			t.Fatalf("from %s: kind %d", src, kind)
		}
		p := read(t, out)
		l3 := p.Layer(layers.LayerTypeIPv6).(*layers.IPv6)
		na := p.Layer(layers.LayerTypeICMPv6NeighborAdvertisement).(*layers.ICMPv6NeighborAdvertisement)
		if l3.DstIP.String() != want.dst || l3.HopLimit != 255 || na.Flags != want.flags || na.TargetAddress.String() != "fd00::10" ||
			len(na.Options) != 1 || !bytes.Equal(na.Options[0].Data, ours[:]) {
			t.Errorf("from %s: %+v to %v", src, na, l3.DstIP)
		}
		checkICMPv6(t, out)
	}
	for name, frame := range map[string][]byte{
		"another target": solicit(t, "fd00::1a", "fd00::fe", 255),
		"a router away":  solicit(t, "fd00::10", "fd00::fe", 254),
	} {
		if _, kind := Answer(nil, frame, ours, ranges); kind != None {
			t.Errorf("%s: answered", name)
		}
	}
}

// checkICMPv6 adds up the checksum the plain way.
func checkICMPv6(t testing.TB, frame []byte) {
	t.Helper()
	n := int(binary.BigEndian.Uint16(frame[18:]))
	b := append(bytes.Clone(frame[22:54]), 0, 0, byte(n>>8), byte(n), 0, 0, 0, 58)
	b = append(b, frame[54:54+n]...)
	if len(b)%2 == 1 {
		b = append(b, 0)
	}
	var s uint32
	for i := 0; i < len(b); i += 2 {
		s += uint32(b[i])<<8 | uint32(b[i+1])
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	if s != 0xffff {
		t.Errorf("ICMPv6 checksum adds up to %x in %x", s, frame)
	}
}

func ping4(t testing.TB, dst string, mac net.HardwareAddr, payload int) []byte {
	return build(t, &layers.Ethernet{SrcMAC: theirs, DstMAC: mac, EthernetType: layers.EthernetTypeIPv4},
		&layers.IPv4{Version: 4, TTL: 9, Protocol: layers.IPProtocolICMPv4, Id: 77, SrcIP: ip("198.18.0.254").AsSlice(), DstIP: ip(dst).AsSlice()},
		&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(8, 0), Id: 5, Seq: 6}, gopacket.Payload(bytes.Repeat([]byte{7}, payload)))
}

func ping6(t testing.TB, dst string, payload int) []byte {
	l3 := &layers.IPv6{Version: 6, NextHeader: layers.IPProtocolICMPv6, HopLimit: 9, SrcIP: ip("fd00::fe").AsSlice(), DstIP: ip(dst).AsSlice()}
	head := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeEchoRequest, 0)}
	if err := head.SetNetworkLayerForChecksum(l3); err != nil {
		t.Fatal(err)
	}
	return build(t, &layers.Ethernet{SrcMAC: theirs, DstMAC: ours[:], EthernetType: layers.EthernetTypeIPv6}, l3, head,
		&layers.ICMPv6Echo{Identifier: 5, SeqNumber: 6}, gopacket.Payload(bytes.Repeat([]byte{7}, payload)))
}

func TestEcho(t *testing.T) {
	for _, n := range []int{0, 1, 56, 1473} {
		out, kind := Answer(nil, ping4(t, "198.18.0.10", ours[:], n), ours, ranges)
		if kind != Echo {
			t.Fatalf("IPv4, %d bytes: kind %d", n, kind)
		}
		p := read(t, out)
		l3, l4 := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4), p.Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4)
		whole := out[14:34]
		if l3.SrcIP.String() != "198.18.0.10" || l3.DstIP.String() != "198.18.0.254" || l4.TypeCode.Type() != 0 || l4.Id != 5 || l4.Seq != 6 ||
			len(l4.Payload) != n || checksum(sum(0, whole)) != 0 || checksum(sum(0, out[34:34+8+n])) != 0 {
			t.Errorf("%d bytes: %+v %+v", n, l3, l4)
		}
		out, kind = Answer(nil, ping6(t, "fd00::19", n), ours, ranges)
		if kind != Echo {
			t.Fatalf("IPv6, %d bytes: kind %d", n, kind)
		}
		e := read(t, out).Layer(layers.LayerTypeICMPv6Echo).(*layers.ICMPv6Echo)
		if e.Identifier != 5 || e.SeqNumber != 6 || out[54] != 129 {
			t.Errorf("%d bytes: %+v", n, e)
		}
		checkICMPv6(t, out)
	}
	for name, frame := range map[string][]byte{
		"not ours":         ping4(t, "198.18.0.12", ours[:], 8),
		"to another MAC":   ping4(t, "198.18.0.10", theirs, 8),
		"to everybody":     ping4(t, "198.18.0.10", layers.EthernetBroadcast, 8),
		"IPv6, not ours":   ping6(t, "fd00::1", 8),
		"wrong checksum":   flip(ping4(t, "198.18.0.10", ours[:], 8), 40),
		"IPv6, wrong sum":  flip(ping6(t, "fd00::10", 8), 60),
		"a piece":          flip(ping4(t, "198.18.0.10", ours[:], 8), 20),
		"cut short":        ping4(t, "198.18.0.10", ours[:], 80)[:90],
		"UDP":              flip(ping4(t, "198.18.0.10", ours[:], 8), 23),
		"no frame":         nil,
		"from a multicast": flip(ping4(t, "198.18.0.10", ours[:], 8), 6),
	} {
		if _, kind := Answer(nil, frame, ours, ranges); kind != None {
			t.Errorf("%s: answered", name)
		}
	}
}

// flip changes the lowest bit of one byte.
func flip(b []byte, at int) []byte {
	b[at] ^= 1
	return b
}

func TestAnnounce(t *testing.T) {
	a := read(t, Announce(nil, ip("198.18.0.10"), ours)).Layer(layers.LayerTypeARP).(*layers.ARP)
	if a.Operation != layers.ARPRequest || !bytes.Equal(a.SourceProtAddress, a.DstProtAddress) || !bytes.Equal(a.SourceHwAddress, ours[:]) {
		t.Errorf("%+v", a)
	}
	out := Announce(nil, ip("fd00::10"), ours)
	na := read(t, out).Layer(layers.LayerTypeICMPv6NeighborAdvertisement).(*layers.ICMPv6NeighborAdvertisement)
	if na.Solicited() || !na.Override() || na.TargetAddress.String() != "fd00::10" {
		t.Errorf("%+v", na)
	}
	checkICMPv6(t, out)
}

func TestFirst(t *testing.T) {
	if got := ranges[0].First(4); len(got) != 4 || got[2] != ip("198.18.0.13") {
		t.Errorf("%v", got)
	}
	end := Range{Lo: ip("255.255.255.254"), Hi: ip("255.255.255.255")}
	if got := end.First(9); len(got) != 2 {
		t.Errorf("at the end of all addresses: %v", got)
	}
}

// Whatever comes in: no panic, and an answer is a frame from us that asks for
// nothing, so that no two responders can keep each other busy.
func FuzzAnswer(f *testing.F) {
	f.Add(request(f, "198.18.0.10", "198.18.0.254"))
	f.Add(solicit(f, "fd00::10", "fd00::fe", 255))
	f.Add(solicit(f, "fd00::10", "::", 255))
	f.Add(ping4(f, "198.18.0.10", ours[:], 3))
	f.Add(ping6(f, "fd00::10", 3))
	f.Fuzz(func(t *testing.T, frame []byte) {
		out, kind := Answer(nil, frame, ours, ranges)
		if kind == None {
			if len(out) != 0 {
				t.Fatalf("no answer, but %x", out)
			}
			return
		}
		if len(out) < minFrame || len(out) > max(len(frame)+8, etherBytes+ipv6Bytes+naBytes+8) || [6]byte(out[6:12]) != ours || out[0]&1 != 0 && kind != Solicitation {
			t.Fatalf("kind %d: %x to %x", kind, out, frame)
		}
		all := []Range{{Lo: ip("0.0.0.0"), Hi: ip("255.255.255.255")}, {Lo: ip("::"), Hi: ip("ff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")}}
		if _, again := Answer(nil, out, [6]byte(out), all); again != None {
			t.Fatalf("the answer %x is answered", out)
		}
	})
}
