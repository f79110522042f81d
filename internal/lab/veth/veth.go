// Package veth builds and removes throw-away labs: two network namespaces
// joined by one veth pair, with static addresses and neighbours so that no
// frame flows that linerate did not send.
//
// A lab is built in namespaces that have no name yet and gets its names last:
// killed before that, the kernel frees everything; killed after, the maker's
// pid and start time in the ifalias of both interfaces let Clean find it.
package veth

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"linerate/internal/netns"
)

const (
	// Prefix starts the name of every lab and so of both its namespaces.
	Prefix = "lr-"
	// Interface is the name of the veth end in both namespaces.
	Interface = "lr0"

	// MiddleA and MiddleB are the interfaces of the middle namespace.
	MiddleA, MiddleB = "toa", "tob"

	// MaxQueues is the largest number of queues a lab can have.
	MaxQueues  = 128
	minMTU     = 68    // IPv4's least
	maxMTU     = 65535 // veth's greatest
	defaultMTU = 1500
)

// Config says what lab to build. The zero value is a good lab.
type Config struct {
	Name   string // starts with "lr-", default lr-<pid>-<start time>
	Queues int    // receive and transmit queues of each end, 1 to MaxQueues, default 1
	MTU    int    // of both ends, default 1500
	Keep   bool   // leave it standing after its maker is gone: Clean does not remove it
	// Middle puts a third namespace, <name>-m, between the ends: A is joined
	// with its interface MiddleA and B with MiddleB. Nothing flows from one to
	// the other until something in there forwards it.
	Middle bool
}

// End is one side of a lab.
type End int

// The two ends, and the namespace between them if there is one.
const (
	A End = iota
	B
	Middle
)

// Lab is a standing lab. Its methods are safe for concurrent use, apart from
// Down and Close.
type Lab struct {
	cfg  Config
	ends [3]*netns.NS // the last is nil without a middle
}

// Error says which step of which lab went wrong.
type Error struct {
	Op, Lab string
	Err     error
}

// Error gives the whole message on one line.
func (e *Error) Error() string { return fmt.Sprintf("%s lab %s: %v", e.Op, e.Lab, e.Err) }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// ConfigError is returned by Up for a Config that cannot be built.
type ConfigError struct{ Field, What string }

// Error gives the whole message on one line.
func (e *ConfigError) Error() string { return fmt.Sprintf("lab configuration: %s %s", e.Field, e.What) }

// Validate fills in defaults and checks the rest. The error is a *ConfigError.
func (c Config) Validate() (Config, error) {
	if c.Queues == 0 {
		c.Queues = 1
	}
	if c.MTU == 0 {
		c.MTU = defaultMTU
	}
	switch {
	case c.Queues < 1 || c.Queues > MaxQueues:
		return c, &ConfigError{"queues", fmt.Sprintf("= %d, want 1 to %d", c.Queues, MaxQueues)}
	case c.MTU < minMTU || c.MTU > maxMTU:
		return c, &ConfigError{"mtu", fmt.Sprintf("= %d, want %d to %d", c.MTU, minMTU, maxMTU)}
	case c.Name == "":
		return c, nil
	case !strings.HasPrefix(c.Name, Prefix) || len(c.Name) == len(Prefix):
		return c, &ConfigError{"name", fmt.Sprintf("%q does not start with %q", c.Name, Prefix)}
	}
	if err := netns.CheckName(c.Name + "-a"); err != nil {
		return c, &ConfigError{"name", err.Error()}
	}
	return c, nil
}

// Up builds a lab and returns when both ends have carrier. It needs
// CAP_SYS_ADMIN and CAP_NET_ADMIN. On error nothing is left.
func Up(cfg Config) (*Lab, error) {
	cfg, err := cfg.Validate()
	if err != nil {
		return nil, err
	}
	l := &Lab{cfg: cfg}
	if err := l.build(); err != nil {
		l.Close()
		return nil, &Error{"build", cfg.label(), err}
	}
	if err := l.publish(); err != nil {
		l.Close() // the last hold on namespaces that have no name
		return nil, &Error{"name", l.cfg.label(), err}
	}
	return l, nil
}

func (c Config) label() string {
	if c.Name == "" {
		return "(unnamed)"
	}
	return c.Name
}

// publish gives both namespaces their names in one step for all who take the
// lock. A default name that is taken by another lab of this process gets a
// number.
func (l *Lab) publish() error {
	return netns.WithLock(func(h netns.Held) error {
		me, err := self()
		if err != nil {
			return err
		}
		base := l.cfg.Name
		if base == "" {
			base = fmt.Sprintf("%s%d-%d", Prefix, me.PID, me.Start)
		}
		for try := 1; ; try++ {
			name := base
			if try > 1 {
				name = fmt.Sprintf("%s-%d", base, try)
			}
			err := l.pinAll(h, name)
			if errors.Is(err, unix.EEXIST) && l.cfg.Name == "" && try < 1000 {
				continue
			}
			if err == nil {
				l.cfg.Name = name
			}
			return err
		}
	})
}

// pinAll names the middle first: where both ends have names, all is there.
func (l *Lab) pinAll(h netns.Held, name string) error {
	var done []string
	for _, e := range []End{Middle, A, B} {
		if l.ends[e] == nil {
			continue
		}
		ns := name + "-" + e.String()
		if err := h.Pin(l.ends[e], ns); err != nil {
			for _, d := range done {
				err = errors.Join(err, h.Delete(d))
			}
			return err
		}
		done = append(done, ns)
	}
	return nil
}

// Name is the lab's name, starting with Prefix.
func (l *Lab) Name() string { return l.cfg.Name }

// A is the endpoint of the first side, "<name>-a/lr0".
func (l *Lab) A() string { return l.Namespace(A) + "/" + Interface }

// B is the endpoint of the second side, "<name>-b/lr0".
func (l *Lab) B() string { return l.Namespace(B) + "/" + Interface }

// Namespace is the name of one side's namespace.
func (l *Lab) Namespace(e End) string { return l.cfg.Name + "-" + e.String() }

// String is the letter that ends the namespace's name: a, b or m.
func (e End) String() string { return string("abm"[e]) }

// NS is the lab's own thread in one side's namespace; Down and Close end it.
func (l *Lab) NS(e End) *netns.NS { return l.ends[e] }

// Config is the configuration with its defaults filled in.
func (l *Lab) Config() Config { return l.cfg }

// MAC is the locally administered address of one side: 02:4c:52:00:00:01 or 02.
func MAC(e End) [6]byte { return [6]byte{0x02, 'L', 'R', 0, 0, byte(e) + 1} }

// Addr is the address of one side, out of RFC 2544's range: 198.18.0.1 or .2, /24.
func Addr(e End) netip.Addr { return netip.AddrFrom4([4]byte{198, 18, 0, byte(e) + 1}) }

// Down removes the lab and what runs on its interfaces loses them. It is safe
// on a lab that is half gone, and to be called more than once.
func (l *Lab) Down() error {
	defer l.Close()
	if l.cfg.Name == "" {
		return nil
	}
	err := netns.WithLock(func(h netns.Held) error { return remove(h, l.cfg.Name) })
	if err != nil {
		return &Error{"remove", l.cfg.Name, err}
	}
	return nil
}

// Close ends the lab's threads in this process and leaves the lab standing.
func (l *Lab) Close() {
	for _, n := range l.ends {
		if n != nil {
			n.Close()
		}
	}
}

// remove deletes both names of a lab, whatever is left of them, and the veth
// pair first: the interface must be gone even while something else, such as an
// open socket, keeps a namespace alive.
func remove(h netns.Held, name string) error {
	var errs []error
	for _, e := range []End{A, B, Middle} {
		ns := name + "-" + e.String()
		if _, ok := netns.Inum(ns); ok && e != Middle { // the middle's die with the ends'
			errs = append(errs, dropInterface(ns))
		}
		if err := h.Delete(ns); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
