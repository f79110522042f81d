package bpf

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// withCaps runs load with these capabilities only in effect, on this very
// thread: another would be in another network namespace. The kernel's features
// have to be probed before, with all of them.
func withCaps(t *testing.T, load func() error, caps ...uint) error {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var all [2]unix.CapUserData
	must(t, unix.Capget(&hdr, &all[0]))
	few := all
	few[0].Effective, few[1].Effective = 0, 0
	for _, c := range caps {
		few[c/32].Effective |= 1 << (c % 32)
	}
	must(t, unix.Capset(&hdr, &few[0]))
	err := load()
	must(t, unix.Capset(&hdr, &all[0]))
	return err
}

// An error for want of a capability names all that lack, and only those.
func TestPermissionErrors(t *testing.T) {
	newSteer(t, SteerConfig{})
	newTrace(t)
	loads := map[string]func() error{
		"steer": func() error { _, err := LoadSteer(SteerConfig{}); return err },
		"sink":  func() error { _, err := LoadSink(SinkConfig{}); return err },
		"pass":  func() error { _, err := LoadPass(); return err },
		"trace": func() error { _, err := LoadTrace(nil); return err },
	}
	for _, c := range []struct {
		load    string
		caps    []uint
		missing string // empty: it loads
	}{
		{"steer", nil, "CAP_BPF CAP_NET_ADMIN CAP_PERFMON"},
		{"steer", []uint{unix.CAP_BPF, unix.CAP_PERFMON}, "CAP_NET_ADMIN"},
		{"steer", []uint{unix.CAP_BPF, unix.CAP_NET_ADMIN}, "CAP_PERFMON"},
		{"steer", []uint{unix.CAP_BPF, unix.CAP_NET_ADMIN, unix.CAP_PERFMON}, ""},
		{"steer", []uint{unix.CAP_SYS_ADMIN}, ""},
		{"trace", []uint{unix.CAP_SYS_ADMIN}, ""},
		{"sink", []uint{unix.CAP_BPF, unix.CAP_NET_ADMIN, unix.CAP_PERFMON}, ""},
		{"pass", []uint{unix.CAP_BPF}, "CAP_NET_ADMIN"},
		{"pass", []uint{unix.CAP_BPF, unix.CAP_NET_ADMIN}, ""},
		{"trace", []uint{unix.CAP_BPF}, "CAP_PERFMON"},
		{"trace", []uint{unix.CAP_BPF, unix.CAP_PERFMON}, ""},
	} {
		err := withCaps(t, loads[c.load], c.caps...)
		var perm *PermissionError
		switch {
		case c.missing == "" && err != nil:
			t.Errorf("%s with %v: %v", c.load, c.caps, err)
		case c.missing != "" && (!errors.As(err, &perm) || strings.Join(perm.Missing, " ") != c.missing):
			t.Errorf("%s with %v: %v, want %s missing", c.load, c.caps, err, c.missing)
		}
	}
}

// CAP_SYS_ADMIN holds for each of them, and one of another does not.
func TestMissing(t *testing.T) {
	requireCaps(t)
	for want, caps := range map[string][]uint{
		"":                          {unix.CAP_SYS_ADMIN},
		"CAP_BPF CAP_PERFMON":       {unix.CAP_NET_ADMIN},
		"CAP_NET_ADMIN CAP_PERFMON": {unix.CAP_BPF},
	} {
		var got []string
		must(t, withCaps(t, func() error { got = missing(capBPF | capNetAdmin | capPerfmon); return nil }, caps...))
		if strings.Join(got, " ") != want {
			t.Errorf("with %v: %v lack, want %s", caps, got, want)
		}
	}
}

// Where no capability lacks the error does not invent one.
func TestPermissionErrorWithAll(t *testing.T) {
	requireCaps(t)
	err := explainAttach(fmt.Errorf("attach link: %w", unix.EPERM), 1, ModeNative)
	var perm *PermissionError
	if !errors.As(err, &perm) || len(perm.Missing) != 0 || !strings.Contains(err.Error(), "lockdown") {
		t.Errorf("got %v", err)
	}
}

// What the kernel cannot do names what can; everything else keeps the kernel's word.
func TestExplain(t *testing.T) {
	feature := Feature{"XDP fragments", "Linux 5.18"}
	for _, cause := range []error{ebpf.ErrNotSupported, unix.EOPNOTSUPP} {
		var unsupported *UnsupportedError
		err := explain("load x", fmt.Errorf("y: %w", cause), 0, feature)
		if !errors.As(err, &unsupported) || !errors.Is(err, cause) || !strings.Contains(err.Error(), "needs Linux 5.18") {
			t.Errorf("%v: %v", cause, err)
		}
	}
	var unsupported *UnsupportedError
	var perm *PermissionError
	err := explain("load x", unix.E2BIG, 0, feature)
	if !errors.Is(err, unix.E2BIG) || errors.As(err, &unsupported) || errors.As(err, &perm) {
		t.Errorf("E2BIG: %v", err)
	}
	// The verifier's own refusal is no want of permission.
	if err := explain("load x", unix.EACCES, 0, feature); errors.As(err, &perm) {
		t.Errorf("EACCES: %v", err)
	}
}

// A kernel that lacks something is not told from one that is short of something
// by the name of another feature.
func TestExplainNamesTheFeature(t *testing.T) {
	feature := Feature{"XDP fragments", "Linux 5.18"}
	var unsupported *UnsupportedError
	if err := explain("load", ebpf.ErrNotSupported, 0, feature); !errors.As(err, &unsupported) {
		t.Errorf("not supported: %v", err)
	}
	short := fmt.Errorf("probe: %w: %w", ebpf.ErrNotSupported, unix.EMFILE)
	if err := explain("load", short, 0, feature); errors.As(err, &unsupported) || !errors.Is(err, unix.EMFILE) {
		t.Errorf("out of descriptors: %v", err)
	}
}
