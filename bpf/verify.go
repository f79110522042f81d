package bpf

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
)

// VerifyConfig says which frames are verified and dropped; the fields are those
// of SteerConfig. Frames that do not match pass to the stack.
type VerifyConfig struct {
	SinkConfig
	Spaces       int    // sequence spaces there is room for, 16 KiB each; 0 means 256
	LoseDropped  uint32 // good frames never entered: for the frame budget's own test
	LatencyEvery int    // 1 stamped frame in so many is timed: a power of two; 0 means 64
}

// DefaultSpaces is how many sequence spaces Verify has room for by itself.
const DefaultSpaces = 256

// maxSpaces is SPACES_MAX in src/verify.c.
const maxSpaces = 4096

// Verify is the loaded verify program. Its methods are safe for several
// goroutines, but for Doubtful, which one goroutine calls.
type Verify struct {
	coll    *ebpf.Collection
	prog    *ebpf.Program
	queues  int
	samples *ringbuf.Reader
	record  ringbuf.Record
	close   sync.Once
}

// VerifyCounters are the frames of one receive queue.
type VerifyCounters struct {
	QueueCounters
	Bytes     uint64 // with FCS, of the frames under ReasonDropped
	Good      uint64 // of these: found good by the program itself
	GoodBytes uint64
	Judged    uint64 // of these: shown to user space
}

// SpaceView is one receive queue's count of one sequence space. The fields are
// those of package frame's account.
type SpaceView struct {
	Queue                                            int
	Key                                              uint16 // worker<<12 | stream
	Next                                             uint64 // newest number, + 1
	Distinct, Duplicate, Reordered, ReorderedBetween uint64
	TooLate, Implausible                             uint64
	Lowest                                           uint64 // of Distinct
}

// VerifyLosses are frames that the program knows and could not enter.
type VerifyLosses struct {
	Unjudged  uint64 // doubtful, and user space was too slow to look at them
	NoSpace   uint64 // good, of sequence spaces beyond those there is room for
	Contended uint64 // good, and the window's word changed under it again and again
	Backward  uint64 // informative: stamped later than received
}

// LoadVerify loads the program that verifies our frames, accounts for them and
// drops them. Errors as LoadSteer.
func LoadVerify(cfg VerifyConfig) (*Verify, error) {
	if cfg.Spaces == 0 {
		cfg.Spaces = DefaultSpaces
	}
	if cfg.LatencyEvery == 0 {
		cfg.LatencyEvery = 64
	}
	if cfg.Spaces < 0 || cfg.Spaces > maxSpaces {
		return nil, &ConfigError{"Spaces", cfg.Spaces, fmt.Sprintf("1 to %d", maxSpaces)}
	}
	if n := cfg.LatencyEvery; n < 0 || n&(n-1) != 0 {
		return nil, &ConfigError{"LatencyEvery", n, "a power of two"}
	}
	if cfg.Frags {
		return nil, &ConfigError{"Frags", true, "frames of one buffer: a checksum over several is not for XDP"}
	}
	f := filter{cfg.Match, cfg.Ports, cfg.VLANs, cfg.MACs, cfg.Run, cfg.Queues, cfg.LoseBeforeSeen, cfg.LoseAfterSeen}
	if err := f.validate(); err != nil {
		return nil, err
	}
	spec, err := loadVerify()
	if err != nil {
		return nil, fmt.Errorf("read verify: %w", err)
	}
	if err := errors.Join(f.apply(spec), cfg.apply(spec)); err != nil {
		return nil, err
	}
	spec.Maps["counters"].MaxEntries = uint32(f.queues) + 1
	spec.Maps["windows"].MaxEntries = uint32(cfg.Spaces)
	spec.Maps["views"].MaxEntries = uint32(cfg.Spaces * f.queues)
	coll, prog, err := loadXDP(spec, "verify", false, capBPF|capNetAdmin|capPerfmon)
	if err != nil {
		return nil, err
	}
	v := &Verify{coll: coll, prog: prog, queues: f.queues}
	if v.samples, err = ringbuf.NewReader(coll.Maps["doubtful"]); err != nil {
		return nil, errors.Join(fmt.Errorf("open the ring of doubtful frames: %w", err), v.Close())
	}
	return v, nil
}

func (c *VerifyConfig) apply(spec *ebpf.CollectionSpec) error {
	var crc [54][256]uint16
	for i := range crc {
		crc[i] = crcAfter(i)
	}
	return setVariables(spec, map[string]any{
		"crc_at": crc, "crc_start4": crcStart(12 + liveTagBytes), "crc_start6": crcStart(36 + liveTagBytes),
		"latency_mask": uint32(c.LatencyEvery - 1), "spaces": uint32(c.Spaces),
		"lose_dropped": c.LoseDropped,
	})
}

// Program is the program to attach; it lives as long as the Verify.
func (v *Verify) Program() *ebpf.Program { return v.prog }

// SetRun makes the program take a run that was not known when it was loaded;
// until then it counts no frame good.
func (v *Verify) SetRun(run uint16) error {
	if err := v.coll.Variables["adopted_run"].Set(uint32(run)); err != nil {
		return fmt.Errorf("set the run to verify: %w", err)
	}
	return nil
}

// Arm makes the program take frames, or leave them to the stack again
// (ReasonNoSocket), as it does when it was just loaded.
func (v *Verify) Arm(on bool) error {
	value := uint32(0)
	if on {
		value = 1
	}
	if err := v.coll.Variables["armed"].Set(value); err != nil {
		return fmt.Errorf("arm verify: %w", err)
	}
	return nil
}

// Doubtful waits for a frame that the program did not find good, at most for
// the time given; ok is false when there was none. buf is valid until the next
// call; a frame over 3,520 bytes is cut off there, length tells.
func (v *Verify) Doubtful(wait time.Duration) (queue, length int, buf []byte, ok bool, err error) {
	v.samples.SetDeadline(time.Now().Add(wait))
	err = v.samples.ReadInto(&v.record)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, ringbuf.ErrClosed):
		return 0, 0, nil, false, nil
	case err != nil:
		return 0, 0, nil, false, fmt.Errorf("read doubtful frames: %w", err)
	}
	raw := v.record.RawSample
	if len(raw) < 8 {
		return 0, 0, nil, false, fmt.Errorf("read doubtful frames: a record of %d bytes", len(raw))
	}
	length = int(native32(raw))
	return int(native32(raw[4:])), length, raw[8:min(8+length, len(raw))], true, nil
}

// Counters reads the frames, one entry per queue, and a last one for OtherQueues.
func (v *Verify) Counters() ([]VerifyCounters, error) {
	var all []VerifyCounters
	err := readSlots(v.coll.Maps["counters"], v.queues+1, func(slot int, cpus []verifyVerifyCounters) {
		c := VerifyCounters{QueueCounters: newQueueCounters(slot, v.queues)}
		for _, cpu := range cpus {
			addNamed(c.Frames, reasons[:], cpu.Frames[:])
			c.Bytes += cpu.Bytes
			c.Good += cpu.Good
			c.GoodBytes += cpu.GoodBytes
			c.Judged += cpu.Judged
		}
		all = append(all, c)
	})
	return all, err
}

// QueueCounters reads the frames by reason only, as Steer.Counters does.
func (v *Verify) QueueCounters() ([]QueueCounters, error) {
	all, err := v.Counters()
	return queuesOf(all, func(c VerifyCounters) QueueCounters { return c.QueueCounters }), err
}

// Views reads the account, in no order: queues that have seen frames of a space.
func (v *Verify) Views() ([]SpaceView, error) {
	var used uint32
	if err := v.coll.Variables["next_space"].Get(&used); err != nil {
		return nil, fmt.Errorf("read the number of spaces: %w", err)
	}
	m := v.coll.Maps["views"]
	var all []SpaceView
	for i := range min(used*uint32(v.queues), m.MaxEntries()) {
		var w verifyView
		if err := m.Lookup(i, &w); err != nil {
			return nil, fmt.Errorf("read view %d: %w", i, err)
		}
		if w.Next == 0 && w.Implausible == 0 {
			continue
		}
		all = append(all, SpaceView{Queue: int(i) % v.queues, Key: uint16(w.Key), Next: w.Next,
			Distinct: w.Distinct, Duplicate: w.Duplicate, Reordered: w.Reordered, ReorderedBetween: w.Between,
			TooLate: w.Late, Implausible: w.Implausible, Lowest: max(w.Lowest, 1) - 1})
	}
	return all, nil
}

// Losses reads what the program could not enter.
func (v *Verify) Losses() (l VerifyLosses, err error) {
	for name, to := range map[string]*uint64{"unjudged": &l.Unjudged, "no_space": &l.NoSpace,
		"contended": &l.Contended, "backward": &l.Backward} {
		if err := v.coll.Variables[name].Get(to); err != nil {
			return l, fmt.Errorf("read %s: %w", name, err)
		}
	}
	return l, nil
}

// Latency hands each cell of the times that has any to each: its index and
// count. Cells are those of package meter's Histogram.
func (v *Verify) Latency(each func(cell int, n uint64)) error {
	m := v.coll.Maps["latency"]
	keys, counts := make([]uint32, m.MaxEntries()), make([]uint64, m.MaxEntries())
	var cursor ebpf.MapBatchCursor
	n, err := m.BatchLookup(&cursor, keys, counts, nil)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("read the times: %w", err)
	}
	for i := range n {
		if counts[i] > 0 {
			each(int(keys[i]), counts[i])
		}
	}
	return nil
}

// Close unloads the program unless it is still attached. It may be called twice.
func (v *Verify) Close() error {
	var err error
	v.close.Do(func() {
		if v.samples != nil {
			err = v.samples.Close()
		}
		v.coll.Close()
	})
	return err
}
