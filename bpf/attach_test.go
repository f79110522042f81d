package bpf

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func newPass(t testing.TB) *Pass {
	t.Helper()
	requireCaps(t)
	p, err := LoadPass()
	must(t, err)
	closing(t, p)
	return p
}

func wantXDP(t testing.TB, ifindex int, want Mode) uint32 {
	t.Helper()
	mode, id, err := ReadXDP(ifindex)
	must(t, err)
	if mode != want || (id != 0) != (want != ModeNone) {
		t.Fatalf("interface %d: %s, program %d; want %s", ifindex, mode, id, want)
	}
	return id
}

func TestAttachModes(t *testing.T) {
	idx := newPair(t, 1, 1500).A.Attrs().Index
	p := newPass(t)
	for asked, granted := range map[Mode]Mode{
		ModeNative: ModeNative, ModeGeneric: ModeGeneric, ModeAuto: ModeNative,
	} {
		a, err := Attach(p.Program(), idx, asked)
		must(t, err)
		wantXDP(t, idx, granted)
		if a.Mode() != granted || a.Note() != "" {
			t.Errorf("%s: mode %s, note %q", asked, a.Mode(), a.Note())
		}
		must(t, a.Close())
		must(t, a.Close())
		wantXDP(t, idx, ModeNone)
	}
}

// Loopback has no native XDP: auto falls back and says why.
func TestAttachAutoFallsBack(t *testing.T) {
	newNetns(t)
	idx := up(t, "lo").Attrs().Index
	p := newPass(t)
	_, err := Attach(p.Program(), idx, ModeNative)
	var unsupported *UnsupportedError
	if !errors.As(err, &unsupported) || !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("native: %v", err)
	}
	a, err := Attach(p.Program(), idx, ModeAuto)
	must(t, err)
	closing(t, a)
	if a.Mode() != ModeGeneric || !strings.Contains(a.Note(), "native") {
		t.Errorf("auto: %s, note %q", a.Mode(), a.Note())
	}
	wantXDP(t, idx, ModeGeneric)
}

func TestAttachRefusesForeign(t *testing.T) {
	idx := newPair(t, 1, 1500).A.Attrs().Index
	foreign, ours := newPass(t), newSteer(t, SteerConfig{})
	a, err := Attach(foreign.Program(), idx, ModeGeneric)
	must(t, err)
	wantForeign(t, ours, idx, ModeGeneric)
	must(t, a.Close())

	link, err := netlink.LinkByIndex(idx)
	must(t, err)
	must(t, netlink.LinkSetXdpFdWithFlags(link, foreign.Program().FD(), 1<<2)) // XDP_FLAGS_DRV_MODE
	wantForeign(t, ours, idx, ModeNative)
	must(t, netlink.LinkSetXdpFdWithFlags(link, -1, 1<<2))

	a, err = Attach(ours.Program(), idx, ModeNative)
	must(t, err)
	must(t, a.Close())
}

// wantForeign checks that no mode gets in, nor a program that came after our look.
func wantForeign(t *testing.T, s *Steer, idx int, mode Mode) {
	t.Helper()
	id := wantXDP(t, idx, mode)
	check := func(err error) {
		t.Helper()
		var foreign *ForeignProgramError
		if !errors.As(err, &foreign) {
			t.Fatalf("got %v", err)
		}
		if *foreign != (ForeignProgramError{idx, id, "pass", mode}) {
			t.Errorf("got %+v, program is %d", foreign, id)
		}
	}
	for _, m := range []Mode{ModeAuto, ModeNative, ModeGeneric} {
		_, err := Attach(s.Program(), idx, m)
		check(err)
	}
	for _, m := range []Mode{ModeNative, ModeGeneric} {
		_, err := attach(s.Program(), idx, m, "")
		check(err)
	}
	if wantXDP(t, idx, mode) != id {
		t.Error("the foreign program was replaced")
	}
}

func TestAttachMTU(t *testing.T) {
	idx := newPair(t, 1, 9000).A.Attrs().Index
	s, frags := newSteer(t, SteerConfig{}), newSteer(t, SteerConfig{Frags: true})
	_, err := Attach(s.Program(), idx, ModeNative)
	var mtu *MTUError
	if !errors.As(err, &mtu) || mtu.MTU != 9000 || !errors.Is(err, unix.ERANGE) {
		t.Fatalf("got %v", err)
	}
	a, err := Attach(frags.Program(), idx, ModeNative)
	must(t, err)
	must(t, a.Close())
}

func TestAttachErrors(t *testing.T) {
	newNetns(t)
	p := newPass(t)
	if _, err := Attach(p.Program(), 4711, ModeAuto); err == nil {
		t.Error("attached to no interface")
	}
	var config *ConfigError
	if _, err := Attach(p.Program(), 1, ModeOffload); !errors.As(err, &config) {
		t.Errorf("offload: %v", err)
	}
}

const childEnv = "LINERATE_BPF_TEST_ATTACH"

// attachAndWait is the child that attaches and waits to be killed.
func attachAndWait(ifindex string) int {
	idx, err := strconv.Atoi(ifindex)
	if err != nil {
		return 1
	}
	s, err := LoadSteer(SteerConfig{})
	if err != nil {
		return 1
	}
	// The child starts in the namespace of the thread that forked it.
	if _, err := Attach(s.Program(), idx, ModeNative); err != nil {
		return 1
	}
	os.Stdout.WriteString("attached\n")
	time.Sleep(time.Minute)
	runtime.KeepAlive(s)
	return 0
}

func TestKillLeavesNothing(t *testing.T) {
	idx := newPair(t, 1, 1500).A.Attrs().Index
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"="+strconv.Itoa(idx))
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	said := make([]byte, 16)
	n, _ := out.Read(said)
	if string(said[:n]) != "attached\n" {
		t.Errorf("child said %q", said[:n])
	}
	wantXDP(t, idx, ModeNative)
	must(t, cmd.Process.Kill())
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("child ended: %v", err)
	}
	// The kernel drops the link's last reference after the exit is reported.
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		mode, id, err := ReadXDP(idx)
		must(t, err)
		if mode == ModeNone {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("program %d is still attached (%s)", id, mode)
		}
	}
}
