package veth

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"linerate/internal/netns"
)

// Info is what can be seen of a lab from outside.
type Info struct {
	Name     string
	PID      int    // of the maker, 0 if unknown
	Start    uint64 // start time of the maker, clock ticks after boot
	Keep     bool   // stays when its maker is gone
	Alive    bool   // the maker still runs
	Complete bool   // both ends and their interfaces are there
}

// Stale says that Clean removes it: its maker is gone, and it is half made or
// was not to be kept.
func (i Info) Stale() bool { return !i.Alive && (!i.Keep || !i.Complete) }

// List gives the labs that stand on this host, sorted by name, half made ones
// included. It needs CAP_SYS_ADMIN to look inside.
func List() (labs []Info, err error) {
	err = netns.WithLock(func(netns.Held) error {
		labs, err = list()
		return err
	})
	if err != nil {
		return nil, &Error{"list", Prefix + "*", err}
	}
	return labs, nil
}

// list runs under the lock, so no lab is being named or removed meanwhile: one
// with a single namespace is what a killed process left.
func list() ([]Info, error) {
	names, err := netns.List()
	if err != nil {
		return nil, err
	}
	var bases []string
	for _, n := range names {
		if base, ok := baseOf(n); ok && !slices.Contains(bases, base) {
			bases = append(bases, base)
		}
	}
	slices.Sort(bases)
	var labs []Info
	for _, b := range bases {
		if i, ours := inspect(b); ours {
			labs = append(labs, i)
		}
	}
	return labs, nil
}

// baseOf takes "-a", "-b" or "-m" off the name of a lab's namespace.
func baseOf(ns string) (string, bool) {
	if !strings.HasPrefix(ns, Prefix) || len(ns) < len(Prefix)+3 {
		return "", false
	}
	switch base, suffix := ns[:len(ns)-2], ns[len(ns)-2:]; suffix {
	case "-a", "-b", "-m":
		return base, true
	}
	return "", false
}

// inspect looks at the namespaces of one lab. A namespace without our mark
// is somebody else's whatever its name; a name without a namespace is what a
// process left that was killed between two system calls.
func inspect(base string) (info Info, ours bool) {
	info = Info{Name: base}
	whole, marked, foreign := 0, 0, 0
	for _, e := range []End{A, B, Middle} {
		ns := base + "-" + e.String()
		if _, ok := netns.Inum(ns); !ok {
			continue
		}
		m, pair, ok := readMark(ns)
		if !ok {
			foreign++
			continue
		}
		marked++
		if pair {
			whole++
		}
		info.PID, info.Start, info.Keep, info.Alive = m.PID, m.Start, m.Keep, m.alive()
	}
	info.Complete = whole == 2
	if marked == 0 {
		if m, ok := makerFromName(base); ok {
			info.PID, info.Start, info.Alive = m.PID, m.Start, m.alive()
		}
	}
	return info, foreign == 0
}

// readMark reads the mark of one namespace from its loopback, and whether our
// veth end is in it. ok is false if there is no mark or we may not look.
func readMark(ns string) (m mark, pair, ok bool) {
	n, err := netns.Open(ns)
	if err != nil {
		return m, false, false
	}
	defer n.Close()
	err = n.Do(func() error {
		links, err := netlink.LinkList()
		for _, l := range links {
			switch a := l.Attrs(); {
			case a.Name == "lo":
				m, ok = parseMark(a.Alias)
			case a.Name == Interface && l.Type() == "veth":
				pair = true
			}
		}
		return err
	})
	return m, pair, ok && err == nil
}

// makerFromName reads lr-<pid>-<start>[-<n>].
func makerFromName(base string) (maker, bool) {
	f := strings.Split(strings.TrimPrefix(base, Prefix), "-")
	if len(f) < 2 {
		return maker{}, false
	}
	m, ok := parseMark("linerate pid=" + f[0] + " start=" + f[1] + " keep=false")
	return m.maker, ok
}

// Clean removes the labs whose maker is gone, apart from complete ones that
// were to be kept, and gives the names it removed. Any number of processes may
// clean at once.
func Clean() (removed []string, err error) {
	err = netns.WithLock(func(h netns.Held) error {
		labs, err := list()
		if err != nil {
			return err
		}
		var errs []error
		for _, i := range labs {
			if !i.Stale() {
				continue
			}
			if err := remove(h, i.Name); err != nil {
				errs = append(errs, &Error{"remove", i.Name, err})
				continue
			}
			removed = append(removed, i.Name)
		}
		return errors.Join(errs...)
	})
	return removed, err
}

// DownOwn removes the labs that this process has made and was not to keep: for
// an end that cannot wait for Down. What it cannot remove is left for Clean.
func DownOwn() {
	me, err := self()
	if err != nil {
		return
	}
	_ = netns.WithLock(func(h netns.Held) error {
		labs, err := list()
		for _, i := range labs {
			if i.PID == me.PID && i.Start == me.Start && !i.Keep {
				_ = remove(h, i.Name)
			}
		}
		return err
	})
}

// Down removes a lab by name, whoever made it. A lab that does not exist is an
// *Error wrapping os.ErrNotExist.
func Down(name string) error {
	err := netns.WithLock(func(h netns.Held) error {
		labs, err := list()
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(labs, func(i Info) bool { return i.Name == name }) {
			return os.ErrNotExist
		}
		return remove(h, name)
	})
	if err != nil {
		return &Error{"remove", name, err}
	}
	return nil
}
