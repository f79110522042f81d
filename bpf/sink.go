package bpf

import (
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
)

// SinkConfig says which frames are counted and dropped; the fields are those
// of SteerConfig. Frames that do not match pass to the stack.
type SinkConfig struct {
	Match Match // 0 means MatchTag
	Ports []uint16
	VLANs []uint16
	MACs  [][6]byte // at most 16

	Run    uint16
	Queues int
	Frags  bool

	LoseBeforeSeen, LoseAfterSeen uint32
}

// SizeClass is a range of frame lengths in bytes, with FCS, as RFC 2819 divides them.
type SizeClass string

// sizeClasses are in the order of enum size_class in src/sink.c.
var sizeClasses = [...]SizeClass{
	sinkSizeClassSIZE_UNDER_64:  "under_64",
	sinkSizeClassSIZE_64:        "64",
	sinkSizeClassSIZE_65127:     "65_127",
	sinkSizeClassSIZE_128255:    "128_255",
	sinkSizeClassSIZE_256511:    "256_511",
	sinkSizeClassSIZE_5121023:   "512_1023",
	sinkSizeClassSIZE_10241518:  "1024_1518",
	sinkSizeClassSIZE_OVER_1518: "over_1518",
}

// Protocol is what a frame carries.
type Protocol string

// protocols are in the order of enum protocol in src/sink.c.
var protocols = [...]Protocol{
	sinkProtocolPROTOCOL_OTHER:     "other",
	sinkProtocolPROTOCOL_ARP:       "arp",
	sinkProtocolPROTOCOL_IPV4UDP:   "ipv4_udp",
	sinkProtocolPROTOCOL_IPV4TCP:   "ipv4_tcp",
	sinkProtocolPROTOCOL_IPV4OTHER: "ipv4_other",
	sinkProtocolPROTOCOL_IPV6UDP:   "ipv6_udp",
	sinkProtocolPROTOCOL_IPV6TCP:   "ipv6_tcp",
	sinkProtocolPROTOCOL_IPV6OTHER: "ipv6_other",
}

// SinkCounters are the frames of one receive queue. Bytes, Sizes and Protocols
// are of the dropped frames and hold every class.
type SinkCounters struct {
	QueueCounters
	Bytes     uint64 // with FCS
	Sizes     map[SizeClass]uint64
	Protocols map[Protocol]uint64
}

// StreamCounters are the tagged frames of one stream, over all its workers and queues.
type StreamCounters struct {
	Stream uint16
	Frames uint64
	Bytes  uint64 // with FCS
}

// Sink is the loaded sink program. Its methods are safe for several goroutines.
type Sink struct {
	coll   *ebpf.Collection
	prog   *ebpf.Program
	queues int
	close  sync.Once
}

// LoadSink loads the program that counts our frames and drops them. Errors as LoadSteer.
func LoadSink(cfg SinkConfig) (*Sink, error) {
	f := filter{cfg.Match, cfg.Ports, cfg.VLANs, cfg.MACs, cfg.Run, cfg.Queues,
		cfg.LoseBeforeSeen, cfg.LoseAfterSeen}
	if err := f.validate(); err != nil {
		return nil, err
	}
	spec, err := loadSink()
	if err != nil {
		return nil, fmt.Errorf("read sink: %w", err)
	}
	if err := f.apply(spec); err != nil {
		return nil, err
	}
	spec.Maps["counters"].MaxEntries = uint32(f.queues) + 1
	coll, prog, err := loadXDP(spec, "sink", cfg.Frags, capBPF|capNetAdmin|capPerfmon)
	if err != nil {
		return nil, err
	}
	return &Sink{coll: coll, prog: prog, queues: f.queues}, nil
}

// Program is the program to attach; it lives as long as the Sink.
func (s *Sink) Program() *ebpf.Program { return s.prog }

// QueueCounters reads the frames by reason only, as Steer.Counters does.
func (s *Sink) QueueCounters() ([]QueueCounters, error) {
	all, err := s.Counters()
	return queuesOf(all, func(c SinkCounters) QueueCounters { return c.QueueCounters }), err
}

// Counters reads the frames, one entry per queue, and a last one for OtherQueues.
func (s *Sink) Counters() ([]SinkCounters, error) {
	var all []SinkCounters
	err := readSlots(s.coll.Maps["counters"], s.queues+1, func(slot int, cpus []sinkSinkCounters) {
		c := SinkCounters{
			QueueCounters: newQueueCounters(slot, s.queues),
			Sizes:         make(map[SizeClass]uint64, len(sizeClasses)),
			Protocols:     make(map[Protocol]uint64, len(protocols)),
		}
		for _, cpu := range cpus {
			c.Bytes += cpu.Bytes
			addNamed(c.Frames, reasons[:], cpu.Frames[:])
			addNamed(c.Sizes, sizeClasses[:], cpu.Sizes[:])
			addNamed(c.Protocols, protocols[:], cpu.Protocols[:])
		}
		all = append(all, c)
	})
	return all, err
}

// Streams reads the streams that had frames, in order of their number.
func (s *Sink) Streams() ([]StreamCounters, error) {
	m := s.coll.Maps["streams"]
	var all []StreamCounters
	err := readSlots(m, int(m.MaxEntries()), func(slot int, cpus []sinkStreamCounters) {
		c := StreamCounters{Stream: uint16(slot)}
		for _, cpu := range cpus {
			c.Frames += cpu.Frames
			c.Bytes += cpu.Bytes
		}
		if c.Frames > 0 {
			all = append(all, c)
		}
	})
	return all, err
}

// Close unloads the program unless it is still attached. It may be called twice.
func (s *Sink) Close() error {
	s.close.Do(s.coll.Close)
	return nil
}
