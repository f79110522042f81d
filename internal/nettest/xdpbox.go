package nettest

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/safchain/ethtool"

	"linerate/internal/lab/veth"
	"linerate/internal/netns"
	"linerate/internal/nic"
)

// XDPRules is what the in-kernel forwarder does, the same on both ways. Frames
// are counted over all processors, in the order in which they were counted, so
// the number of faults is exact; which frames they hit is exact with one queue.
type XDPRules struct {
	DropFirst    uint32 // drop the first N frames
	DropEvery    uint32 // and every Nth frame, 0 = none
	CorruptFirst uint32 // damage the UDP checksum of the first N frames, as far as they are not dropped
	CorruptEvery uint32
}

const (
	xdpDrop = 1
	xdpPass = 2
)

// Slots of the per-processor count.
const (
	slotCounted = iota
	slotOther
	slotDropped
	slotCorrupted
	slots
)

// xdpBox is one program on each side of the middle.
type xdpBox struct {
	lab   *veth.Lab
	ways  [2]xdpWay
	ports [2]*nic.Port // the interface each way leaves through
	start [2]nic.Counters
}

type xdpWay struct {
	order, count *ebpf.Map
	prog         *ebpf.Program
	at           link.Link
}

func newXDPBox(lab *veth.Lab, port uint16, r XDPRules) (*xdpBox, error) {
	b := &xdpBox{lab: lab}
	// A redirect into a veth needs NAPI at its peer: with GRO it has that before
	// and after the test's own program is there.
	for _, e := range []veth.End{veth.A, veth.B} {
		if err := gro(lab.NS(e), veth.Interface); err != nil {
			return nil, fmt.Errorf("turn on GRO at end %s: %w", e, err)
		}
	}
	names := [2]string{veth.MiddleA, veth.MiddleB}
	for w := range b.ways {
		p, err := nic.Open(lab.NS(veth.Middle), names[1-w])
		if err == nil {
			b.ports[w] = p
			err = b.ways[w].load(lab.NS(veth.Middle), names[w], p.Index, port, r)
		}
		if err == nil {
			b.start[w], err = p.Counters()
		}
		if err != nil {
			return nil, errors.Join(err, b.close())
		}
	}
	return b, nil
}

func gro(ns *netns.NS, name string) error {
	return ns.Do(func() error {
		e, err := ethtool.NewEthtool()
		if err != nil {
			return err
		}
		defer e.Close()
		return e.Change(name, map[string]bool{"rx-gro": true})
	})
}

// load attaches the forwarder to the interface called from.
func (w *xdpWay) load(ns *netns.NS, from string, to int, port uint16, r XDPRules) (err error) {
	w.order, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 2})
	if err != nil {
		return err
	}
	w.count, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: 8, MaxEntries: slots})
	if err != nil {
		return err
	}
	w.prog, err = ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "faultbox", Type: ebpf.XDP, License: "Dual BSD/GPL",
		Instructions: forwarder(w.order.FD(), w.count.FD(), to, port, r),
	})
	if err != nil {
		return err
	}
	w.at, err = attach(ns, from, w.prog)
	return err
}

// forwarder is the program: tell whether the frame counts, take a number, and
// drop, damage or send it out of the other side.
// Registers: r6 context, r7 frame, r8 its end, r9 the frame's number.
func forwarder(order, count, to int, port uint16, r XDPRules) asm.Instructions {
	ins := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R7, asm.R6, 0, asm.Word),
		asm.LoadMem(asm.R8, asm.R6, 4, asm.Word),
	}
	paths := []struct {
		label string
		shift int32 // bytes of VLAN tag
		ether int32
	}{{"plain4", 0, etherIPv4}, {"plain6", 0, etherIPv6}, {"vlan4", 4, etherIPv4}, {"vlan6", 4, etherIPv6}}
	for i, p := range paths {
		next := "other"
		if i+1 < len(paths) {
			next = paths[i+1].label
		}
		ins = append(ins, path(p.label, next, p.shift, p.ether, port)...)
		ins = append(ins, number(order, count, p.label)...)
		ins = append(ins, decide(count, p.label, p.shift+udpChecksum(p.ether), r)...)
	}
	ins = append(ins, bump(count, slotOther, "other")...)
	ins = append(ins,
		asm.Mov.Imm(asm.R1, int32(to)).WithSymbol("forward"),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRedirect.Call(),
		asm.Return(),
	)
	return ins
}

// udpChecksum is the offset of the UDP checksum without VLAN tag.
func udpChecksum(ether int32) int32 {
	if ether == etherIPv4 {
		return 14 + 20 + 6
	}
	return 14 + 40 + 6
}

// path goes on only with UDP to the port in one kind of frame, else to next.
func path(label, next string, shift, ether int32, port uint16) asm.Instructions {
	protocol, ports := int16(14+9), int16(14+20)
	if ether == etherIPv6 {
		protocol, ports = 14+6, 14+40
	}
	s := int16(shift)
	ins := asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R7).WithSymbol(label),
		asm.Add.Imm(asm.R1, int32(ports)+8+shift),
		asm.JGT.Reg(asm.R1, asm.R8, next),
	}
	if shift > 0 {
		ins = append(ins,
			asm.LoadMem(asm.R1, asm.R7, 12, asm.Half),
			asm.JNE.Imm(asm.R1, int32(htons(0x8100)), next))
	}
	ins = append(ins,
		asm.LoadMem(asm.R1, asm.R7, 12+s, asm.Half),
		asm.JNE.Imm(asm.R1, int32(htons(uint16(ether))), next))
	if ether == etherIPv4 {
		ins = append(ins,
			asm.LoadMem(asm.R1, asm.R7, 14+s, asm.Byte),
			asm.JNE.Imm(asm.R1, 0x45, next)) // no options
	}
	return append(ins,
		asm.LoadMem(asm.R1, asm.R7, protocol+s, asm.Byte),
		asm.JNE.Imm(asm.R1, protoUDP, next),
		asm.LoadMem(asm.R1, asm.R7, ports+2+s, asm.Half),
		asm.JNE.Imm(asm.R1, int32(htons(port)), next))
}

// lookup leaves the address of a map value in r0, or leaves for "forward".
func lookup(fd, key int) asm.Instructions {
	return asm.Instructions{
		asm.StoreImm(asm.RFP, -4, int64(key), asm.Word),
		asm.LoadMapPtr(asm.R1, fd),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "forward"),
	}
}

// bump counts on this processor; nothing else runs the program on it meanwhile.
func bump(fd, slot int, label string) asm.Instructions {
	ins := lookup(fd, slot)
	ins[0] = ins[0].WithSymbol(label)
	return append(ins,
		asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(asm.R0, 0, asm.R1, asm.DWord))
}

// ticket takes the next number of one sequence into r9, from 1.
func ticket(fd, sequence int) asm.Instructions {
	add := asm.FetchAdd.Mem(asm.R0, asm.R9, asm.DWord, 0)
	// The library (v0.22.0) writes out the constant as it was before it put the
	// operation there, which makes a plain add of this: BPF_ADD | BPF_FETCH.
	add.Constant = 0x01
	return append(lookup(fd, sequence),
		asm.Mov.Imm(asm.R9, 1),
		add,
		asm.Add.Imm(asm.R9, 1))
}

func number(order, count int, label string) asm.Instructions {
	return append(bump(count, slotCounted, label+"-count"), ticket(order, 0)...)
}

// chosen jumps to yes for the first so many and every so manyth number in r9.
func chosen(first, every uint32, yes string) (ins asm.Instructions) {
	if first > 0 {
		ins = append(ins, asm.LoadImm(asm.R1, int64(first), asm.DWord), asm.JLE.Reg(asm.R9, asm.R1, yes))
	}
	if every > 0 {
		ins = append(ins,
			asm.Mov.Reg(asm.R1, asm.R9),
			asm.LoadImm(asm.R2, int64(every), asm.DWord),
			asm.Mod.Reg(asm.R1, asm.R2),
			asm.JEq.Imm(asm.R1, 0, yes))
	}
	return ins
}

// decide ends every path: drop, or damage and forward, or forward.
func decide(count int, label string, checksum int32, r XDPRules) asm.Instructions {
	ins := chosen(r.DropFirst, r.DropEvery, label+"-drop")
	damaging := r.CorruptFirst > 0 || r.CorruptEvery > 0
	if damaging {
		ins = append(ins, chosen(r.CorruptFirst, r.CorruptEvery, label+"-damage")...)
	}
	ins = append(ins, asm.Ja.Label("forward"))
	if r.DropFirst > 0 || r.DropEvery > 0 {
		ins = append(ins, bump(count, slotDropped, label+"-drop")...)
		ins = append(ins, asm.Mov.Imm(asm.R0, xdpDrop), asm.Return())
	}
	if damaging {
		ins = append(ins, bump(count, slotCorrupted, label+"-damage")...)
		ins = append(ins,
			asm.LoadMem(asm.R1, asm.R7, int16(checksum), asm.Byte),
			asm.Xor.Imm(asm.R1, 0x55),
			asm.StoreMem(asm.R7, int16(checksum), asm.R1, asm.Byte),
			asm.Ja.Label("forward"))
	}
	return ins
}

// counts sums the processors. Lost are redirects that found the next ring full.
func (b *xdpBox) counts(w Way) (c BoxCounts, err error) {
	for slot, to := range map[uint32]*uint64{
		slotCounted: &c.Counted, slotOther: &c.Other, slotDropped: &c.Dropped, slotCorrupted: &c.Corrupted,
	} {
		var each []uint64
		if err := b.ways[w].count.Lookup(slot, &each); err != nil {
			return c, fmt.Errorf("fault box: read count: %w", err)
		}
		for _, n := range each {
			*to += n
		}
	}
	after, err := b.ports[w].Counters()
	if err != nil {
		return c, err
	}
	for role, to := range map[nic.Role]*uint64{nic.RoleXDPXmit: &c.Sent, nic.RoleXDPXmitErrors: &c.Lost} {
		d, reset := after.Read(role).Sub(b.start[w].Read(role))
		if reset || d.Frames == nil {
			return c, fmt.Errorf("fault box: %s of %s: unknown", role, b.ports[w].Endpoint())
		}
		*to = *d.Frames
	}
	c.Sent -= min(c.Sent, c.Other) // the counter knows no difference
	return c, nil
}

func (b *xdpBox) close() error {
	var errs []error
	for _, w := range b.ways {
		if w.at != nil {
			errs = append(errs, w.at.Close())
		}
		if w.prog != nil {
			errs = append(errs, w.prog.Close())
		}
		for _, m := range []*ebpf.Map{w.order, w.count} {
			if m != nil {
				errs = append(errs, m.Close())
			}
		}
	}
	return errors.Join(errs...)
}
