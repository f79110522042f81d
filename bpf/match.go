package bpf

import (
	"encoding/binary"
	"fmt"

	"github.com/cilium/ebpf"
)

// Match says which frames are ours; the bits are or-ed: a frame is ours when any holds.
type Match uint32

// The values are those of enum match in src/match.h.
const (
	MatchTag   Match = 1 << iota // our test tag, of the configured run (default)
	MatchAll                     // every frame
	MatchPorts                   // one of Ports is the UDP destination port
	MatchVLANs                   // one of VLANs is in either VLAN tag
	MatchMACs                    // one of MACs is the destination address
)

// MaxQueues is the highest number of receive queues a program can serve.
const MaxQueues = 128

// maxMACs is MACS_MAX in src/match.h.
const maxMACs = 16

// ConfigError says which field of a configuration is impossible and why.
type ConfigError struct {
	Field string
	Value any
	Want  string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("configure program: %s is %v: want %s", e.Field, e.Value, e.Want)
}

// filter is what steer and sink have in common.
type filter struct {
	match                 Match
	ports                 []uint16
	vlans                 []uint16
	macs                  [][6]byte
	run                   uint16
	queues                int
	loseBefore, loseAfter uint32
}

func (f *filter) validate() error {
	if f.match == 0 {
		f.match = MatchTag
	}
	if f.queues == 0 {
		f.queues = 1
	}
	const known = MatchTag | MatchAll | MatchPorts | MatchVLANs | MatchMACs
	if f.match&^known != 0 {
		return &ConfigError{"Match", f.match, "only the Match constants"}
	}
	if f.queues < 0 || f.queues > MaxQueues {
		return &ConfigError{"Queues", f.queues, fmt.Sprintf("1 to %d", MaxQueues)}
	}
	if len(f.macs) > maxMACs {
		return &ConfigError{"MACs", len(f.macs), fmt.Sprintf("at most %d", maxMACs)}
	}
	for _, id := range f.vlans {
		if id > 4095 {
			return &ConfigError{"VLANs", id, "0 to 4095"}
		}
	}
	return f.validateLists()
}

// validateLists refuses a list without its bit and a bit without its list:
// either would silently match something else than was meant.
func (f *filter) validateLists() error {
	for _, l := range []struct {
		field string
		bit   Match
		n     int
	}{
		{"Ports", MatchPorts, len(f.ports)},
		{"VLANs", MatchVLANs, len(f.vlans)},
		{"MACs", MatchMACs, len(f.macs)},
	} {
		if (f.match&l.bit != 0) != (l.n > 0) {
			return &ConfigError{l.field, l.n, "entries exactly when Match" + l.field + " is set"}
		}
	}
	return nil
}

// apply writes the filter into the program's read-only data, before it is loaded.
func (f *filter) apply(spec *ebpf.CollectionSpec) error {
	var ports [1 << 16 / 64]uint64
	for _, p := range f.ports {
		ports[p/64] |= 1 << (p % 64)
	}
	var vlans [1 << 12 / 64]uint64
	for _, id := range f.vlans {
		vlans[id/64] |= 1 << (id % 64)
	}
	var macs [maxMACs]uint64
	for i, mac := range f.macs {
		var word [8]byte
		copy(word[:], mac[:])
		macs[i] = binary.NativeEndian.Uint64(word[:])
	}
	return setVariables(spec, map[string]any{
		"match_flags":      uint32(f.match),
		"match_ports":      ports,
		"match_vlans":      vlans,
		"match_macs":       macs,
		"match_mac_count":  uint32(len(f.macs)),
		"run_id":           f.run,
		"queues":           uint32(f.queues),
		"lose_before_seen": f.loseBefore,
		"lose_after_seen":  f.loseAfter,
	})
}

// setVariables sets constants of a program by name.
func setVariables(spec *ebpf.CollectionSpec, values map[string]any) error {
	for name, value := range values {
		v, ok := spec.Variables[name]
		if !ok {
			return fmt.Errorf("configure program: no variable %s", name)
		}
		if err := v.Set(value); err != nil {
			return fmt.Errorf("configure program: set %s: %w", name, err)
		}
	}
	return nil
}
