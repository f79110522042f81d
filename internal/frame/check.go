package frame

import (
	"encoding/binary"
	"math/bits"
)

// minBuffer is the length up to which a frame may carry padding after the IP
// packet: the least Ethernet frame without its FCS.
const minBuffer = 60

// packet is where things stand in a frame that is UDP over IP.
type packet struct {
	addr, l4, end int // offsets of the source address, the UDP header, the end of the packet
	l3ok          bool
	v6            bool
}

// Check verifies one frame without its FCS and fills in out. It never
// allocates, and accepts any bytes.
//
// A frame whose IP headers make no sense but whose very last bytes are a tag
// of this run with the right check is ClassCorrupt, identified. Where the
// magic is there and the tag check wrong, the frame is corrupt as well, unless
// its run differs and its UDP checksum is right: then it is an intact frame of
// somebody else that happens to have the magic there.
func (c *Checker) Check(buf []byte, out *Checked) {
	if len(buf) < etherBytes {
		*out = Checked{Class: ClassUnreadable, Reason: ReasonLength}
		return
	}
	l3, kind := etherBytes, binary.BigEndian.Uint16(buf[12:])
	for n := 0; n < 2 && (kind == typeVLAN || kind == typeSVLAN) && len(buf) >= l3+vlanBytes; n++ {
		kind = binary.BigEndian.Uint16(buf[l3+2:])
		l3 += vlanBytes
	}
	switch {
	case kind == typeIPv4 && c.quick4(buf[l3:], out):
	case kind == typeIPv6 && c.quick6(buf[l3:], out):
	default:
		c.judge(buf, l3, kind, out)
	}
}

// judge is Check step by step, for the frames that are not plainly good.
func (c *Checker) judge(buf []byte, l3 int, kind uint16, out *Checked) {
	*out = Checked{}
	var p packet
	switch kind {
	case typeIPv4:
		out.Class, out.Reason = readIPv4(buf, l3, &p)
	case typeIPv6:
		out.Class, out.Reason = readIPv6(buf, l3, &p)
	case typeVLAN, typeSVLAN:
		out.Class, out.Reason = ClassUntagged, ReasonNotIP
		if len(buf) < l3+vlanBytes {
			out.Class, out.Reason = ClassUnreadable, ReasonLength
		}
		return
	default:
		out.Class, out.Reason = ClassUntagged, ReasonNotIP
		return
	}
	if out.Reason != ReasonNone {
		p = packet{addr: l3 + 12, l4: l3 + ipv4Bytes}
		if kind == typeIPv6 {
			p = packet{addr: l3 + 8, l4: l3 + ipv6Bytes, v6: true}
		}
		reason := ReasonL3
		if out.Reason == ReasonLength {
			reason = ReasonLength
		}
		c.salvage(buf, &p, reason, out)
		return
	}
	c.verify(buf, &p, out)
}

// readIPv4 finds the UDP datagram and checks the header.
func readIPv4(buf []byte, l3 int, p *packet) (Class, Reason) {
	if len(buf) < l3+ipv4Bytes {
		return ClassUnreadable, ReasonLength
	}
	h := (*[ipv4Bytes]byte)(buf[l3:])
	if h[0] != 0x45 {
		if h[0]>>4 != 4 || h[0]&0xf < 5 {
			return ClassUnreadable, ReasonHeader
		}
		return ClassUntagged, ReasonNotUDP
	}
	p.addr, p.l4 = l3+12, l3+ipv4Bytes
	p.end = l3 + int(binary.BigEndian.Uint16(h[2:]))
	switch {
	case p.end < p.l4 || p.end > len(buf):
		return ClassUnreadable, ReasonLength
	case binary.BigEndian.Uint16(h[6:])&0x3fff != 0:
		return ClassUnreadable, ReasonFragment
	case h[9] != protoUDP:
		return ClassUntagged, ReasonNotUDP
	case p.end < p.l4+udpBytes:
		return ClassUnreadable, ReasonLength
	}
	s, carry := bits.Add64(binary.LittleEndian.Uint64(h[0:]), binary.LittleEndian.Uint64(h[8:]), 0)
	s, carry = bits.Add64(s, uint64(binary.LittleEndian.Uint32(h[16:])), carry)
	p.l3ok = fold(s+carry) == 0xffff
	return ClassGood, ReasonNone
}

// readIPv6 finds the UDP datagram. There is no header checksum.
func readIPv6(buf []byte, l3 int, p *packet) (Class, Reason) {
	if len(buf) < l3+ipv6Bytes {
		return ClassUnreadable, ReasonLength
	}
	h := (*[ipv6Bytes]byte)(buf[l3:])
	p.addr, p.l4 = l3+8, l3+ipv6Bytes
	p.end = p.l4 + int(binary.BigEndian.Uint16(h[4:]))
	switch {
	case h[0]>>4 != 6:
		return ClassUnreadable, ReasonHeader
	case p.end > len(buf):
		return ClassUnreadable, ReasonLength
	case h[6] == protoFrag:
		return ClassUnreadable, ReasonFragment
	case h[6] != protoUDP:
		return ClassUntagged, ReasonNotUDP
	case p.end < p.l4+udpBytes:
		return ClassUnreadable, ReasonLength
	}
	p.l3ok, p.v6 = true, true
	return ClassGood, ReasonNone
}

// verify judges a UDP datagram. The tag is looked for at the end of the IP
// packet, the long one first.
func (c *Checker) verify(buf []byte, p *packet, out *Checked) {
	// 1. The tag.
	check, ok := readTag(buf[:p.end], p, out)
	if !ok {
		out.Class, out.Reason = ClassUntagged, ReasonNoTag
		if len(buf) != p.end {
			c.salvage(buf, p, ReasonLength, out)
		}
		return
	}

	// 2. Lengths and the UDP checksum: addresses, UDP header and payload stand
	// in one piece, and only protocol and length of the pseudo header are left.
	udp := (*[udpBytes]byte)(buf[p.l4:])
	udpLen := int(binary.BigEndian.Uint16(udp[4:]))
	lenok := udpLen == p.end-p.l4 && (len(buf) == p.end || len(buf) <= minBuffer)
	pseudo := uint64(bits.ReverseBytes16(uint16(udpLen))) + protoUDP<<8
	l4ok := fold(sumLE(pseudo, buf[p.addr:p.end])) == 0xffff && (udp[6] != 0 || udp[7] != 0)

	// 3. Tag check and run.
	whole := lenok && p.l3ok && l4ok
	if !check {
		out.Class, out.Reason = ClassCorrupt, ReasonTag
		if l4ok && !c.sameRun(&out.Tag, out.Short, false) {
			out.Class, out.Reason = ClassUntagged, ReasonNoTag
		}
		out.Tag = Tag{}
		return
	}
	if !c.sameRun(&out.Tag, out.Short, whole) {
		out.Class, out.Reason = ClassOtherRun, ReasonRun
		return
	}

	// 4. The verdict.
	switch {
	case !lenok:
		out.Reason = ReasonLength
	case !p.l3ok:
		out.Reason = ReasonL3
	case !l4ok:
		out.Reason = ReasonL4
	case c.payloadCheck && !isPattern(buf[p.l4+udpBytes:p.end-tagBytes(out.Short)]):
		out.Reason = ReasonPattern
	case out.Tag.Flags&FlagEnd != 0:
		out.Class = ClassEnd
		return
	default:
		return
	}
	out.Class, out.Identified = ClassCorrupt, true
}

func tagBytes(short bool) int {
	if short {
		return ShortTagBytes
	}
	return LongTagBytes
}

// readTag decodes the tag at the end of the packet and compares its check.
// found is false where no magic stands.
func readTag(b []byte, p *packet, out *Checked) (check, found bool) {
	room := len(b) - p.l4 - udpBytes
	if room >= LongTagBytes {
		t := (*[LongTagBytes]byte)(b[len(b)-LongTagBytes:])
		if w0 := binary.BigEndian.Uint64(t[0:]); w0>>48 == magicLong {
			w1 := binary.BigEndian.Uint64(t[8:])
			out.Tag.setLong(w0, w1)
			crc := crcLong(w0, w1) ^ crcAddr(b, p, LongTagBytes)
			return crc == binary.BigEndian.Uint16(t[16:]), true
		}
	}
	if room >= ShortTagBytes {
		t := (*[ShortTagBytes]byte)(b[len(b)-ShortTagBytes:])
		if w := binary.BigEndian.Uint64(t[0:]); w>>48 == magicShort {
			out.Short = true
			out.Tag.setShort(w)
			crc := crcShort(w) ^ crcAddr(b, p, ShortTagBytes)
			return crc == binary.BigEndian.Uint16(t[8:]), true
		}
	}
	return false, false
}

func crcAddr(b []byte, p *packet, tail int) uint16 {
	if p.v6 {
		return crcFlow(b[p.addr:p.l4+4], tail)
	}
	return crcFlow4((*[12]byte)(b[p.addr:]), tail)
}

// salvage looks for a tag in the last bytes of a frame whose IP header is
// broken. Only a right tag check counts: there is no other evidence.
func (c *Checker) salvage(buf []byte, p *packet, reason Reason, out *Checked) {
	var found Checked
	check, ok := readTag(buf, p, &found)
	if !ok || !check || !c.sameRun(&found.Tag, found.Short, false) {
		return
	}
	*out = found
	out.Class, out.Reason, out.Identified = ClassCorrupt, reason, true
}
