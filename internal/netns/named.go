package netns

import (
	"errors"
	"os"
	"path/filepath"
	"sort"

	"golang.org/x/sys/unix"
)

// Create makes an empty named network namespace: a bind mount under Dir, which
// is made (mode 0755) and turned into a shared mount first if need be, exactly
// as iproute2 does, so that `ip netns` sees it. Only loopback exists in it,
// down. It needs CAP_SYS_ADMIN. An existing name is an *Error wrapping EEXIST.
func Create(name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := prepareDir(name); err != nil {
		return err
	}
	path := filepath.Join(Dir, name)
	f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE|os.O_EXCL, 0)
	if err != nil {
		return newError("create", name, "", cause(err))
	}
	f.Close()
	made := make(chan error)
	ownThread(func() {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			made <- newError("create", name, sysAdmin, err)
			return
		}
		if err := unix.Mount("/proc/thread-self/ns/net", path, "none", unix.MS_BIND, ""); err != nil {
			made <- newError("mount", name, sysAdmin, err)
			return
		}
		made <- nil
	})
	if err := <-made; err != nil {
		_ = os.Remove(path) // a name without a namespace helps nobody
		return err
	}
	return nil
}

// prepareDir makes Dir a shared mount point, so that a namespace deleted later
// also goes away in mount namespaces made meanwhile. The lock keeps two
// processes from stacking one mount on the other.
func prepareDir(name string) error {
	if err := os.MkdirAll(Dir, 0o755); err != nil {
		return newError("prepare "+Dir+" for", name, "CAP_DAC_OVERRIDE", cause(err))
	}
	d, err := os.Open(Dir)
	if err != nil {
		return newError("prepare "+Dir+" for", name, "", cause(err))
	}
	defer d.Close()
	if err := flock(int(d.Fd())); err != nil {
		return newError("lock "+Dir+" for", name, "", err)
	}
	err = unix.Mount("", Dir, "none", unix.MS_SHARED|unix.MS_REC, "")
	if errors.Is(err, unix.EINVAL) { // not a mount point yet
		if err = unix.Mount(Dir, Dir, "none", unix.MS_BIND|unix.MS_REC, ""); err == nil {
			err = unix.Mount("", Dir, "none", unix.MS_SHARED|unix.MS_REC, "")
		}
	}
	if err != nil {
		return newError("share "+Dir+" for", name, sysAdmin, err)
	}
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
	if err := CheckName(name); err != nil {
		return err
	}
	path := filepath.Join(Dir, name)
	err := unix.Unmount(path, unix.MNT_DETACH)
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
