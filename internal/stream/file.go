package stream

import (
	"strings"
	"time"

	"linerate/internal/wire"
)

// Limits of a file. A thousand streams of a thousand sizes are well within.
const (
	MaxStreams  = 1000    // streams of a file
	maxText     = 4 << 20 // bytes of a file
	maxList     = 1 << 16 // values of a list
	maxSizes    = 1 << 14 // sizes in one cycle
	maxAllSizes = 1 << 18 // of all streams: 100 bytes each
	maxLayers   = 16
	maxErrors   = 20 // reported at once
	maxRaw      = 4096
	maxCount    = 1 << 40              // the sequence of the tag ends there
	maxTime     = 365 * 24 * time.Hour // what a run may last
	leastBuf    = 14
	leastRunt   = wire.FrameLen(leastBuf + wire.FCSBytes)
	maxOversize = wire.FrameLen(16384)
	defaultSeed = 1
	vxlanPort   = 4789
	maxVLANs    = 2
)

// File is a streams file that has been read and found right.
type File struct {
	Seed    uint64
	Streams []*Stream
}

// Stream is one stream of a file.
type Stream struct {
	ID      int    // its place in the file, from 0; the stream of the tag
	Name    string // unique in the file
	Rate    wire.Rate
	Burst   Burst
	Count   uint64        // frames after which it ends, 0 for no end
	Time    time.Duration // after which it ends, 0 for no end
	Start   time.Duration // before its first frame
	layers  []layer
	sizes   []wire.FrameLen // one cycle, FCS included
	payload payload
	wrong   wrong
	tag     tagMode
	seed    uint64
}

// Burst says that after Size frames at the stream's rate nothing is sent for
// Gap. Size 0 means no bursts.
type Burst struct {
	Size uint64
	Gap  time.Duration
}

// Sizes is one cycle of the frame lengths, FCS included. It is the caller's.
func (s *Stream) Sizes() []wire.FrameLen { return append([]wire.FrameLen(nil), s.sizes...) }

// MeanFrame is the mean frame length in bytes over one cycle, FCS included.
func (s *Stream) MeanFrame() float64 {
	sum := 0
	for _, f := range s.sizes {
		sum += int(f)
	}
	return float64(sum) / float64(len(s.sizes))
}

// Stack names the layers: "eth/vlan/ipv4/udp".
func (s *Stream) Stack() string {
	names := make([]string, len(s.layers))
	for i := range s.layers {
		names[i] = s.layers[i].spec.name
	}
	return strings.Join(names, "/")
}

// layer is one header of a stream.
type layer struct {
	spec         layerSpec
	set          []bool   // which of spec.fields the file gives
	values       []values // of spec.fields
	raw          []byte
	tpid         uint64 // vlan: 0 if not given
	line, column int
}

// size is the length of the header in bytes.
func (l *layer) size() int { return l.spec.size + len(l.raw) }

type payloadKind uint8

const (
	payloadInc payloadKind = iota
	payloadZero
	payloadRandom
	payloadHex
)

// payload is what fills a frame up behind its headers.
type payload struct {
	kind   payloadKind
	seed   uint64
	seeded bool
	hex    []byte
}

// wrong is the set of what is wrong on purpose.
type wrong uint8

const (
	wrongL3 wrong = 1 << iota
	wrongL4
	wrongIPLen
	wrongUDPLen
	wrongRunt
	wrongOversize
)

var wrongNames = []nameOf{{"l3-checksum", uint64(wrongL3)}, {"l4-checksum", uint64(wrongL4)},
	{"ip-length", uint64(wrongIPLen)}, {"udp-length", uint64(wrongUDPLen)},
	{"runt", uint64(wrongRunt)}, {"oversize", uint64(wrongOversize)}}

type tagMode uint8

const (
	tagWhereItFits tagMode = iota
	tagAlways
	tagNever
)
