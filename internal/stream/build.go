package stream

import (
	"encoding/binary"
	"math/bits"

	"linerate/internal/frame"
	"linerate/internal/wire"
)

// patch is a field that varies: it is written into words 16-bit words at at.
type patch struct {
	vals             values
	at, words, shift int
}

// sum is one checksum, over the bytes from `from` to the end of the frame, or of
// the header.
type sum struct {
	at, from, to int // to 0: the end of the frame
	pseudo       int // offset of the IP header whose addresses count, 0 for none
	proto        uint64
	patches      []int // indices of what varies within
	inner        []int // sums written before, that lie within
	udp          bool  // 0 would mean "none"
	tagged       bool  // the tag lies within
	bad          bool
}

// length is one length field: that of the frame from `from` on.
type length struct{ at, from, more int }

// shape is what depends on the length of the frame.
type shape struct {
	len  int
	tag  int // offset of the tag, 0 without
	base []uint16
	lens []uint16
}

// Builder writes the frames of one stream. It belongs to one goroutine.
type Builder struct {
	stream  *Stream
	head    []byte // headers with what varies 0
	fill    []byte // payload of the longest frame
	patches []patch
	sums    []sum // the innermost first
	lengths []length
	shapes  []shape
	cycle   []uint16 // of indices into shapes
	end     *shape
	max     wire.BufLen
	addr    [2]int   // from, to: addresses and ports that the tag's check covers
	moved   []uint16 // what each patch adds to a checksum, of the frame being built
	written []uint16 // the sums, likewise
	tag     frame.Tag
	short   bool // some frames carry the short tag
}

// Config is what a Builder needs besides the stream. MAC addresses that are not
// 0 stand in for those that the file leaves out.
type Config struct {
	Run            frame.Run
	Worker         uint8
	SrcMAC, DstMAC [6]byte
}

// NewBuilder prepares the tables of a stream.
func NewBuilder(s *Stream, c Config) *Builder {
	b := &Builder{stream: s}
	b.tag = frame.Tag{Run: c.Run, Space: frame.Space{Worker: c.Worker % frame.MaxWorkers, Stream: uint16(s.ID)}}
	b.headers(c)
	b.checksums()
	index := map[wire.FrameLen]uint16{}
	tagged := s.Tagged()
	for _, f := range s.sizes {
		i, known := index[f]
		if !known {
			i = uint16(len(index))
			index[f] = i
			b.max = max(b.max, f.Buf())
		}
		b.cycle = append(b.cycle, i)
	}
	end := wire.BufLen(0)
	if tagged {
		end = max(wire.BufLen(len(b.head)+frame.LongTagBytes), wire.MinFrame.Buf())
		b.max = max(b.max, end)
	}
	b.fill = s.payload.bytes(int(b.max) - len(b.head))
	prefix := b.prefix()
	b.shapes = make([]shape, len(index))
	for f, i := range index {
		b.shapes[i] = b.shape(int(f.Buf()), tagged, s.wrong, prefix)
	}
	if tagged {
		e := b.shape(int(end), true, 0, prefix)
		b.end = &e
	}
	b.moved = make([]uint16, len(b.patches))
	b.written = make([]uint16, len(b.sums))
	return b
}

// bytes lays the payload out.
func (p *payload) bytes(n int) []byte {
	b := make([]byte, n)
	switch p.kind {
	case payloadInc:
		frame.FillPattern(b)
	case payloadRandom:
		for i := range b {
			b[i] = byte(mix64(p.seed+uint64(i/8)*0x9e3779b97f4a7c15) >> (i % 8 * 8))
		}
	case payloadHex:
		for at := 0; at < n; {
			at += copy(b[at:], p.hex)
		}
	}
	return b
}

// MaxLen is the least length of a buffer: that of the longest frame.
func (b *Builder) MaxLen() wire.BufLen { return b.max }

// Tagged tells whether the frames carry the test tag.
func (b *Builder) Tagged() bool { return b.end != nil }

// Build writes frame k of the stream into buf and returns its length, 0 if buf
// is shorter than MaxLen. A tagged frame carries seq and the time nowNs, in ns
// of CLOCK_MONOTONIC, 0 for no time.
func (b *Builder) Build(buf []byte, k, seq, nowNs uint64) wire.BufLen {
	flags := uint8(0)
	if nowNs != 0 {
		flags = frame.FlagStamp
	}
	s := &b.shapes[0]
	if n := uint64(len(b.cycle)); n > 1 {
		s = &b.shapes[b.cycle[k%n]]
	}
	return b.write(buf, s, k, seq, nowNs, flags)
}

// BuildEnd writes the END frame that says how many frames were sent; k picks
// the flow. It is 0 for a stream without tag, which has none.
func (b *Builder) BuildEnd(buf []byte, k, sent, nowNs uint64) wire.BufLen {
	if b.end == nil {
		return 0
	}
	flags := uint8(frame.FlagEnd | frame.FlagStamp)
	if b.short {
		flags |= frame.FlagShort
	}
	return b.write(buf, b.end, k, sent, nowNs, flags)
}

func (b *Builder) write(buf []byte, s *shape, k, seq, nowNs uint64, flags uint8) wire.BufLen {
	if len(buf) < int(b.max) {
		return 0
	}
	buf = buf[:s.len]

	// 1. Everything that is the same, and the lengths.
	copy(buf, b.head)
	copy(buf[len(b.head):], b.fill)
	for i, l := range b.lengths {
		binary.BigEndian.PutUint16(buf[l.at:], s.lens[i])
	}

	// 2. What varies.
	for i := range b.patches {
		p := &b.patches[i]
		b.moved[i] = p.put(buf, p.vals.at(k))
	}

	// 3. The tag, over addresses and ports.
	var tagSum uint64
	if s.tag != 0 {
		b.tag.Seq, b.tag.TimeNs, b.tag.Flags = seq&frame.MaxSeq, nowNs, flags
		short := s.len-s.tag == frame.ShortTagBytes
		frame.PutTag(buf, &b.tag, short, buf[b.addr[0]:b.addr[1]])
		tagSum = sumOf(buf[s.tag:])
		if s.tag%2 != 0 {
			tagSum = uint64(bits.ReverseBytes16(fold(tagSum)))
		}
	}

	// 4. Checksums, from the inside out.
	for i := range b.sums {
		c := &b.sums[i]
		total := uint64(s.base[i])
		for _, p := range c.patches {
			total += uint64(b.moved[p])
		}
		for _, in := range c.inner {
			total += uint64(b.written[in])
		}
		if c.tagged {
			total += tagSum
		}
		v := c.finish(fold(total), s == b.end)
		b.written[i] = v
		binary.BigEndian.PutUint16(buf[c.at:], v)
	}
	return wire.BufLen(s.len)
}

// finish makes the checksum of a sum, a wrong one where that is wanted.
func (c *sum) finish(total uint16, end bool) uint16 {
	v := ^total
	if c.udp && v == 0 {
		v = 0xffff // RFC 768
	}
	if c.bad && !end {
		const flip = 0x8001
		if v ^= flip; v == 0 {
			v = 1 // not "none"
		}
	}
	return v
}

// put writes the field into words that are 0 where it stands, and returns what
// it adds to a checksum.
func (p *patch) put(buf []byte, v u128) uint16 {
	at := buf[p.at:]
	if p.words == 8 {
		binary.BigEndian.PutUint64(at, v.hi)
		binary.BigEndian.PutUint64(at[8:], v.lo)
		return fold(uint64(fold(v.hi)) + uint64(fold(v.lo)))
	}
	x := v.lo << p.shift
	switch p.words {
	case 1:
		binary.BigEndian.PutUint16(at, binary.BigEndian.Uint16(at)|uint16(x))
	case 2:
		binary.BigEndian.PutUint32(at, binary.BigEndian.Uint32(at)|uint32(x))
	default:
		binary.BigEndian.PutUint16(at, binary.BigEndian.Uint16(at)|uint16(x>>32))
		binary.BigEndian.PutUint32(at[2:], binary.BigEndian.Uint32(at[2:])|uint32(x))
	}
	return fold(x)
}

// sumOf adds b up in 16-bit words, network order, two of them at a time; an odd
// byte is the upper half of a word (RFC 1071).
func sumOf(b []byte) (s uint64) {
	for ; len(b) >= 8; b = b[8:] {
		w := binary.BigEndian.Uint64(b)
		s += w>>32 + w&0xffff_ffff
	}
	for ; len(b) >= 2; b = b[2:] {
		s += uint64(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		s += uint64(b[0]) << 8
	}
	return s
}

// fold brings a sum down to 16 bits.
func fold(s uint64) uint16 {
	s = s>>32 + s&0xffff_ffff
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return uint16(s>>16 + s)
}
