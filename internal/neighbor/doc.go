// Package neighbor answers for addresses that traffic is sent from or to and
// that no kernel owns: ARP requests, IPv6 neighbour solicitations and pings, so
// that a router on the path can resolve and reach them. It also announces them,
// so that bridges and routers learn where they are before a trial and do not
// forget it during one.
//
// What a frame asks and what the answer looks like is pure (answer.go,
// announce.go); a Responder does it on one interface, on an AF_PACKET socket
// beside the data path.
package neighbor

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// Range is the addresses Lo..Hi of one family, both included, without those of
// Except: the kernel's own, for which the kernel answers.
type Range struct {
	Lo, Hi netip.Addr
	Except []netip.Addr
}

// Holds tells whether an address is one of the range.
func (r Range) Holds(a netip.Addr) bool {
	return a.Is4() == r.Lo.Is4() && r.Lo.Compare(a) <= 0 && a.Compare(r.Hi) <= 0 && !slices.Contains(r.Except, a)
}

// First lists the addresses of the range in order, at most n.
func (r Range) First(n int) (out []netip.Addr) {
	for a := r.Lo; a.IsValid() && a.Compare(r.Hi) <= 0 && len(out) < n; a = a.Next() {
		if r.Holds(a) {
			out = append(out, a)
		}
		if a.Less(r.Lo) {
			break
		}
	}
	return out
}

// Kind is what a frame asks, or what an answer answers.
type Kind uint8

// The kinds. None is a frame that gets no answer.
const (
	None Kind = iota
	ARP
	Solicitation
	Echo
)

const (
	etherBytes  = 14
	arpBytes    = 28
	ipv4Bytes   = 20
	ipv6Bytes   = 40
	naBytes     = 24 // neighbour advertisement without options, RFC 4861 section 4.4
	minFrame    = 60 // the least Ethernet frame without its FCS
	typeARP     = 0x0806
	typeIPv4    = 0x0800
	typeIPv6    = 0x86dd
	protoICMP   = 1
	protoICMPv6 = 58
	hopLimit    = 64
)

// sum adds up 16-bit words, big endian, to start; an odd last byte is the upper
// half of a word (RFC 1071).
func sum(start uint32, b []byte) uint32 {
	for len(b) > 1 {
		start += uint32(binary.BigEndian.Uint16(b))
		start = start>>16 + start&0xffff
		b = b[2:]
	}
	if len(b) == 1 {
		start += uint32(b[0]) << 8
	}
	return start>>16 + start&0xffff
}

// checksum is the complement of a sum.
func checksum(s uint32) uint16 {
	s = s>>16 + s&0xffff
	return ^uint16(s>>16 + s)
}

// pseudo6 is the sum over the IPv6 pseudo header (RFC 8200 section 8.1).
func pseudo6(src, dst []byte, n int) uint32 {
	return sum(sum(uint32(protoICMPv6)+uint32(n), src), dst)
}
