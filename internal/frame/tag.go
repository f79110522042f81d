package frame

import "encoding/binary"

// Run identifies one run; chosen at random by the sender so that stray frames
// of an earlier run are told apart.
type Run uint16

// Limits of the tag's fields.
const (
	MaxWorkers      = 16        // sending workers per run
	MaxStreams      = 4096      // streams per run with the long tag
	MaxShortStreams = 16        // streams per run where a frame needs the short tag
	MaxSeq          = 1<<40 - 1 // greatest sequence number: 20 hours at 10G line rate
	LongTagBytes    = 18
	ShortTagBytes   = 10
)

const (
	magicLong  = 0x4C52 // "LR"
	magicShort = 0x4C53 // "LS"
)

// Flags of the tag.
const (
	FlagEnd   = 1 << 0 // END frame: the sequence field holds the count sent
	FlagStamp = 1 << 1 // the time field holds a stamp
	FlagShort = 1 << 2 // the space used short tags, or this tag is one
)

// Space is a sequence space: each worker of each stream counts by itself.
type Space struct {
	Worker uint8  // 0..15
	Stream uint16 // 0..4095
}

// Key packs the space as the long tag does: worker<<12 | stream.
func (s Space) Key() uint16 { return uint16(s.Worker)<<12 | s.Stream&(MaxStreams-1) }

func spaceOf(key uint16) Space {
	return Space{Worker: uint8(key >> 12), Stream: key & (MaxStreams - 1)}
}

// Tag is the decoded test tag.
type Tag struct {
	Run Run // a short tag holds its low 8 bits; the Checker fills in the rest when it knows it
	Space
	Seq    uint64 // 40 bits; 32 from a short tag
	TimeNs uint64 // low 38 bits of the sender's CLOCK_MONOTONIC in ns, in steps of 64
	Flags  uint8
}

// longWords gives the first 16 bytes of the long tag, ready to be stored.
func (t *Tag) longWords() (uint64, uint64) {
	w0 := uint64(magicLong)<<48 | uint64(t.Run)<<32 | uint64(t.Key())<<16 | t.Seq>>24&0xffff
	w1 := t.Seq<<40 | uint64(uint32(t.TimeNs>>6))<<8 | uint64(t.Flags)
	return w0, w1
}

// shortWord gives the first 8 bytes of the short tag.
func (t *Tag) shortWord() uint64 {
	return uint64(magicShort)<<48 | uint64(uint8(t.Run))<<40 |
		uint64(t.Worker)<<36 | uint64(t.Stream&0xf)<<32 | uint64(uint32(t.Seq))
}

// setLong decodes the first 16 bytes of a long tag.
func (t *Tag) setLong(w0, w1 uint64) {
	t.Run = Run(w0 >> 32)
	t.Space = spaceOf(uint16(w0 >> 16))
	t.Seq = w0&0xffff<<24 | w1>>40
	t.TimeNs = uint64(uint32(w1>>8)) << 6
	t.Flags = uint8(w1)
}

// setShort decodes the first 8 bytes of a short tag.
func (t *Tag) setShort(w uint64) {
	t.Run = Run(uint8(w >> 40))
	t.Space = Space{Worker: uint8(w >> 36 & 0xf), Stream: uint16(w >> 32 & 0xf)}
	t.Seq = uint64(uint32(w))
	t.TimeNs = 0
	t.Flags = FlagShort
}

// AppendTag appends the tag's wire form to b, with its check computed over
// addr: source address, destination address, source port, destination port in
// network order, 12 bytes for IPv4 and 36 for IPv6. It is the slow, plain way,
// for tools and tests.
func AppendTag(b []byte, t Tag, short bool, addr []byte) []byte {
	start := len(b)
	if short {
		b = binary.BigEndian.AppendUint64(b, t.shortWord())
	} else {
		w0, w1 := t.longWords()
		b = binary.BigEndian.AppendUint64(b, w0)
		b = binary.BigEndian.AppendUint64(b, w1)
	}
	b = append(b, 0, 0)
	check := crcPlain(crcPlain(0xffff, addr), b[start:])
	binary.BigEndian.PutUint16(b[len(b)-2:], check)
	return b
}
