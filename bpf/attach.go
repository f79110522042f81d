package bpf

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Mode is where in the receive path an XDP program runs.
type Mode string

// ModeAuto is native, else generic with a note; ModeOffload, ModeMulti and
// ModeNone are only read back.
const (
	ModeAuto    Mode = "auto"
	ModeNative  Mode = "native"
	ModeGeneric Mode = "generic"
	ModeOffload Mode = "offload"
	ModeMulti   Mode = "multi"
	ModeNone    Mode = "none"
)

// attachModes are the values of IFLA_XDP_ATTACHED (linux/if_link.h, XDP_ATTACHED_*).
var attachModes = [...]Mode{ModeNone, ModeNative, ModeGeneric, ModeOffload, ModeMulti}

// ForeignProgramError says that an interface already runs an XDP program,
// which is never replaced.
type ForeignProgramError struct {
	Ifindex int
	ID      uint32 // 0 when the kernel does not say
	Name    string // empty when it cannot be read
	Mode    Mode
}

func (e *ForeignProgramError) Error() string {
	return fmt.Sprintf("attach to interface %d: XDP program %d (%q, %s) is there already and is not ours to replace",
		e.Ifindex, e.ID, e.Name, e.Mode)
}

// MTUError says that the driver cannot run the program natively at this MTU.
// On veth the limit holds for the peer's MTU too.
type MTUError struct {
	Ifindex int
	MTU     int // of the interface itself; 0 when it cannot be read
	Err     error
}

func (e *MTUError) Error() string {
	return fmt.Sprintf("attach to interface %d: MTU %d, or the peer's, is too large for native XDP: lower it, on a veth at both ends, or use the fragments variant: %v",
		e.Ifindex, e.MTU, e.Err)
}

// Unwrap gives the kernel's error.
func (e *MTUError) Unwrap() error { return e.Err }

// Attachment is a program on an interface. The kernel removes it when the
// process ends in whatever way.
type Attachment struct {
	link  link.Link
	mode  Mode
	note  string
	close sync.Once
	err   error
}

// Attach puts prog on an interface as a bpf_link. It refuses to replace
// another program (*ForeignProgramError); further errors are *PermissionError,
// *UnsupportedError, *MTUError or the kernel's. The calling thread must be in
// the interface's network namespace. A driver may reset the link.
func Attach(prog *ebpf.Program, ifindex int, mode Mode) (*Attachment, error) {
	if mode != ModeNative && mode != ModeGeneric && mode != ModeAuto {
		return nil, &ConfigError{"mode", mode, "native, generic or auto"}
	}
	if err := refuseForeign(ifindex); err != nil {
		return nil, err
	}
	if mode == ModeGeneric {
		return attach(prog, ifindex, ModeGeneric, "")
	}
	a, err := attach(prog, ifindex, ModeNative, "")
	if err == nil || mode == ModeNative || !worthGeneric(err) {
		return a, err
	}
	return attach(prog, ifindex, ModeGeneric, "generic mode, because: "+err.Error())
}

// worthGeneric says whether the driver refused native mode for a reason that
// generic mode does not share.
func worthGeneric(err error) bool {
	for _, errno := range []unix.Errno{unix.EOPNOTSUPP, unix.EINVAL, unix.ERANGE, unix.ENOSPC, unix.ENOMEM} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return errors.Is(err, ebpf.ErrNotSupported)
}

// attach tries one mode and reads back what the kernel granted.
func attach(prog *ebpf.Program, ifindex int, mode Mode, note string) (*Attachment, error) {
	flags := link.XDPDriverMode
	if mode == ModeGeneric {
		flags = link.XDPGenericMode
	}
	l, err := link.AttachXDP(link.XDPOptions{Program: prog, Interface: ifindex, Flags: flags})
	if err != nil {
		return nil, explainAttach(err, ifindex, mode)
	}
	granted, id, err := ReadXDP(ifindex)
	if err == nil && granted != mode {
		err = fmt.Errorf("attach to interface %d: asked for %s mode, kernel reports %s (program %d)",
			ifindex, mode, granted, id)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &Attachment{link: l, mode: granted, note: note}, nil
}

// explainAttach finds out what an errno of the attachment means.
func explainAttach(err error, ifindex int, mode Mode) error {
	op := fmt.Sprintf("attach to interface %d: %s mode", ifindex, mode)
	switch {
	case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EEXIST):
		// Another program came between our look and our attachment.
		if foreign := refuseForeign(ifindex); foreign != nil {
			return foreign
		}
	case errors.Is(err, unix.ERANGE):
		e := &MTUError{Ifindex: ifindex, Err: err}
		if l, lerr := netlink.LinkByIndex(ifindex); lerr == nil {
			e.MTU = l.Attrs().MTU
		}
		return e
	case errors.Is(err, unix.EOPNOTSUPP):
		return &UnsupportedError{op, Feature{string(mode) + " XDP", "a driver that has it"}, err}
	}
	return explain(op, err, capNetAdmin, Feature{"bpf_link for XDP", "Linux 5.9"})
}

// refuseForeign returns a *ForeignProgramError when any XDP program is on the interface.
func refuseForeign(ifindex int) error {
	mode, id, err := ReadXDP(ifindex)
	if err != nil || mode == ModeNone {
		return err
	}
	return &ForeignProgramError{Ifindex: ifindex, ID: id, Name: programName(id), Mode: mode}
}

// ReadXDP asks rtnetlink which XDP program is on an interface. The id is 0
// when there is none, or programs in several modes (ModeMulti). The calling
// thread must be in the interface's network namespace.
func ReadXDP(ifindex int) (Mode, uint32, error) {
	l, err := netlink.LinkByIndex(ifindex)
	if err != nil {
		return ModeNone, 0, fmt.Errorf("read XDP of interface %d: %w", ifindex, err)
	}
	xdp := l.Attrs().Xdp
	if xdp == nil || !xdp.Attached {
		return ModeNone, 0, nil
	}
	if int(xdp.AttachMode) >= len(attachModes) {
		return ModeNone, 0, fmt.Errorf("read XDP of interface %d: unknown mode %d", ifindex, xdp.AttachMode)
	}
	return attachModes[xdp.AttachMode], xdp.ProgId, nil
}

// programName is the kernel's name of a program, or "" when it may not be read.
func programName(id uint32) string {
	prog, err := ebpf.NewProgramFromID(ebpf.ProgramID(id))
	if err != nil {
		return ""
	}
	defer prog.Close()
	info, err := prog.Info()
	if err != nil {
		return ""
	}
	return info.Name
}

// Mode is native or generic, as the kernel reported it after the attachment.
func (a *Attachment) Mode() Mode { return a.mode }

// Note says why ModeAuto fell back to generic mode, or nothing.
func (a *Attachment) Note() string { return a.note }

// Close detaches the program. It may be called twice.
func (a *Attachment) Close() error {
	a.close.Do(func() {
		if err := a.link.Close(); err != nil {
			a.err = fmt.Errorf("detach XDP program: %w", err)
		}
	})
	return a.err
}
