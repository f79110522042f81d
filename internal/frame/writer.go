package frame

import (
	"encoding/binary"
	"fmt"

	"linerate/internal/wire"
)

// WriterConfig is one worker's share of a stream.
type WriterConfig struct {
	Stream  Stream
	Run     Run
	Worker  uint8 // this worker, under Workers
	Workers int   // workers that share the stream, 1..16; 0 means 1

	// The worker sends flows FirstFlow, FirstFlow+Stride, ... Stride 0 means
	// FirstFlow = Worker and Stride = Workers: each flow belongs to one worker
	// and every worker has its share. A stream with fewer flows than workers
	// gives several workers the same flow.
	FirstFlow, Stride int

	StampEvery int // 1 frame in StampEvery carries the time; 1 = all, 0 = none
}

// Writer writes the frames of one worker of one stream. It belongs to one
// goroutine.
type Writer struct {
	// Changing from frame to frame.
	z     *layout // of the next frame
	f     *flow
	seq   uint64
	until int // frames until the next stamp
	// Parts of the tag check kept from frame to frame: of the upper 24 bits
	// of seq, and of the stamp late.
	highLong, highShort, lateLong uint16
	late                          uint64
	at, pos                       int // of f and z
	turn                          int // frames until flows and sizes are shifted against each other
	ends                          int

	flows   []flow
	sizes   []layout
	pattern []byte

	// Fixed.
	max      wire.BufLen
	long     wire.BufLen // frames from this length on carry the long tag
	l3, l4   int
	v6, macs bool // macs: they differ between flows
	many     bool // more than one flow
	moving   bool // more than one flow or size
	lap      int  // frames after which turn strikes; 0 = never
	every    int
	fixLong  uint64 // magic, run, space of the long tag in place
	fixShort uint64
	space    Space
	end      layout
	endFlags uint64
	head     []byte // headers with everything 0 that depends on flow or size
}

// layout is what one frame size puts into its frames.
type layout struct {
	len        wire.BufLen
	tag        int    // offset of the tag
	ipLen      uint16 // IPv4 total length or IPv6 payload length
	udpLen     uint16
	l3         uint16 // partial IPv4 header checksum: all but the addresses
	l4         uint16 // partial UDP checksum: all but addresses, ports and tag
	short, odd bool   // odd: the tag starts at an odd payload offset
}

// NewWriter prepares tables for every size and every flow of the worker (64
// bytes each). Errors are those of Stream.Validate, and *LimitError or
// *FieldError for the worker's share.
func NewWriter(c WriterConfig) (*Writer, error) {
	a, err := c.Stream.plan()
	if err == nil {
		err = c.share()
	}
	if err != nil {
		return nil, fmt.Errorf("new writer: %w", err)
	}
	st := c.Stream.Stack
	long, _ := LeastFrame(st)
	w := &Writer{
		long: long.Buf(), l3: st.l3(), l4: st.headers() - udpBytes, v6: st.v6(),
		space: Space{Worker: c.Worker, Stream: c.Stream.ID},
		every: c.StampEvery, until: 1, head: st.template(), endFlags: FlagEnd | FlagStamp,
		macs: a.span[4].n > 1 || a.span[5].n > 1,
	}
	t := Tag{Run: c.Run, Space: w.space}
	w.fixLong, _ = t.longWords()
	w.fixShort = t.shortWord()
	if c.Stream.NeedsShort() {
		w.endFlags |= FlagShort
	}
	w.addSizes(c.Stream.Sizes.Cycle())
	w.addFlows(&a, c)
	w.lap, w.turn = lapOf(len(w.sizes), len(w.flows))
	w.z, w.f = &w.sizes[0], &w.flows[0]
	w.many = len(w.flows) > 1
	w.moving = w.many || len(w.sizes) > 1
	return w, nil
}

// share checks and completes the worker's share.
func (c *WriterConfig) share() error {
	if c.Workers == 0 {
		c.Workers = 1
	}
	switch {
	case c.Workers < 0 || c.FirstFlow < 0 || c.Stride < 0 || c.StampEvery < 0:
		return &FieldError{"workers, first flow, stride, stamp",
			fmt.Sprint(c.Workers, c.FirstFlow, c.Stride, c.StampEvery), "negative"}
	case c.Workers > MaxWorkers:
		return &LimitError{"workers", uint64(c.Workers), MaxWorkers, "4 bits in the tag"}
	case int(c.Worker) >= c.Workers:
		return &LimitError{"worker", uint64(c.Worker), uint64(c.Workers - 1), "the number of workers"}
	}
	if c.Stride == 0 {
		c.FirstFlow, c.Stride = int(c.Worker), c.Workers
	}
	return nil
}

func (w *Writer) addSizes(cycle []wire.FrameLen) {
	w.end = w.layout(w.long)
	w.max = w.long
	for _, f := range cycle {
		w.sizes = append(w.sizes, w.layout(f.Buf()))
		w.max = max(w.max, f.Buf())
	}
	w.pattern = make([]byte, int(w.max)-len(w.head))
	fillPattern(w.pattern, 0)
}

func (w *Writer) layout(n wire.BufLen) layout {
	z := layout{len: n, tag: int(n) - LongTagBytes, udpLen: uint16(int(n) - w.l4)}
	if z.short = n < w.long; z.short {
		z.tag = int(n) - ShortTagBytes
	}
	z.ipLen = uint16(int(n) - w.l3)
	if w.v6 {
		z.ipLen -= ipv6Bytes
	} else {
		z.l3 = fold(uint64(sumBE(w.head[w.l3:w.l4])) + uint64(z.ipLen))
	}
	body := make([]byte, z.tag-len(w.head))
	fillPattern(body, 0)
	z.odd = len(body)%2 != 0
	z.l4 = fold(uint64(sumBE(body)) + 2*uint64(z.udpLen) + protoUDP)
	return z
}

func (w *Writer) addFlows(a *axes, c WriterConfig) {
	fixLong, fixShort := crcLong(w.fixLong, 0), crcShort(w.fixShort)
	first, stride, count := uint64(c.FirstFlow)%a.count, uint64(c.Stride), a.count
	w.flows = make([]flow, 0, (count-first+stride-1)/stride)
	for k := first; k < count; k += stride {
		w.flows = append(w.flows, a.flow(k, fixLong, fixShort))
	}
}

// lapOf gives the number of frames after which the same size meets the same
// flow again, 0 if by then every size has met every flow. At the end of each
// lap the flows are shifted by one, so that all combinations occur and each
// flow and each size keeps its share.
func lapOf(sizes, flows int) (lap, turn int) {
	g, b := sizes, flows
	for b != 0 {
		g, b = b, g%b
	}
	if g == 1 {
		return 0, 0
	}
	return sizes / g * flows, sizes / g * flows
}

// MaxLen is the length of the longest frame the Writer writes, END included:
// the least length of a buffer.
func (w *Writer) MaxLen() wire.BufLen { return w.max }

// Seq is the number of frames written, and so the next sequence number.
func (w *Writer) Seq() uint64 { return w.seq }

// Space is the Writer's sequence space.
func (w *Writer) Space() Space { return w.space }

// FlowCount is the number of flows this worker sends.
func (w *Writer) FlowCount() int { return len(w.flows) }

// reshape prepares buf for frames of another length than its last one: what
// a new length changes, and the old tag becomes payload again. Every byte of
// buf from the payload to MaxLen is pattern but for the last frame's tag, and
// so a longer frame needs no more than a shorter one.
func (w *Writer) reshape(buf []byte, prev wire.BufLen, z *layout) {
	pay := len(w.head)
	old := int(prev) - LongTagBytes
	if prev < w.long {
		old = int(prev) - ShortTagBytes
	}
	if old < pay || prev > w.max { // never written, or not by this Writer
		copy(buf, w.head)
		copy(buf[pay:w.max], w.pattern)
	} else {
		copy(buf[old:prev], w.pattern[old-pay:])
	}
	ipLen := w.l3 + 2
	if w.v6 {
		ipLen = w.l3 + 4
	}
	binary.BigEndian.PutUint16(buf[ipLen:], z.ipLen)
	binary.BigEndian.PutUint16(buf[w.l4+4:], z.udpLen)
}

// address writes what the flow decides, and the IPv4 header checksum.
func (w *Writer) address(buf []byte, f *flow, z *layout, macs bool) {
	if macs {
		*(*[12]byte)(buf) = f.mac
	}
	if w.v6 {
		*(*[36]byte)(buf[w.l3+8:]) = f.addr
		return
	}
	h := (*[24]byte)(buf[w.l3:])
	binary.BigEndian.PutUint16(h[10:], ^fold(uint64(z.l3)+uint64(f.l3)))
	*(*[12]byte)(h[12:]) = *(*[12]byte)(f.addr[:])
}
