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
	z, f := w.z, w.f

	// 1. Headers and payload: only what the length or the flow changes.
	if prev != z.len {
		w.reshape(buf, prev, z)
		w.address(buf, f, z, true)
	} else if w.many {
		w.address(buf, f, z, w.macs)
	}

	// 2. Sequence number and stamp; the parts of the tag check that stay the
	// same from frame to frame are kept.
	seq := w.seq
	w.seq++
	if uint16(seq) == 0 {
		w.keepHigh(seq)
	}
	var late uint64
	var lateLong uint16
	if w.until--; w.until == 0 {
		late, lateLong = w.stamp(nowNs)
	}

	// 3. The tag, and with it the UDP checksum.
	sum := uint64(z.l4) + uint64(f.l4)
	if z.short {
		word := w.fixShort | uint64(uint32(seq))
		check := f.short ^ w.highShort ^ crcAt[3][byte(seq>>8)] ^ crcAt[2][byte(seq)]
		t := (*[ShortTagBytes]byte)(buf[z.tag:])
		binary.BigEndian.PutUint64(t[0:], word)
		binary.BigEndian.PutUint16(t[8:], check)
		sum = udpSum(sum, word, 0, check, z.odd)
	} else {
		w0, w1 := w.fixLong|seq>>24&0xffff, seq<<40|late
		check := f.long ^ w.highLong ^ lateLong ^ crcAt[8][byte(seq>>8)] ^ crcAt[7][byte(seq)]
		t := (*[LongTagBytes]byte)(buf[z.tag:])
		binary.BigEndian.PutUint64(t[0:], w0)
		binary.BigEndian.PutUint64(t[8:], w1)
		binary.BigEndian.PutUint16(t[16:], check)
		sum = udpSum(sum, w0, w1, check, z.odd)
	}
	binary.BigEndian.PutUint16(buf[w.l4+6:], udpChecksum(sum))

	// 4. The next flow and the next size.
	if w.moving {
		w.step()
	}
	return z.len
}

// step goes to the next flow and the next size.
func (w *Writer) step() {
	if w.at++; w.at == len(w.flows) {
		w.at = 0
	}
	if w.lap != 0 {
		if w.turn--; w.turn == 0 {
			w.turn = w.lap
			if w.at++; w.at == len(w.flows) {
				w.at = 0
			}
		}
	}
	if w.pos++; w.pos == len(w.sizes) {
		w.pos = 0
	}
	w.f, w.z = &w.flows[w.at], &w.sizes[w.pos]
}

// stamp gives the low 40 bits of a stamped tag before its check, and what
// they contribute to that.
func (w *Writer) stamp(nowNs uint64) (late uint64, lateLong uint16) {
	if w.until = w.every; w.every == 0 {
		return 0, 0
	}
	if late = uint64(uint32(nowNs>>6))<<8 | FlagStamp; late != w.late {
		w.late, w.lateLong = late, crcLong(0, late)
	}
	return late, w.lateLong
}

// udpSum adds the words of a tag to base. A tag at an odd offset has its bytes
// in the other halves of the 16-bit words (RFC 1071 section 2B).
func udpSum(base, w0, w1 uint64, check uint16, odd bool) uint64 {
	s, carry := bits.Add64(w0, w1, 0)
	s, carry = bits.Add64(s, uint64(check), carry)
	if odd {
		return base + uint64(bits.ReverseBytes16(fold(s+carry)))
	}
	s, carry = bits.Add64(s, base, carry)
	return s + carry
}

// udpChecksum is the checksum for a sum; 0 would mean "none" (RFC 768).
func udpChecksum(sum uint64) uint16 {
	if c := ^fold(sum); c != 0 {
		return c
	}
	return 0xffff
}

func (w *Writer) keepHigh(seq uint64) {
	w.highLong = crcLong(seq>>24&0xffff, seq<<40&^(0xffff<<40))
	w.highShort = crcShort(seq & 0xffff0000)
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
	sum := udpSum(uint64(z.l4)+uint64(f.l4), w0, w1, check, z.odd)
	binary.BigEndian.PutUint16(buf[w.l4+6:], udpChecksum(sum))
	return z.len
}
