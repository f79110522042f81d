package bpf

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// capability is a set of the Linux capabilities our programs can need.
type capability uint

const (
	capBPF capability = 1 << iota
	capNetAdmin
	capPerfmon
)

var capabilityNames = []struct {
	bit    capability
	number int
	name   string
}{
	{capBPF, unix.CAP_BPF, "CAP_BPF"},
	{capNetAdmin, unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"},
	{capPerfmon, unix.CAP_PERFMON, "CAP_PERFMON"},
}

// PermissionError says which capabilities an operation wants and the calling
// thread lacks. None lacking means that something else forbids it, such as
// kernel lockdown or a security module.
type PermissionError struct {
	Op      string
	Missing []string
	Err     error
}

func (e *PermissionError) Error() string {
	if len(e.Missing) == 0 {
		return fmt.Sprintf("%s: not permitted although no capability lacks (lockdown or a security module?): %v", e.Op, e.Err)
	}
	return fmt.Sprintf("%s: needs %s: %v", e.Op, strings.Join(e.Missing, " and "), e.Err)
}

// Unwrap gives the kernel's error.
func (e *PermissionError) Unwrap() error { return e.Err }

// Feature is a kernel feature and the first version that has it.
type Feature struct {
	Name  string
	Since string // kernel version, or the option to build it with
}

// UnsupportedError says that the running kernel or driver lacks a feature.
type UnsupportedError struct {
	Op      string
	Feature Feature
	Err     error
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s: %s is not supported here (needs %s): %v", e.Op, e.Feature.Name, e.Feature.Since, e.Err)
}

// Unwrap gives the kernel's error.
func (e *UnsupportedError) Unwrap() error { return e.Err }

// explain turns what the kernel said into a typed error.
func explain(op string, err error, needs capability, feature Feature) error {
	switch {
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		// A probe for a feature that fails for want of a descriptor says nothing.
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES) && len(missing(needs)) > 0:
		return &PermissionError{op, missing(needs), err}
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, unix.EOPNOTSUPP):
		return &UnsupportedError{op, feature, err}
	}
	return fmt.Errorf("%s: %w", op, err)
}

// missing names the capabilities that the calling thread does not have in effect.
func missing(needs capability) []string {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return nil
	}
	has := func(n int) bool { return data[n/32].Effective&(1<<(n%32)) != 0 }
	var names []string
	for _, c := range capabilityNames {
		// CAP_SYS_ADMIN stands in for each (kernel/bpf/syscall.c, bpf_net_capable).
		if needs&c.bit != 0 && !has(c.number) && !has(unix.CAP_SYS_ADMIN) {
			names = append(names, c.name)
		}
	}
	return names
}
