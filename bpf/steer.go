package bpf

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
)

// SteerConfig says which frames go to the AF_XDP sockets.
type SteerConfig struct {
	Match Match // 0 means MatchTag
	Ports []uint16
	VLANs []uint16
	MACs  [][6]byte // at most 16

	// Run takes only this run's tags; another's pass as ReasonOtherRun. 0 takes all.
	Run uint16
	// Stamp puts the receive time before every redirected frame, see Stamp.
	Stamp bool
	// Queues is the number of receive queues served, 1 to MaxQueues; 0 means 1.
	Queues int
	// Frags loads the variant that takes frames of several buffers (MTU over
	// about 3,500 on veth), since Linux 5.18.
	Frags bool

	// LoseBeforeSeen and LoseAfterSeen make that many matching frames vanish
	// before or after they are counted as seen, counted nowhere. They exist
	// for the frame budget's own test.
	LoseBeforeSeen, LoseAfterSeen uint32
}

// Steer is the loaded steer program. Its methods are safe for several goroutines.
type Steer struct {
	coll   *ebpf.Collection
	prog   *ebpf.Program
	queues int
	close  sync.Once
}

// LoadSteer loads the program that hands our frames to AF_XDP sockets and
// everything else to the stack. It needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON.
// Errors: *ConfigError, *PermissionError, *UnsupportedError, or the kernel's.
func LoadSteer(cfg SteerConfig) (*Steer, error) {
	f := filter{cfg.Match, cfg.Ports, cfg.VLANs, cfg.MACs, cfg.Run, cfg.Queues,
		cfg.LoseBeforeSeen, cfg.LoseAfterSeen}
	if err := f.validate(); err != nil {
		return nil, err
	}
	spec, err := loadSteer()
	if err != nil {
		return nil, fmt.Errorf("read steer: %w", err)
	}
	if err := f.apply(spec); err != nil {
		return nil, err
	}
	if err := setVariables(spec, map[string]any{"stamp": cfg.Stamp}); err != nil {
		return nil, err
	}
	spec.Maps["counters"].MaxEntries = uint32(f.queues) + 1
	spec.Maps["sockets"].MaxEntries = uint32(f.queues)
	coll, prog, err := loadXDP(spec, "steer", cfg.Frags, capBPF|capNetAdmin|capPerfmon)
	if err != nil {
		return nil, err
	}
	return &Steer{coll: coll, prog: prog, queues: f.queues}, nil
}

// Program is the program to attach; it lives as long as the Steer.
func (s *Steer) Program() *ebpf.Program { return s.prog }

// SetSocket directs our frames of a receive queue to the AF_XDP socket fd. The
// kernel wants the socket to have an RX ring.
func (s *Steer) SetSocket(queue, fd int) error {
	if queue < 0 || queue >= s.queues {
		return &ConfigError{"queue", queue, fmt.Sprintf("0 to %d", s.queues-1)}
	}
	err := s.coll.Maps["sockets"].Put(uint32(queue), uint32(fd))
	if err != nil {
		return fmt.Errorf("set socket of queue %d: %w", queue, err)
	}
	return nil
}

// ClearSocket takes a receive queue's socket away again: our frames of that
// queue pass to the stack from now on, counted as ReasonNoSocket. Frames that
// were given to the socket before are there within one NAPI poll.
func (s *Steer) ClearSocket(queue int) error {
	err := s.coll.Maps["sockets"].Delete(uint32(queue))
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("clear socket of queue %d: %w", queue, err)
	}
	return nil
}

// Counters reads the frames by reason, one entry per queue, and a last one
// for OtherQueues.
func (s *Steer) Counters() ([]QueueCounters, error) {
	var all []QueueCounters
	err := readSlots(s.coll.Maps["counters"], s.queues+1, func(slot int, cpus []steerQueueCounters) {
		q := newQueueCounters(slot, s.queues)
		for _, cpu := range cpus {
			addNamed(q.Frames, reasons[:], cpu.Frames[:])
		}
		all = append(all, q)
	})
	return all, err
}

// Close unloads the program unless it is still attached. It may be called twice.
func (s *Steer) Close() error {
	s.close.Do(s.coll.Close)
	return nil
}
