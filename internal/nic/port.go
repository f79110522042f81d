// Package nic reads facts and counters of one network interface, inside the
// network namespace it lives in. It changes nothing.
//
// All reading happens on the thread of a netns.NS, through sockets opened
// there, that namespace's /sys and /proc/thread-self/net. What could not be
// read is absent or nil, never zero.
package nic

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"time"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"linerate/internal/netns"
	"linerate/internal/wire"
)

// Port is one interface and its facts as of Open or the last Refresh. The
// methods are safe for concurrent use; the fields are as safe as any struct's.
type Port struct {
	NS    *netns.NS // thread inside the interface's namespace; the caller closes it
	Name  string
	Index int // ifindex, unique only within the namespace
	MAC   [6]byte
	MTU   int // L3 bytes, as the kernel counts it

	Driver, DriverVersion, Firmware string // ethtool -i; "" if unknown
	PCI                             string // "0000:01:00.0", "" for a virtual device
	RxQueues, TxQueues              int    // queues in use now, 0 if unknown
	Speed                           wire.Speed
	Up, Carrier                     bool
	PeerIndex                       int // veth: ifindex of the other end in its namespace, else 0
	NUMANode                        int // -1 if none
	Alias                           string

	roots roots
}

// roots lets tests put recorded trees in place of the kernel's.
type roots struct{ sys, proc string }

var kernelRoots = roots{sys: "/sys", proc: "/proc"}

// Open finds the interface called name in the namespace of ns and reads its
// facts. A missing interface is a *NotFoundError, anything else an *Error.
func Open(ns *netns.NS, name string) (*Port, error) {
	p := &Port{NS: ns, Name: name, roots: kernelRoots}
	if err := p.Refresh(); err != nil {
		return nil, err
	}
	return p, nil
}

// Refresh reads the facts again. Not to be called while others read the fields.
func (p *Port) Refresh() error {
	return p.do("read", func() error {
		l, err := p.link()
		if err != nil {
			return err
		}
		p.fromLink(l.Attrs(), l.Type())
		p.fromSysfs()
		p.fromEthtool()
		return nil
	})
}

// link looks the interface up by name; it runs on the namespace's thread.
func (p *Port) link() (netlink.Link, error) {
	l, err := netlink.LinkByName(p.Name)
	if err == nil {
		return l, nil
	}
	if !errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil, err
	}
	nf := &NotFoundError{Name: p.Name, Namespace: p.NS.Name()}
	if ifs, err := net.Interfaces(); err == nil {
		for _, i := range ifs {
			nf.Existing = append(nf.Existing, i.Name)
		}
	}
	return nil, nf
}

func (p *Port) fromLink(a *netlink.LinkAttrs, kind string) {
	p.Index, p.MTU, p.Alias = a.Index, a.MTU, a.Alias
	p.MAC = [6]byte{}
	copy(p.MAC[:], a.HardwareAddr)
	p.Up = a.RawFlags&unix.IFF_UP != 0
	p.Carrier = a.RawFlags&unix.IFF_LOWER_UP != 0
	p.PeerIndex = 0
	if kind == "veth" {
		p.PeerIndex = a.ParentIndex
	}
}

func (p *Port) fromSysfs() {
	dir := p.classDir()
	p.RxQueues, p.TxQueues = countQueues(dir)
	p.Speed = readSpeed(dir)
	p.PCI = readPCI(dir)
	p.NUMANode = readNUMANode(dir)
}

// fromEthtool fills what only the driver knows. Not every device answers, so
// no answer is not an error.
func (p *Port) fromEthtool() {
	p.Driver, p.DriverVersion, p.Firmware = "", "", ""
	e, err := ethtool.NewEthtool()
	if err != nil {
		return
	}
	defer e.Close()
	if d, err := e.DriverInfo(p.Name); err == nil {
		p.Driver, p.DriverVersion, p.Firmware = clean(d.Driver), clean(d.Version), clean(d.FwVersion)
	}
}

// clean cuts a fixed size C string and drops what only says "nothing".
func clean(s string) string {
	s, _, _ = strings.Cut(s, "\x00")
	s = strings.TrimSpace(s)
	if s == "N/A" {
		return ""
	}
	return s
}

// Endpoint is "NAMESPACE/NAME", or "NAME" in the caller's own namespace.
func (p *Port) Endpoint() string {
	if p.NS.Name() == "" {
		return p.Name
	}
	return p.NS.Name() + "/" + p.Name
}

// do runs f on the namespace's thread and gives its error a name.
func (p *Port) do(op string, f func() error) error {
	err := p.NS.Do(f)
	if err == nil || errors.As(err, new(*NotFoundError)) || errors.As(err, new(*Error)) {
		return err
	}
	return p.fail(op, err)
}

func (p *Port) fail(op string, err error) error {
	e := &Error{Op: op, Object: p.Endpoint(), Err: err}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		e.Capability = "CAP_NET_ADMIN"
	}
	return e
}

// Error says what could not be read of which interface, and why.
type Error struct {
	Op, Object string
	Capability string // the capability that was missing, or ""
	Err        error
}

// Error gives the whole message on one line.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s %s: %v", e.Op, e.Object, e.Err)
	if e.Capability != "" {
		s += " (needs " + e.Capability + ")"
	}
	return s
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// NotFoundError is returned for an interface that does not exist (any more).
type NotFoundError struct {
	Name, Namespace string
	Existing        []string // interfaces that the namespace does have
}

// Error gives the whole message on one line.
func (e *NotFoundError) Error() string {
	where := "here"
	if e.Namespace != "" {
		where = "in namespace " + e.Namespace
	}
	return fmt.Sprintf("interface %s does not exist %s; there are: %s", e.Name, where, strings.Join(e.Existing, ", "))
}

// Is makes errors.Is(err, fs.ErrNotExist) hold.
func (e *NotFoundError) Is(target error) bool { return target == fs.ErrNotExist }

// now is the wall and monotonic time of a reading.
func now() time.Time { return time.Now() }
