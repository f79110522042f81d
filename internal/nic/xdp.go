package nic

import (
	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
)

// Modes of an attached XDP program, as if_link.h XDP_ATTACHED_* orders them.
var xdpModes = [...]string{"none", "native", "generic", "offload", "multi"}

func xdpMode(x *netlink.LinkXdp) string {
	switch {
	case x == nil || !x.Attached:
		return "none"
	case int(x.AttachMode) < len(xdpModes):
		return xdpModes[x.AttachMode]
	default:
		return "unknown"
	}
}

// XDP gives the program attached to the port: its id, its name, and the mode
// "native", "generic", "offload" or "multi"; without one, id 0 and "none". The
// name needs CAP_BPF or CAP_SYS_ADMIN and is "" otherwise.
func (p *Port) XDP() (id uint32, name, mode string, err error) {
	err = p.do("read XDP program of", func() error {
		l, err := p.link()
		if err != nil {
			return err
		}
		mode = xdpMode(l.Attrs().Xdp)
		if mode != "none" {
			id = l.Attrs().Xdp.ProgId
		}
		return nil
	})
	if err != nil || id == 0 {
		return id, "", mode, err
	}
	prog, err := ebpf.NewProgramFromID(ebpf.ProgramID(id))
	if err != nil {
		return id, "", mode, nil // gone again, or not ours to see
	}
	defer prog.Close()
	if info, err := prog.Info(); err == nil {
		name = info.Name
	}
	return id, name, mode, nil
}
