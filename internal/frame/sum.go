package frame

import (
	"encoding/binary"
	"math/bits"
)

// fold brings a 64-bit ones' complement sum down to 16 bits (RFC 1071).
func fold(x uint64) uint16 {
	s, c := bits.Add32(uint32(x>>32), uint32(x), 0)
	s = s>>16 + s&0xffff + c
	s = s>>16 + s&0xffff
	return uint16(s>>16 + s)
}

// sumLE adds b to acc in little-endian words of 8 bytes: a ones' complement
// sum comes out the same in either byte order but for a final swap, and
// "is it all ones" needs not even that (RFC 1071 section 2B).
func sumLE(acc uint64, b []byte) uint64 {
	var c uint64
	for len(b) >= 32 {
		acc, c = bits.Add64(acc, binary.LittleEndian.Uint64(b), 0)
		acc, c = bits.Add64(acc, binary.LittleEndian.Uint64(b[8:]), c)
		acc, c = bits.Add64(acc, binary.LittleEndian.Uint64(b[16:]), c)
		acc, c = bits.Add64(acc, binary.LittleEndian.Uint64(b[24:]), c)
		acc, c = bits.Add64(acc, 0, c)
		acc += c
		b = b[32:]
	}
	for len(b) >= 8 {
		acc, c = bits.Add64(acc, binary.LittleEndian.Uint64(b), 0)
		acc += c
		b = b[8:]
	}
	if len(b) >= 4 {
		acc, c = bits.Add64(acc, uint64(binary.LittleEndian.Uint32(b)), 0)
		acc += c
		b = b[4:]
	}
	var last uint64
	switch len(b) {
	case 3:
		last = uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16
	case 2:
		last = uint64(b[0]) | uint64(b[1])<<8
	case 1:
		last = uint64(b[0])
	}
	acc, c = bits.Add64(acc, last, 0)
	return acc + c
}

// sumBE is the folded ones' complement sum of b in network order.
func sumBE(b []byte) uint16 { return bits.ReverseBytes16(fold(sumLE(0, b))) }
