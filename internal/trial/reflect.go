package trial

import (
	"fmt"
	"maps"
	"slices"

	"linerate/internal/budget"
	"linerate/internal/engine"
	"linerate/internal/nic"
)

// openReflector puts the program that sends frames back on the far port.
func (r *running) openReflector() error {
	e := r.spec.Reflector
	if e == nil {
		return nil
	}
	steer := r.spec.Steer
	steer.Queues = e.Port.RxQueues
	var err error
	if r.reflector, err = engine.OpenReflector(r.config(e), steer); err != nil {
		return fmt.Errorf("reflect on %s: %w", e.Endpoint, err)
	}
	return nil
}

// reflectRows follow the frames to the far port and back, both of which are the
// wire to the port that sends and receives.
func (r *running) reflectRows(b *builder) {
	if r.reflector == nil {
		return
	}
	bd := budget.Wire
	b.reading(bd, budget.Checkpoint, budget.RowReflectorRx, whole(r.last.far.DeviceRx()), whole(r.base.far.DeviceRx()))
	now, before := r.last.turned, r.base.turned
	var seen, left, turned uint64
	known := true
	for _, q := range slices.Sorted(maps.Keys(now.Seen)) {
		s, t := since(now.Seen[q], before.Seen[q]), since(now.Accounted[q], before.Accounted[q])
		if s == nil || t == nil {
			known = false
			continue
		}
		n, _ := passed(now.Passed[q], before.Passed[q])
		seen, turned, left = seen+*s, turned+*t, left+n
	}
	count := func(n uint64) *uint64 {
		if !known {
			return nil
		}
		return &n
	}
	b.port(bd, budget.Checkpoint, budget.RowReflectorSeen, count(seen), "bpf", "seen", "")
	b.port(bd, budget.Loss, budget.RowReflectorPassed, count(left), "bpf", "passed", "")
	b.port(bd, budget.Checkpoint, budget.RowReflected, count(turned), "bpf", "XDP_TX", "")
	if errs := r.last.far.Read(nic.RoleXDPTxErrors); errs.Frames != nil {
		b.reading(bd, budget.Loss, budget.RowReflectError, whole(errs), whole(r.base.far.Read(nic.RoleXDPTxErrors)))
	}
}

// whole is a reading of the port, whatever its queues.
func whole(v nic.Reading) nic.Reading {
	v.PerQueue = nil
	return v
}
