package neighbor

import (
	"encoding/binary"
	"net/netip"
)

// Answer looks at one frame without its FCS and appends the answer to out[:0],
// if it asks for an address of ranges. The answer comes from mac; it is never
// longer than the frame, apart from the padding to the least frame and the
// option of an advertisement. Any bytes are accepted; what is not well formed
// gets no answer.
func Answer(out, frame []byte, mac [6]byte, ranges []Range) ([]byte, Kind) {
	if len(frame) < etherBytes || frame[6]&1 != 0 {
		return out[:0], None
	}
	switch binary.BigEndian.Uint16(frame[12:]) {
	case typeARP:
		return answerARP(out[:0], frame, mac, ranges)
	case typeIPv4:
		return answerIPv4(out[:0], frame, mac, ranges)
	case typeIPv6:
		return answerIPv6(out[:0], frame, mac, ranges)
	}
	return out[:0], None
}

// holds tells whether any range holds the address in network order, and which
// address that is.
func holds(ranges []Range, b []byte) bool {
	a, ok := netip.AddrFromSlice(b)
	if !ok {
		return false
	}
	for _, r := range ranges {
		if r.Holds(a) {
			return true
		}
	}
	return false
}

// pad fills up to the least frame.
func pad(b []byte) []byte {
	for len(b) < minFrame {
		b = append(b, 0)
	}
	return b
}

func ether(out []byte, dst []byte, src [6]byte, kind uint16) []byte {
	out = append(out, dst[:6]...)
	out = append(out, src[:]...)
	return binary.BigEndian.AppendUint16(out, kind)
}

// answerARP answers a request (RFC 826). An announcement, which asks for the
// sender's own address, wants no answer.
func answerARP(out, frame []byte, mac [6]byte, ranges []Range) ([]byte, Kind) {
	if len(frame) < etherBytes+arpBytes {
		return out, None
	}
	p := frame[etherBytes:]
	const ethernetIPv4Request = 0x0001_0800_0604_0001 // hardware, protocol, their lengths, operation
	sender, senderIP, target := p[8:14], [4]byte(p[14:18]), p[24:28]
	if binary.BigEndian.Uint64(p) != ethernetIPv4Request || sender[0]&1 != 0 || [6]byte(sender) == ([6]byte{}) ||
		senderIP == [4]byte(target) || !holds(ranges, target) {
		return out, None
	}
	out = ether(out, sender, mac, typeARP)
	return pad(appendARP(out, 2, mac, [4]byte(target), [6]byte(sender), senderIP)), ARP
}

func appendARP(out []byte, op uint16, mac [6]byte, ip [4]byte, targetMAC [6]byte, targetIP [4]byte) []byte {
	out = append(out, 0, 1, 8, 0, 6, 4)
	out = binary.BigEndian.AppendUint16(out, op)
	out = append(out, mac[:]...)
	out = append(out, ip[:]...)
	out = append(out, targetMAC[:]...)
	return append(out, targetIP[:]...)
}

// answerIPv4 answers an echo request (RFC 792) that came to mac. Options of the
// IP header are not sent back, and fragments are not put together.
func answerIPv4(out, frame []byte, mac [6]byte, ranges []Range) ([]byte, Kind) {
	p := frame[etherBytes:]
	if len(p) < ipv4Bytes+8 || p[0]>>4 != 4 || [6]byte(frame) != mac {
		return out, None
	}
	head, total := int(p[0]&15)*4, int(binary.BigEndian.Uint16(p[2:]))
	if head < ipv4Bytes || total < head+8 || total > len(p) {
		return out, None
	}
	src, dst, icmp := p[12:16], p[16:20], p[head:total]
	switch {
	case p[9] != protoICMP, binary.BigEndian.Uint16(p[6:])&0x3fff != 0, checksum(sum(0, p[:head])) != 0,
		icmp[0] != 8, icmp[1] != 0, checksum(sum(0, icmp)) != 0, !single(src), !holds(ranges, dst):
		return out, None
	}
	out = ether(out, frame[6:12], mac, typeIPv4)
	at := len(out)
	out = append(out, 0x45, 0)
	out = binary.BigEndian.AppendUint16(out, uint16(ipv4Bytes+len(icmp)))
	out = append(out, p[4], p[5], 0x40, 0, hopLimit, protoICMP, 0, 0)
	out = append(out, dst...)
	out = append(out, src...)
	binary.BigEndian.PutUint16(out[at+10:], checksum(sum(0, out[at:])))
	out = appendEcho(out, icmp, 0, 0)
	return pad(out), Echo
}

// appendEcho is the reply to an echo request: another type, and its checksum
// from the start of a pseudo header.
func appendEcho(out, icmp []byte, kind byte, start uint32) []byte {
	at := len(out)
	out = append(out, kind, 0, 0, 0)
	out = append(out, icmp[4:]...)
	binary.BigEndian.PutUint16(out[at+2:], checksum(sum(start, out[at:])))
	return out
}

// single tells of a source address whether one host can have it.
func single(b []byte) bool {
	a, _ := netip.AddrFromSlice(b)
	return a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// answerIPv6 answers a solicitation (RFC 4861 section 7.2.4) or an echo request
// (RFC 4443 section 4.1). Only ICMP right behind the IP header is looked at.
func answerIPv6(out, frame []byte, mac [6]byte, ranges []Range) ([]byte, Kind) {
	p := frame[etherBytes:]
	if len(p) < ipv6Bytes+8 || p[0]>>4 != 6 || p[6] != protoICMPv6 {
		return out, None
	}
	total := ipv6Bytes + int(binary.BigEndian.Uint16(p[4:]))
	if total > len(p) || total < ipv6Bytes+8 {
		return out, None
	}
	src, dst, icmp := p[8:24], p[24:40], p[ipv6Bytes:total]
	if checksum(sum(pseudo6(src, dst, len(icmp)), icmp)) != 0 || icmp[1] != 0 {
		return out, None
	}
	switch {
	case icmp[0] == 135 && p[7] == 255 && len(icmp) >= naBytes && holds(ranges, icmp[8:24]):
		return answerSolicitation(out, frame, src, icmp, mac)
	case icmp[0] == 128 && [6]byte(frame) == mac && single(src) && holds(ranges, dst):
		out = ether(out, frame[6:12], mac, typeIPv6)
		out = appendIPv6(out, len(icmp), hopLimit, dst, src)
		return pad(appendEcho(out, icmp, 129, pseudo6(dst, src, len(icmp)))), Echo
	}
	return out, None
}

func appendIPv6(out []byte, n int, hops byte, src, dst []byte) []byte {
	out = append(out, 0x60, 0, 0, 0)
	out = binary.BigEndian.AppendUint16(out, uint16(n))
	out = append(out, protoICMPv6, hops)
	out = append(out, src...)
	return append(out, dst...)
}

// answerSolicitation advertises the target: to who asked, or to all where who
// asked has no address yet (duplicate address detection).
func answerSolicitation(out, frame, src, icmp []byte, mac [6]byte) ([]byte, Kind) {
	to, asked := frame[6:12], true
	for options := icmp[naBytes:]; len(options) > 0; {
		n := int(0)
		if len(options) >= 2 {
			n = int(options[1]) * 8
		}
		if n == 0 || n > len(options) {
			return out, None
		}
		if options[0] == 1 && n == 8 && options[2]&1 == 0 {
			to = options[2:8]
		}
		options = options[n:]
	}
	if a, _ := netip.AddrFromSlice(src); a.IsUnspecified() {
		asked = false
	} else if a.IsMulticast() {
		return out, None
	}
	return appendAdvertisement(out, to, mac, [16]byte(icmp[8:24]), src, asked), Solicitation
}
