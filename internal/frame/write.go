package frame

import (
	"encoding/binary"
	"math/bits"

	"linerate/internal/wire"
)

// Next writes the next frame into buf, which is at least MaxLen long, and
// returns its length. prev is the length this Writer last wrote into this very
// buffer, 0 if never or if anything else may have written there since; with
// prev right only the bytes that change are touched. nowNs is the stamp, in ns
// of CLOCK_MONOTONIC, taken once per batch. A buffer that is too short gets
// nothing: 0 is returned and no sequence number is used up.
func (w *Writer) Next(buf []byte, prev wire.BufLen, nowNs uint64) wire.BufLen {
	if len(buf) < int(w.max) {
		return 0
	}
	z, f := &w.sizes[w.pos], &w.flows[w.at]

	// 1. Headers and payload: only what the length or the flow changes.
	if prev != z.len {
		w.reshape(buf, prev, z)
		w.address(buf, f, z, true)
	} else if len(w.flows) > 1 {
		w.address(buf, f, z, w.macs)
	}

	// 2. Sequence number and stamp; the parts of the tag check that stay the
	// same from frame to frame are kept.
	seq := w.seq
	w.seq++
	if seq>>16 != w.high {
		w.keepHigh(seq)
	}
	late := uint64(0)
	if w.every != 0 {
		if w.until--; w.until == 0 {
			w.until = w.every
			late = uint64(uint32(nowNs>>6))<<8 | FlagStamp
		}
	}
	if late != w.late {
		w.late, w.lateLong = late, crcLong(0, late)
	}

	// 3. The tag, and its sum for the UDP checksum.
	var sum, carry uint64
	if z.short {
		t := (*[ShortTagBytes]byte)(buf[z.tag:])
		check := f.short ^ w.highShort ^ crcAt[3][byte(seq>>8)] ^ crcAt[2][byte(seq)]
		word := w.fixShort | uint64(uint32(seq))
		binary.BigEndian.PutUint64(t[0:], word)
		binary.BigEndian.PutUint16(t[8:], check)
		sum, carry = bits.Add64(word, uint64(check), 0)
		sum += carry
	} else {
		t := (*[LongTagBytes]byte)(buf[z.tag:])
		check := f.long ^ w.highLong ^ w.lateLong ^ crcAt[8][byte(seq>>8)] ^ crcAt[7][byte(seq)]
		w0, w1 := w.fixLong|seq>>24&0xffff, seq<<40|late
		binary.BigEndian.PutUint64(t[0:], w0)
		binary.BigEndian.PutUint64(t[8:], w1)
		binary.BigEndian.PutUint16(t[16:], check)
		sum, carry = bits.Add64(w0, w1, 0)
		sum, carry = bits.Add64(sum, uint64(check), carry)
		sum += carry
	}
	binary.BigEndian.PutUint16(buf[w.l4+6:], udpChecksum(sum, z, f))

	// 4. The next flow and the next size.
	if w.at++; w.at == len(w.flows) {
		w.at = 0
	}
	if w.pos++; w.pos == len(w.sizes) {
		w.pos = 0
	}
	if w.lap != 0 {
		w.shift()
	}
	return z.len
}

// udpChecksum completes the partial sums of size and flow with that of the
// tag. A tag at an odd offset has its bytes in the other halves of the words
// (RFC 1071 section 2B). 0 would mean "no checksum" (RFC 768).
func udpChecksum(tag uint64, z *layout, f *flow) uint16 {
	t := fold(tag)
	if z.odd {
		t = bits.ReverseBytes16(t)
	}
	if c := ^fold(uint64(t) + uint64(z.l4) + uint64(f.l4)); c != 0 {
		return c
	}
	return 0xffff
}

func (w *Writer) keepHigh(seq uint64) {
	w.high = seq >> 16
	w.highLong = crcLong(seq>>24&0xffff, seq<<40&^(0xffff<<40))
	w.highShort = crcShort(seq & 0xffff0000)
}

func (w *Writer) shift() {
	if w.turn--; w.turn == 0 {
		w.turn = w.lap
		if w.at++; w.at == len(w.flows) {
			w.at = 0
		}
	}
}

// End writes an END frame into buf, as Next does, and returns its length: the
// long tag with FlagEnd and the count sent in the sequence field, in the least
// frame that carries it. FlagShort says that some frames of the space carried
// the short tag. No sequence number is used up. ENDs take the flows in turn.
func (w *Writer) End(buf []byte, sent uint64, nowNs uint64) wire.BufLen {
	if len(buf) < int(w.max) {
		return 0
	}
	z, f := &w.end, &w.flows[w.ends%len(w.flows)]
	w.ends++
	w.reshape(buf, 0, z)
	w.address(buf, f, z, true)
	sent &= MaxSeq
	w0, w1 := w.fixLong|sent>>24, sent<<40|uint64(uint32(nowNs>>6))<<8|w.endFlags
	check := f.long ^ crcLong(sent>>24, w1)
	t := buf[z.tag:]
	binary.BigEndian.PutUint64(t[0:], w0)
	binary.BigEndian.PutUint64(t[8:], w1)
	binary.BigEndian.PutUint16(t[16:], check)
	sum, carry := bits.Add64(w0, w1, 0)
	sum, carry = bits.Add64(sum, uint64(check), carry)
	binary.BigEndian.PutUint16(buf[w.l4+6:], udpChecksum(sum+carry, z, f))
	return z.len
}
