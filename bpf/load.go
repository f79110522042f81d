package bpf

import (
	"github.com/cilium/ebpf"
)

// loadXDP loads one program of a collection: name, or name_frags. The other
// variant is left out, so that a kernel without it is no obstacle.
//
// Without CAP_PERFMON the verifier allows no packet access at an offset that it
// does not know (kernel/bpf/verifier.c, sanitize_ptr_alu), so parsing needs it.
func loadXDP(spec *ebpf.CollectionSpec, name string, frags bool, needs capability) (*ebpf.Collection, *ebpf.Program, error) {
	chosen, feature := name, Feature{"what the program uses", "Linux 6.1"}
	if frags {
		chosen, feature = name+"_frags", Feature{"XDP fragments", "Linux 5.18"}
	}
	for other := range spec.Programs {
		if other != chosen {
			delete(spec.Programs, other)
		}
	}
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, nil, explain("load "+chosen, err, needs, feature)
	}
	return coll, coll.Programs[chosen], nil
}
