package frame

import (
	"encoding/binary"
	"fmt"

	"linerate/internal/wire"
)

// Template is a worker's share of a stream laid out for a program that cannot
// call a Writer: what it writes with these is what the Writer writes.
type Template struct {
	Frame   []byte // the first frame without FCS, no stamp
	L3      int    // offset of the IP header
	Payload int    // offset of the UDP payload
	V6      bool
	MACs    bool   // flows differ in their MAC addresses
	Fixed   uint64 // magic, run and space, in place in the tag's first 8 bytes
	Flows   []TemplateFlow
}

// TemplateFlow is what frames of one flow have of their own.
type TemplateFlow struct {
	MAC      [12]byte // destination and source
	Addr     [36]byte // addresses and ports as in the frame: 12 bytes for IPv4
	L3Check  [2]byte  // IPv4 header checksum as in the frame
	L4Sum    [2]byte  // folded sum of all the UDP checksum covers but sequence, time, flags and tag check
	TagCheck uint16   // of the tag with sequence, time and flags 0
}

// Template lays out the frames of a Writer that has one frame size and writes
// long tags. Errors: *FieldError for several sizes, *LimitError for a size
// under the long tag's least.
func (w *Writer) Template() (*Template, error) {
	z := &w.sizes[0]
	if len(w.sizes) > 1 {
		return nil, fmt.Errorf("lay out frames: %w", &FieldError{"frame", fmt.Sprintf("%d sizes", len(w.sizes)), "one size only, in the kernel"})
	}
	if z.short {
		return nil, fmt.Errorf("lay out frames: %w", &LimitError{"least frame", uint64(w.long.Frame()), uint64(z.len.Frame()), "the long tag"})
	}
	t := &Template{Frame: make([]byte, w.max), L3: w.l3, Payload: w.l4 + udpBytes, V6: w.v6, MACs: w.macs, Fixed: w.fixLong}
	w.reshape(t.Frame, 0, z)
	w.address(t.Frame, &w.flows[0], z, true)
	t.Frame = t.Frame[:z.len]
	for i := range w.flows {
		f := &w.flows[i]
		tf := TemplateFlow{MAC: f.mac, Addr: f.addr, TagCheck: f.long}
		if !w.v6 {
			binary.BigEndian.PutUint16(tf.L3Check[:], ^fold(uint64(z.l3)+uint64(f.l3)))
		}
		// Magic, run and space are in the sum that the program starts from.
		sum := fold(udpSum(uint64(z.l4)+uint64(f.l4), w.fixLong, 0, 0, z.odd))
		binary.BigEndian.PutUint16(tf.L4Sum[:], sum)
		t.Flows = append(t.Flows, tf)
	}
	return t, nil
}

// PlainEnd makes an END frame as End does, in a buffer of its own.
func (w *Writer) PlainEnd(sent, nowNs uint64) []byte {
	b := make([]byte, w.max)
	return b[:wire.BufLen(w.End(b, sent, nowNs))]
}
