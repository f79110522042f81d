package netns

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"

	"golang.org/x/sys/unix"
)

// New starts a thread inside a new network namespace that has no name: it dies
// with its last thread, socket or interface elsewhere, so what is built in it
// leaves nothing behind when the process is killed. Pin gives it a name.
// It needs CAP_SYS_ADMIN.
func New() (*NS, error) { return start("", nil) }

// Held is the right to change names under Dir: see WithLock.
type Held struct{}

// WithLock runs f while no other process that uses this package (or sets up
// Dir with iproute2) changes names under Dir. Dir is made and turned into a
// shared mount first, as iproute2 does it. The lock is a flock of Dir: it ends
// with the process. f must not call Create, Delete, Pin or WithLock.
func WithLock(f func(h Held) error) error {
	if err := os.MkdirAll(Dir, 0o755); err != nil {
		return newError("make "+Dir+" for", "", "CAP_DAC_OVERRIDE", cause(err))
	}
	d, err := os.Open(Dir)
	if err != nil {
		return newError("open "+Dir+" for", "", "CAP_DAC_OVERRIDE", cause(err))
	}
	defer d.Close()
	if err := flock(int(d.Fd())); err != nil {
		return newError("lock "+Dir+" for", "", "", err)
	}
	if err := onHost(shareDir); err != nil {
		return newError("share "+Dir+" for", "", sysAdmin, err)
	}
	return f(Held{})
}

// shareDir makes Dir a shared mount point, so that a namespace deleted later
// also goes away in mount namespaces made meanwhile.
func shareDir() error {
	err := unix.Mount("", Dir, "none", unix.MS_SHARED|unix.MS_REC, "")
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	// Not a mount point yet.
	if err := unix.Mount(Dir, Dir, "none", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	return unix.Mount("", Dir, "none", unix.MS_SHARED|unix.MS_REC, "")
}

// onHost runs f on a thread of the process's own mount namespace, which the
// caller's thread is not when it is inside an NS's Do.
func onHost(f func() error) error {
	res := make(chan error)
	go func() { res <- f() }()
	return <-res
}

// Create makes an empty named network namespace that `ip netns` sees too. Only
// loopback exists in it, down. It needs CAP_SYS_ADMIN. An existing name is an
// *Error wrapping EEXIST.
func Create(name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	n, err := New()
	if err != nil {
		return err
	}
	defer n.Close()
	return n.Pin(name)
}

// Pin gives the namespace a name under Dir (a bind mount), and with it a life
// of its own. Errors as for Create.
func (n *NS) Pin(name string) error {
	return WithLock(func(h Held) error { return h.Pin(n, name) })
}

// Pin is NS.Pin under the lock already held.
func (Held) Pin(n *NS, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	path := filepath.Join(Dir, name)
	f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE|os.O_EXCL, 0)
	if err != nil {
		return newError("create", name, "CAP_DAC_OVERRIDE", cause(err))
	}
	f.Close()
	from := fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), n.tid)
	err = onHost(func() error { return unix.Mount(from, path, "none", unix.MS_BIND, "") })
	if err != nil {
		_ = os.Remove(path) // a name without a namespace helps nobody
		return newError("mount", name, sysAdmin, err)
	}
	n.named(name)
	return nil
}

func flock(fd int) error {
	for {
		if err := unix.Flock(fd, unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}

// Delete removes a named namespace. The namespace itself lives on while a
// process, socket or NS is still inside. A name whose mount is missing (its
// maker died half way) is removed as well. It needs CAP_SYS_ADMIN; a name that
// does not exist is a *NotFoundError.
func Delete(name string) error {
	return WithLock(func(h Held) error { return h.Delete(name) })
}

// Delete is the function Delete under the lock already held.
func (Held) Delete(name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	path := filepath.Join(Dir, name)
	err := onHost(func() error { return unix.Unmount(path, unix.MNT_DETACH) })
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return newError("unmount", name, sysAdmin, err)
	}
	if err := os.Remove(path); errors.Is(err, os.ErrNotExist) {
		existing, _ := List()
		return &NotFoundError{Name: name, Existing: existing}
	} else if err != nil {
		return newError("delete", name, "", cause(err))
	}
	return nil
}

// List gives the names under Dir, sorted, half made ones included; none if Dir
// does not exist.
func List() ([]string, error) {
	entries, err := os.ReadDir(Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, newError("list", Dir, "", cause(err))
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	sort.Strings(names)
	return names, nil
}

// Inum gives the inode number of a named namespace, or ok=false if the name
// does not exist or has no namespace mounted on it (half made).
func Inum(name string) (inum uint64, ok bool) {
	var fs unix.Statfs_t
	path := filepath.Join(Dir, name)
	if unix.Statfs(path, &fs) != nil || fs.Type != unix.NSFS_MAGIC {
		return 0, false
	}
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return 0, false
	}
	return st.Ino, true
}

// cause strips the path that os errors carry: newError names the object.
func cause(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
