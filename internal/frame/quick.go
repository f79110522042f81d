package frame

import (
	"encoding/binary"
	"math/bits"
)

// The quick way through Check: it says yes to a good frame with a long tag and
// no padding, and otherwise nothing, whatever the reason; judge then finds
// that. One piece of straight code per family, every field loaded once.

// quick4 takes the frame from its IPv4 header on.
func (c *Checker) quick4(b []byte, out *Checked) bool {
	if len(b) < ipv4Bytes+udpBytes+LongTagBytes || len(b) > 0xffff {
		return false
	}
	h := (*[ipv4Bytes + udpBytes]byte)(b)
	if *(*[12]byte)(h[12:24]) != c.flow4 {
		c.flow4 = *(*[12]byte)(h[12:24])
		c.flow4CRC = crcFlow4(&c.flow4, LongTagBytes)
	}
	h0 := binary.LittleEndian.Uint64(h[0:])  // version, length, fragment
	h1 := binary.LittleEndian.Uint64(h[8:])  // TTL, protocol, checksum, source
	h2 := binary.LittleEndian.Uint64(h[16:]) // destination, ports
	h3 := binary.LittleEndian.Uint32(h[24:]) // UDP length, checksum

	// Version 4, header of 20 bytes, length, no fragment, UDP, its length.
	want := 0x45 | uint64(bits.ReverseBytes16(uint16(len(b))))<<16
	udpLen := bits.ReverseBytes16(uint16(len(b) - ipv4Bytes))
	if h0&0xff3f_0000_ffff_00ff != want || h1>>8&0xff != protoUDP ||
		uint16(h3) != udpLen || h3>>16 == 0 {
		return false
	}
	s, carry := bits.Add64(h0, h1, 0)
	s, carry = bits.Add64(s, h2&0xffff_ffff, carry)
	if fold(s+carry) != 0xffff {
		return false
	}
	s, carry = bits.Add64(h2, h1>>32+uint64(h3)+uint64(udpLen)+protoUDP<<8, 0)
	return c.quickTag(b[ipv4Bytes+udpBytes:], s+carry, c.flow4CRC, out)
}

// quick6 takes the frame from its IPv6 header on.
func (c *Checker) quick6(b []byte, out *Checked) bool {
	if len(b) < ipv6Bytes+udpBytes+LongTagBytes || len(b) > 0xffff {
		return false
	}
	h := (*[ipv6Bytes + udpBytes]byte)(b)
	if *(*[36]byte)(h[8:44]) != c.flow6 {
		c.flow6 = *(*[36]byte)(h[8:44])
		c.flow6CRC = crcFlow6(&c.flow6, LongTagBytes)
	}
	h0 := binary.LittleEndian.Uint64(h[0:])  // version, length, next header
	h5 := binary.LittleEndian.Uint64(h[40:]) // ports, UDP length, checksum
	udpLen := bits.ReverseBytes16(uint16(len(b) - ipv6Bytes))
	if h0&0x00ff_ffff_0000_00f0 != 0x60|uint64(udpLen)<<32|protoUDP<<48 ||
		uint16(h5>>32) != udpLen || h5>>48 == 0 {
		return false
	}
	s, carry := bits.Add64(binary.LittleEndian.Uint64(h[8:]), binary.LittleEndian.Uint64(h[16:]), 0)
	s, carry = bits.Add64(s, binary.LittleEndian.Uint64(h[24:]), carry)
	s, carry = bits.Add64(s, binary.LittleEndian.Uint64(h[32:]), carry)
	s, carry = bits.Add64(s, h5, carry)
	s, carry = bits.Add64(s, uint64(udpLen)+protoUDP<<8, carry)
	return c.quickTag(b[ipv6Bytes+udpBytes:], s+carry, c.flow6CRC, out)
}

// quickTag takes the UDP payload, the sum of all before it and the addresses'
// part of the tag check.
func (c *Checker) quickTag(b []byte, sum uint64, crc uint16, out *Checked) bool {
	t := (*[LongTagBytes]byte)(b[len(b)-LongTagBytes:])
	l0, l1 := binary.LittleEndian.Uint64(t[0:]), binary.LittleEndian.Uint64(t[8:])
	l2 := binary.LittleEndian.Uint16(t[16:])
	w0, w1 := bits.ReverseBytes64(l0), bits.ReverseBytes64(l1)
	late := w1 & (1<<40 - 1)
	if w0>>16 != c.top || late != c.late {
		return c.learnTag(w0, late) && c.quickTag(b, sum, crc, out)
	}
	crc ^= c.topCRC ^ c.lateCRC ^ crcAt[11][byte(w0>>8)] ^ crcAt[10][byte(w0)] ^
		crcAt[9][byte(w1>>56)] ^ crcAt[8][byte(w1>>48)] ^ crcAt[7][byte(w1>>40)]
	if crc != bits.ReverseBytes16(l2) || w1&FlagEnd != 0 {
		return false
	}
	if len(b) == LongTagBytes { // the 64 byte frame
		s, carry := bits.Add64(sum, l0, 0)
		s, carry = bits.Add64(s, l1, carry)
		s, carry = bits.Add64(s, uint64(l2), carry)
		sum = s + carry
	} else {
		sum = sumLE(sum, b)
	}
	if fold(sum) != 0xffff || c.payloadCheck && !isPattern(b[:len(b)-LongTagBytes]) {
		return false
	}
	// Field by field: a whole struct would be built aside and copied.
	out.Class, out.Reason, out.Identified, out.Short = ClassGood, ReasonNone, false, false
	out.Tag.Run, out.Tag.Worker, out.Tag.Stream = c.run, c.space.Worker, c.space.Stream
	out.Tag.Seq, out.Tag.TimeNs, out.Tag.Flags = w0&0xffff<<24|w1>>40, late>>8<<6, uint8(w1)
	return true
}

// learnTag takes over another magic, run and space, if they are ours, and
// other time and flags. The run must be known in full.
func (c *Checker) learnTag(w0, late uint64) bool {
	if w0>>48 != magicLong || c.known != 0xffff || Run(w0>>32) != c.run {
		return false
	}
	c.top, c.topCRC = w0>>16, crcLong(w0&^0xffff, 0)
	c.space = spaceOf(uint16(c.top))
	c.late, c.lateCRC = late, crcLong(0, late)
	return true
}
