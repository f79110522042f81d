package engine

import (
	"errors"

	"github.com/cilium/ebpf"

	"linerate/bpf"
)

// attach puts a program on the configured port in the mode asked for.
func attach(p *ebpf.Program, cfg Config) (*bpf.Attachment, error) {
	mode := bpf.ModeAuto
	if cfg.Generic {
		mode = bpf.ModeGeneric
	}
	return bpf.Attach(p, cfg.Port.IfIndex, mode)
}

// xdpMode is the mode that was granted.
func xdpMode(a *bpf.Attachment) XDPMode {
	if a.Mode() == bpf.ModeGeneric {
		return Generic
	}
	return Native
}

// Data paths of a socket as documents print them.
const (
	zeroCopied = "zerocopy"
	copied     = "copy"
)

// socketMode names the data path of a socket for documents: a socket behind a
// generic program always copies, and the stack is part of its path.
func socketMode(zc bool, m XDPMode) string {
	switch {
	case zc:
		return zeroCopied
	case m == Generic:
		return string(Generic)
	}
	return copied
}

// steerCounts reads what the steer program has counted since it was loaded.
func steerCounts(s *bpf.Steer) (ProgramCounts, error) {
	if s == nil {
		return ProgramCounts{}, ErrClosed
	}
	queues, err := s.Counters()
	if err != nil {
		return ProgramCounts{}, err
	}
	return programCounts(queues), nil
}

// programCounts sorts a program's counters by what they count.
func programCounts(queues []bpf.QueueCounters) ProgramCounts {
	c := ProgramCounts{
		Seen: map[int]uint64{}, Redirected: map[int]uint64{},
		Accounted: map[int]uint64{}, Passed: map[int]map[string]uint64{},
	}
	for _, q := range queues {
		c.add(q)
	}
	return c
}

// add takes over one queue's counters.
func (c *ProgramCounts) add(q bpf.QueueCounters) {
	c.Seen[q.Queue] = q.Seen()
	c.Redirected[q.Queue] = q.Redirected()
	c.Accounted[q.Queue] = q.Dropped()
	c.NoMeta += q.Frames[bpf.ReasonNoMeta]
	c.Passed[q.Queue] = map[string]uint64{}
	for _, r := range bpf.PassReasons() {
		c.Passed[q.Queue][string(r)] = q.Frames[r]
	}
}

// disarm takes the sockets of the queues out of a program's map.
func disarm(s *bpf.Steer, queues []Queue) error {
	var errs []error
	for _, q := range queues {
		errs = append(errs, s.ClearSocket(q.ID))
	}
	return errors.Join(errs...)
}
