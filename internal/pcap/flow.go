package pcap

import (
	"encoding/binary"
	"math/bits"
)

const (
	typeIPv4  = 0x0800
	typeIPv6  = 0x86dd
	typeVLAN  = 0x8100
	typeSVLAN = 0x88a8
	vlanBytes = 4
	ipv4Bytes = 20
	ipv6Bytes = 40

	protoTCP  = 6
	protoUDP  = 17
	protoSCTP = 132
)

// network finds what lies behind the Ethernet header and at most two VLAN tags.
func network(b []byte) (at int, kind uint16) {
	at, kind = etherHeader, binary.BigEndian.Uint16(b[12:])
	for n := 0; n < 2 && (kind == typeVLAN || kind == typeSVLAN) && len(b) >= at+vlanBytes; n++ {
		kind = binary.BigEndian.Uint16(b[at+2:])
		at += vlanBytes
	}
	return at, kind
}

// flowHash is the same for both directions of a flow: addresses, protocol and
// ports of TCP, UDP and SCTP; of other packets and of fragments, which have no
// ports, the rest of it; and where there is no IP, the two MAC addresses.
// A frame holds at least an Ethernet header.
func flowHash(b []byte) uint32 {
	at, kind := network(b)
	switch {
	case kind == typeIPv4 && len(b) >= at+ipv4Bytes:
		h := b[at:]
		k := unordered(h[12:16], h[16:20]) + uint64(h[9])
		if binary.BigEndian.Uint16(h[6:])&0x3fff == 0 {
			k += ports(h, int(h[0]&0xf)*4, h[9])
		}
		return spread(k)
	case kind == typeIPv6 && len(b) >= at+ipv6Bytes:
		h := b[at:]
		return spread(unordered(h[8:24], h[24:40]) + uint64(h[6]) + ports(h, ipv6Bytes, h[6]))
	}
	return spread(unordered(b[0:6], b[6:12]))
}

// ports mixes the ports of the packet whose transport header is at an offset.
func ports(h []byte, at int, proto byte) uint64 {
	if proto != protoTCP && proto != protoUDP && proto != protoSCTP || at < ipv4Bytes || len(h) < at+4 {
		return 0
	}
	return unordered(h[at:at+2], h[at+2:at+4])
}

// unordered mixes two fields of one length, in either order to the same.
func unordered(a, b []byte) uint64 { return mix(a) + mix(b) }

func mix(b []byte) (h uint64) {
	for _, c := range b {
		h = (h ^ uint64(c)) * 0x100000001b3
	}
	h *= 0x9e3779b97f4a7c15
	return h ^ bits.RotateLeft64(h, 29)
}

func spread(h uint64) uint32 {
	h *= 0x9e3779b97f4a7c15
	return uint32(h >> 32)
}

// l3Len is what an MTU bounds: the frame without Ethernet header and VLAN tags.
func l3Len(b []byte) int {
	at, _ := network(b)
	return len(b) - at
}
