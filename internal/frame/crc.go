package frame

import "encoding/binary"

// CRC-16/CCITT-FALSE. A CRC is linear over XOR: the CRC of a message is the
// XOR of what each byte contributes by itself, which depends only on the byte
// and on how many bytes follow. So there is no chain from byte to byte, parts
// that stay the same from frame to frame are kept, and the sender looks up no
// more than the bytes that changed.

// crcSpan is the longest message: IPv6 addresses, ports and a long tag.
const crcSpan = 36 + LongTagBytes

// crcAt[d][b] is what byte b contributes when d bytes follow it.
var crcAt = makeCRCTable()

// crcStart[n] is what the start value 0xffff contributes to n bytes.
var crcStart = makeCRCStart()

// crcPlain runs the CRC bit by bit.
func crcPlain(crc uint16, b []byte) uint16 {
	for _, x := range b {
		crc ^= uint16(x) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

func makeCRCTable() (t [crcSpan][256]uint16) {
	for b := range 256 {
		c := crcPlain(0, []byte{byte(b)})
		for d := range crcSpan {
			t[d][b] = c
			c = crcPlain(c, []byte{0})
		}
	}
	return t
}

func makeCRCStart() [crcSpan + 1]uint16 {
	var t [crcSpan + 1]uint16
	c := uint16(0xffff)
	for n := range t {
		t[n] = c
		c = crcPlain(c, []byte{0})
	}
	return t
}

// crcFlow is the contribution of addresses and ports (12 or 36 bytes), start
// value included, to a message that goes on with tail bytes of tag.
func crcFlow(addr []byte, tail int) uint16 {
	if len(addr) == 12 {
		return crcFlow4((*[12]byte)(addr), tail)
	}
	return crcFlow6((*[36]byte)(addr), tail)
}

// crcFlow6 is crcFlow for the 36 bytes of IPv6.
func crcFlow6(addr *[36]byte, tail int) uint16 {
	c := crcStart[36+tail]
	for i := 0; i < 32; i += 8 {
		t := (*[8][256]uint16)(crcAt[28-i+tail:])
		c ^= crcEight(t, binary.BigEndian.Uint64(addr[i:]))
	}
	t := (*[4][256]uint16)(crcAt[tail:])
	p := binary.BigEndian.Uint32(addr[32:])
	return c ^ t[3][byte(p>>24)] ^ t[2][byte(p>>16)] ^ t[1][byte(p>>8)] ^ t[0][byte(p)]
}

// crcEight is what 8 bytes contribute, by the table of the last of them.
func crcEight(t *[8][256]uint16, a uint64) uint16 {
	c := t[7][byte(a>>56)] ^ t[6][byte(a>>48)] ^ t[5][byte(a>>40)] ^ t[4][byte(a>>32)]
	return c ^ t[3][byte(a>>24)] ^ t[2][byte(a>>16)] ^ t[1][byte(a>>8)] ^ t[0][byte(a)]
}

// crcFlow4 is crcFlow for the 12 bytes of IPv4, without a loop.
func crcFlow4(addr *[12]byte, tail int) uint16 {
	t := (*[12][256]uint16)(crcAt[tail : tail+12])
	a, b := binary.BigEndian.Uint64(addr[:8]), binary.BigEndian.Uint32(addr[8:])
	c := crcStart[12+tail]
	c ^= t[11][byte(a>>56)] ^ t[10][byte(a>>48)] ^ t[9][byte(a>>40)] ^ t[8][byte(a>>32)]
	c ^= t[7][byte(a>>24)] ^ t[6][byte(a>>16)] ^ t[5][byte(a>>8)] ^ t[4][byte(a)]
	return c ^ t[3][byte(b>>24)] ^ t[2][byte(b>>16)] ^ t[1][byte(b>>8)] ^ t[0][byte(b)]
}

// crcLong is the contribution of a long tag's first 16 bytes.
func crcLong(w0, w1 uint64) uint16 {
	t := &crcAt
	c := t[17][byte(w0>>56)] ^ t[16][byte(w0>>48)] ^ t[15][byte(w0>>40)] ^ t[14][byte(w0>>32)]
	c ^= t[13][byte(w0>>24)] ^ t[12][byte(w0>>16)] ^ t[11][byte(w0>>8)] ^ t[10][byte(w0)]
	c ^= t[9][byte(w1>>56)] ^ t[8][byte(w1>>48)] ^ t[7][byte(w1>>40)] ^ t[6][byte(w1>>32)]
	return c ^ t[5][byte(w1>>24)] ^ t[4][byte(w1>>16)] ^ t[3][byte(w1>>8)] ^ t[2][byte(w1)]
}

// crcShort is the contribution of a short tag's first 8 bytes.
func crcShort(w uint64) uint16 {
	t := &crcAt
	c := t[9][byte(w>>56)] ^ t[8][byte(w>>48)] ^ t[7][byte(w>>40)] ^ t[6][byte(w>>32)]
	return c ^ t[5][byte(w>>24)] ^ t[4][byte(w>>16)] ^ t[3][byte(w>>8)] ^ t[2][byte(w)]
}
