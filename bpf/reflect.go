package bpf

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
)

// Reflect is the loaded reflect program. Its methods are safe for several
// goroutines.
type Reflect struct {
	coll   *ebpf.Collection
	prog   *ebpf.Program
	queues int
	close  sync.Once
}

// ReflectCounters are the frames of one receive queue; those sent back are
// under ReasonDropped: what the driver then does with them is its to count.
type ReflectCounters struct {
	QueueCounters
	Bytes uint64 // with FCS, of the frames sent back
}

// LoadReflect loads the program that sends our frames back (XDP_TX) with MAC
// and IP addresses and UDP ports swapped, and with checks that are right again,
// or as wrong as they were. Frames that do not match, and UDP behind IPv4
// options or IPv6 extension headers, pass to the stack. Errors as LoadSteer.
func LoadReflect(cfg SinkConfig) (*Reflect, error) {
	if cfg.Frags {
		return nil, &ConfigError{"Frags", true, "frames of one buffer"}
	}
	f := filter{cfg.Match, cfg.Ports, cfg.VLANs, cfg.MACs, cfg.Run, cfg.Queues, cfg.LoseBeforeSeen, cfg.LoseAfterSeen}
	if err := f.validate(); err != nil {
		return nil, err
	}
	spec, err := loadReflect()
	if err != nil {
		return nil, fmt.Errorf("read reflect: %w", err)
	}
	var crc [54][256]uint16
	for i := range crc {
		crc[i] = crcAfter(i)
	}
	if err := errors.Join(f.apply(spec), setVariables(spec, map[string]any{"crc_at": crc})); err != nil {
		return nil, err
	}
	spec.Maps["counters"].MaxEntries = uint32(f.queues) + 1
	coll, prog, err := loadXDP(spec, "reflect", false, capBPF|capNetAdmin|capPerfmon)
	if err != nil {
		return nil, err
	}
	return &Reflect{coll: coll, prog: prog, queues: f.queues}, nil
}

// Program is the program to attach; it lives as long as the Reflect.
func (r *Reflect) Program() *ebpf.Program { return r.prog }

// Counters reads the frames, one entry per queue, and a last one for OtherQueues.
func (r *Reflect) Counters() ([]ReflectCounters, error) {
	var all []ReflectCounters
	err := readSlots(r.coll.Maps["counters"], r.queues+1, func(slot int, cpus []reflectReflectCounters) {
		c := ReflectCounters{QueueCounters: newQueueCounters(slot, r.queues)}
		for _, cpu := range cpus {
			addNamed(c.Frames, reasons[:], cpu.Frames[:])
			c.Bytes += cpu.Bytes
		}
		all = append(all, c)
	})
	return all, err
}

// QueueCounters reads the frames by reason only, as Steer.Counters does.
func (r *Reflect) QueueCounters() ([]QueueCounters, error) {
	all, err := r.Counters()
	return queuesOf(all, func(c ReflectCounters) QueueCounters { return c.QueueCounters }), err
}

// Close unloads the program unless it is still attached. It may be called twice.
func (r *Reflect) Close() error {
	r.close.Do(r.coll.Close)
	return nil
}
