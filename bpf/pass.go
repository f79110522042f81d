package bpf

import (
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
)

// Pass is the loaded pass program.
type Pass struct {
	coll  *ebpf.Collection
	prog  *ebpf.Program
	close sync.Once
}

// LoadPass loads the program that leaves every frame to the stack. A port that
// only sends needs it: ixgbe wakes no AF_XDP socket without a program. It takes
// frames of any size (xdp.frags), counts nothing, and needs CAP_BPF and
// CAP_NET_ADMIN. Errors as LoadSteer.
func LoadPass() (*Pass, error) {
	spec, err := loadPass()
	if err != nil {
		return nil, fmt.Errorf("read pass: %w", err)
	}
	coll, prog, err := loadXDP(spec, "pass", false, capBPF|capNetAdmin)
	if err != nil {
		return nil, err
	}
	return &Pass{coll: coll, prog: prog}, nil
}

// Program is the program to attach; it lives as long as the Pass.
func (p *Pass) Program() *ebpf.Program { return p.prog }

// Close unloads the program unless it is still attached. It may be called twice.
func (p *Pass) Close() error {
	p.close.Do(p.coll.Close)
	return nil
}
