package bpf

import (
	"encoding/binary"
	"net"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

var (
	srcMAC = net.HardwareAddr{2, 0, 0, 0, 0, 1}
	dstMAC = net.HardwareAddr{2, 0, 0, 0, 0, 2}
	src4   = net.IP{198, 18, 0, 1}
	dst4   = net.IP{198, 18, 0, 2}
	src6   = net.ParseIP("2001:2::1")
	dst6   = net.ParseIP("2001:2::2")
)

const (
	testRun    = 0xbeef
	testStream = 3<<12 | 0x123 // worker 3, stream 0x123
	testSeq    = 0x12_3456_789a
)

// longTag is the 18 bytes of a long tag; its check is not what BPF looks at.
func longTag() []byte {
	b := binary.BigEndian.AppendUint16(nil, 0x4C52)
	b = binary.BigEndian.AppendUint16(b, testRun)
	b = binary.BigEndian.AppendUint16(b, testStream)
	b = append(b, binary.BigEndian.AppendUint64(nil, testSeq)[3:]...)
	b = binary.BigEndian.AppendUint32(b, 0xaabbccdd)
	return append(b, 0, 0xcc, 0xcc)
}

// shortTag is the 10 bytes of a short tag.
func shortTag() []byte {
	b := binary.BigEndian.AppendUint16(nil, 0x4C53)
	b = append(b, testRun&0xff, 3<<4|5)
	b = binary.BigEndian.AppendUint32(b, 0x89abcdef)
	return append(b, 0xcc, 0xcc)
}

// layersOf serialises layers with lengths and checksums filled in.
func layersOf(t testing.TB, ls ...gopacket.SerializableLayer) []byte {
	t.Helper()
	buf := gopacket.NewSerializeBuffer()
	opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(buf, opts, ls...); err != nil {
		t.Fatalf("serialise: %v", err)
	}
	return append([]byte(nil), buf.Bytes()...)
}

func ether(next layers.EthernetType) *layers.Ethernet {
	return &layers.Ethernet{SrcMAC: srcMAC, DstMAC: dstMAC, EthernetType: next}
}

func vlan(id uint16, next layers.EthernetType) *layers.Dot1Q {
	return &layers.Dot1Q{VLANIdentifier: id, Priority: 5, Type: next}
}

func ipv4(p layers.IPProtocol) *layers.IPv4 {
	return &layers.IPv4{Version: 4, TTL: 64, Protocol: p, SrcIP: src4, DstIP: dst4}
}

func ipv6(next layers.IPProtocol) *layers.IPv6 {
	return &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: next, SrcIP: src6, DstIP: dst6}
}

// udpOver is UDP 49184 -> 7777 with its checksum over the given header.
func udpOver(t testing.TB, n gopacket.NetworkLayer) *layers.UDP {
	t.Helper()
	u := &layers.UDP{SrcPort: 49184, DstPort: 7777}
	if err := u.SetNetworkLayerForChecksum(n); err != nil {
		t.Fatal(err)
	}
	return u
}

// udp4 is a plain IPv4/UDP frame, with VLAN tags when ids are given, the first outermost.
func udp4(t testing.TB, payload []byte, ids ...uint16) []byte {
	t.Helper()
	var ls []gopacket.SerializableLayer
	next := layers.EthernetTypeIPv4
	for i := len(ids) - 1; i >= 0; i-- {
		ls = append([]gopacket.SerializableLayer{vlan(ids[i], next)}, ls...)
		next = layers.EthernetTypeDot1Q
	}
	ls = append([]gopacket.SerializableLayer{ether(next)}, ls...)
	ip := ipv4(layers.IPProtocolUDP)
	ls = append(ls, ip, udpOver(t, ip), gopacket.Payload(payload))
	return layersOf(t, ls...)
}

// udp6 is an IPv6/UDP frame.
func udp6(t testing.TB, payload []byte) []byte {
	t.Helper()
	ip := ipv6(layers.IPProtocolUDP)
	return layersOf(t, ether(layers.EthernetTypeIPv6), ip, udpOver(t, ip), gopacket.Payload(payload))
}

// udp6Ext is an IPv6/UDP frame with extension headers, each {number, bytes}:
// the first byte of each is filled in with what follows it.
func udp6Ext(t testing.TB, payload []byte, exts ...extHeader) []byte {
	t.Helper()
	frame := udp6(t, payload)
	head, rest := frame[:14+40:14+40], frame[14+40:]
	var chain []byte
	for i, e := range exts {
		b := append([]byte(nil), e.bytes...)
		b[0] = byte(layers.IPProtocolUDP)
		if i+1 < len(exts) {
			b[0] = exts[i+1].number
		}
		chain = append(chain, b...)
	}
	if len(exts) > 0 {
		head[14+6] = exts[0].number
	}
	out := append(append(head, chain...), rest...)
	binary.BigEndian.PutUint16(out[14+4:], uint16(len(chain)+len(rest)))
	return out
}

type extHeader struct {
	number byte
	bytes  []byte
}

var (
	hopByHop = extHeader{0, []byte{0, 0, 5, 2, 0, 0, 1, 0}}                           // router alert
	destOpts = extHeader{60, []byte{0, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}} // 16 bytes
	routing  = extHeader{43, []byte{0, 0, 4, 0, 0, 0, 0, 0}}                          // segments left 0
	authHead = extHeader{51, []byte{0, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}
	mobility = extHeader{135, []byte{0, 0, 0, 0, 0, 0, 1, 4}}
	fragHead = extHeader{44, []byte{0, 0, 0, 0, 0, 0, 0, 1}} // atomic
	espHead  = extHeader{50, []byte{0, 0, 0, 1, 0, 0, 0, 2}}
)

// padded makes room for a tag at the end of a payload of n bytes.
func padded(n int, tag []byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	copy(b[n-len(tag):], tag)
	return b
}

// patched is a copy of a frame with bytes replaced at an offset.
func patched(frame []byte, off int, bytes ...byte) []byte {
	out := append([]byte(nil), frame...)
	copy(out[off:], bytes)
	return out
}
