package netns

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const sysAdmin = "CAP_SYS_ADMIN"

// enter moves the calling thread into the namespace of ref and gives it that
// namespace's /sys. It runs on the thread that will serve the NS.
func (n *NS) enter(ref *os.File) error {
	have, err := ownInum()
	if err != nil {
		return newError("stat", n.name, "", err)
	}
	n.inum = have
	if ref != nil {
		var want unix.Stat_t
		if err := unix.Fstat(int(ref.Fd()), &want); err != nil {
			return newError("stat", n.name, "", err)
		}
		n.inum = want.Ino
	}
	same := ref != nil && have == n.inum
	// A private sysfs hides what is mounted below /sys (cgroup, bpf, tracing),
	// so it is mounted only where /sys is another namespace's.
	if same && sysfsMatches() {
		return nil
	}
	return n.move(ref, same)
}

// move changes the thread's mount and network namespaces; whatever fails, the
// thread ends and takes the half done state with it.
func (n *NS) move(ref *os.File, same bool) (err error) {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return newError("unshare mounts for", n.name, sysAdmin, err)
	}
	// Slave, not private: names that appear under Dir later must be seen from
	// here as well, and none of our mounts on the host.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return newError("make mounts private for", n.name, sysAdmin, err)
	}
	if ref == nil {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return newError("create", n.name, sysAdmin, err)
		}
		if n.inum, err = ownInum(); err != nil {
			return newError("stat", n.name, "", err)
		}
	} else if !same {
		if err := unix.Setns(int(ref.Fd()), unix.CLONE_NEWNET); err != nil {
			return newError("enter", n.name, sysAdmin, err)
		}
	}
	if err := unix.Mount("sysfs", "/sys", "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return newError("mount sysfs for", n.name, sysAdmin, err)
	}
	return nil
}

// ownInum is the network namespace of the calling thread.
func ownInum() (uint64, error) {
	var st unix.Stat_t
	err := unix.Stat("/proc/thread-self/ns/net", &st)
	return st.Ino, err
}

// sysfsMatches says whether /sys/class/net lists exactly the interfaces that
// this thread's namespace has, by name, index and address.
func sysfsMatches() bool {
	ifs, err := net.Interfaces()
	if err != nil {
		return false
	}
	names, err := os.ReadDir("/sys/class/net")
	if err != nil {
		return false
	}
	devices := 0
	for _, e := range names {
		if e.Name() != "bonding_masters" { // a file, not a device
			devices++
		}
	}
	if devices != len(ifs) {
		return false
	}
	for _, i := range ifs {
		index, err := os.ReadFile(fmt.Sprintf("/sys/class/net/%s/ifindex", i.Name))
		if err != nil || string(bytes.TrimSpace(index)) != strconv.Itoa(i.Index) {
			return false
		}
		mac, err := os.ReadFile(fmt.Sprintf("/sys/class/net/%s/address", i.Name))
		if err != nil || len(i.HardwareAddr) > 0 && string(bytes.TrimSpace(mac)) != i.HardwareAddr.String() {
			return false
		}
	}
	return true
}
