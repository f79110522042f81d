package frame

import "encoding/binary"

// PutTag writes the tag t over the last bytes of b, 10 where short and else 18;
// b ends where the UDP payload does. addr is as in AppendTag. It gives the same
// bytes, from the tables of the data path, and allocates nothing.
func PutTag(b []byte, t *Tag, short bool, addr []byte) {
	if short {
		w := t.shortWord()
		at := (*[ShortTagBytes]byte)(b[len(b)-ShortTagBytes:])
		binary.BigEndian.PutUint64(at[0:], w)
		binary.BigEndian.PutUint16(at[8:], crcShort(w)^crcFlow(addr, ShortTagBytes))
		return
	}
	w0, w1 := t.longWords()
	at := (*[LongTagBytes]byte)(b[len(b)-LongTagBytes:])
	binary.BigEndian.PutUint64(at[0:], w0)
	binary.BigEndian.PutUint64(at[8:], w1)
	binary.BigEndian.PutUint16(at[16:], crcLong(w0, w1)^crcFlow(addr, LongTagBytes))
}

// FillPattern writes the payload pattern into b, whose first byte is the first
// of the UDP payload.
func FillPattern(b []byte) { fillPattern(b, 0) }
