package bpf

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// readSlots hands each slot of a per-CPU array to each, as the copies of all CPUs.
func readSlots[T any](m *ebpf.Map, slots int, each func(slot int, cpus []T)) error {
	for slot := range slots {
		var cpus []T
		if err := m.Lookup(uint32(slot), &cpus); err != nil {
			return fmt.Errorf("read slot %d of %s: %w", slot, m, err)
		}
		each(slot, cpus)
	}
	return nil
}

// addNamed adds counters to a map under their names.
func addNamed[K comparable](sum map[K]uint64, names []K, counters []uint64) {
	for i, name := range names {
		sum[name] += counters[i]
	}
}

// queuesOf takes the counters by reason out of a program's own.
func queuesOf[T any](all []T, of func(T) QueueCounters) []QueueCounters {
	queues := make([]QueueCounters, len(all))
	for i, c := range all {
		queues[i] = of(c)
	}
	return queues
}
