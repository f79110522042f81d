package frame

import (
	"encoding/binary"
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

func TestCRCKnownAnswer(t *testing.T) {
	if got := crcPlain(0xffff, []byte("123456789")); got != 0x29b1 {
		t.Errorf("CRC-16/CCITT-FALSE of 123456789 is %#04x, want 0x29b1", got)
	}
}

// TestCRCByParts: the parts add up to the CRC taken bit by bit.
func TestCRCByParts(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		addr := rapid.SliceOfN(rapid.Byte(), 36, 36).Draw(r, "addr")
		addr = addr[:rapid.SampledFrom([]int{12, 36}).Draw(r, "family")]
		w0, w1 := rapid.Uint64().Draw(r, "w0"), rapid.Uint64().Draw(r, "w1")
		tag := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, w0), w1)
		long := crcPlain(crcPlain(0xffff, addr), append(tag, 0, 0))
		if got := crcFlow(addr, LongTagBytes) ^ crcLong(w0, w1); got != long {
			r.Fatalf("long: %#04x, want %#04x", got, long)
		}
		short := crcPlain(crcPlain(0xffff, addr), append(tag[:8:8], 0, 0))
		if got := crcFlow(addr, ShortTagBytes) ^ crcShort(w0); got != short {
			r.Fatalf("short: %#04x, want %#04x", got, short)
		}
	})
}

// plainSum is RFC 1071 as it stands there.
func plainSum(b []byte) uint16 {
	var s uint32
	for i := 0; i < len(b); i += 2 {
		w := uint32(b[i]) << 8
		if i+1 < len(b) {
			w |= uint32(b[i+1])
		}
		if s += w; s > 0xffff {
			s -= 0xffff
		}
	}
	return uint16(s)
}

func TestSum(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		b := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0x7f, 0xfe, 0xff}), 0, 150).Draw(r, "bytes")
		if got, want := sumBE(b), plainSum(b); got != want {
			r.Fatalf("%#04x, want %#04x", got, want)
		}
		acc := rapid.Uint64().Draw(r, "acc")
		got := fold(sumLE(acc, b))
		head := binary.LittleEndian.AppendUint64(nil, acc)
		if want := bits.ReverseBytes16(plainSum(append(head, b...))); got != want {
			r.Fatalf("with %#x before: %#04x, want %#04x", acc, got, want)
		}
	})
}
