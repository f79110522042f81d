package bpf

import "encoding/binary"

// crcOf runs CRC-16/CCITT over b.
func crcOf(crc uint16, b ...byte) uint16 {
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

// crcAfter is what each byte contributes to the CRC when so many bytes follow
// it: the CRC is linear, so the programs look each byte up by itself.
func crcAfter(following int) (t [256]uint16) {
	zeros := make([]byte, following)
	for b := range t {
		t[b] = crcOf(crcOf(0, byte(b)), zeros...)
	}
	return t
}

// crcStart is what the start value contributes to a message of n bytes.
func crcStart(n int) uint16 { return crcOf(0xffff, make([]byte, n)...) }

// native32 reads four bytes as the programs store them.
func native32(b []byte) uint32 { return binary.NativeEndian.Uint32(b) }

// native16 reads two bytes as the programs load them.
func native16(b [2]byte) uint16 { return binary.NativeEndian.Uint16(b[:]) }
