package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"linerate/bpf"
	"linerate/internal/lab/veth"
	"linerate/internal/netns"
	"linerate/internal/nettest"
)

// build makes the program once for the tests that need it as a process.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "linerate")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// openNS opens the namespace of a lab endpoint.
func openNS(t *testing.T, endpoint string) *netns.NS {
	t.Helper()
	space, _, _ := strings.Cut(endpoint, "/")
	ns, err := netns.Open(space)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	return ns
}

// A demo that is killed at any point leaves no program attached, and nothing
// that the next clean-up does not find.
func TestKilledDemoLeavesNothing(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	binary := build(t)
	for range 10 {
		cmd := exec.Command(binary, "demo", "-t", "2s", "--engine", []string{"xsk", "asavie"}[rand.IntN(2)])
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		out, err := exec.Command(binary, "lab", "list", "--clean").CombinedOutput()
		if err != nil {
			t.Fatalf("clean: %v\n%s", err, out)
		}
		// Other processes may have labs of their own.
		out, err = exec.Command(binary, "lab", "list").CombinedOutput()
		if err != nil || strings.Contains(string(out), fmt.Sprintf("lr-%d-", cmd.Process.Pid)) {
			t.Fatalf("left over: %v\n%s", err, out)
		}
	}
	nettest.CheckNothingLeft(t)
}

// Ctrl-C ends, drains and accounts: exit 130 and the partial result.
func TestInterrupt(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	binary := build(t)
	for _, eng := range []string{"xsk", "asavie"} {
		cmd := exec.Command(binary, "demo", "-t", "30s", "--json", "--engine", eng)
		var out bytes.Buffer
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
			t.Errorf("%s: exit %d, want %d", eng, code, exitInterrupted)
		}
		var doc struct {
			Frames struct{ Sent, Unexplained *uint64 }
		}
		if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
			t.Fatalf("%s: %v in %q", eng, err, out.String())
		}
		if doc.Frames.Sent == nil || *doc.Frames.Sent == 0 || doc.Frames.Unexplained == nil || *doc.Frames.Unexplained != 0 {
			t.Errorf("%s: partial result %s", eng, out.String())
		}
	}
	nettest.CheckNothingLeft(t)
}

// leftOf tells what of a process's lab is still there.
func leftOf(t *testing.T, pid int) string {
	t.Helper()
	labs, err := veth.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range labs {
		if l.PID == pid {
			return l.Name
		}
	}
	return ""
}

// A reader of stdout that goes away (| head) ends no demo before its lab is gone.
func TestReaderGoesAway(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	cmd := exec.Command(build(t), "demo", "-t", "500ms", "--ndjson", "--interval", "100ms")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.Close()
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitCannotRun {
		t.Errorf("exit %d, want %d", code, exitCannotRun)
	}
	if lab := leftOf(t, cmd.Process.Pid); lab != "" {
		t.Errorf("lab %s is left", lab)
	}
}

// A second signal ends at once, and even then the lab goes.
func TestSecondSignal(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	binary := build(t)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		cmd := exec.Command(binary, "demo", "-t", "30s", "--settle", "20s")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for leftOf(t, cmd.Process.Pid) == "" {
			time.Sleep(10 * time.Millisecond)
		}
		for range 2 {
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			time.Sleep(200 * time.Millisecond) // two at once are one
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
			t.Errorf("%s: exit %d, want %d", sig, code, exitInterrupted)
		}
		if lab := leftOf(t, cmd.Process.Pid); lab != "" {
			t.Errorf("%s: lab %s is left", sig, lab)
		}
	}
}

// A program that is not ours stays, and the error names it.
func TestForeignProgramIsRefused(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	lab := nettest.Lab(t, veth.Config{})
	ns := openNS(t, lab.B())
	pass, err := bpf.LoadPass()
	if err != nil {
		t.Fatal(err)
	}
	defer pass.Close()
	setXDP := func(fd int) error {
		return ns.Do(func() error {
			l, err := netlink.LinkByName(veth.Interface)
			if err != nil {
				return err
			}
			return netlink.LinkSetXdpFd(l, fd)
		})
	}
	if err := setXDP(pass.Program().FD()); err != nil {
		t.Fatal(err)
	}
	info, err := pass.Program().Info()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := info.ID()
	for _, args := range []string{"run --tx " + lab.A() + " --rx " + lab.B(), "run --tx " + lab.B() + " --rx " + lab.A(), "sink " + lab.B()} {
		code, _, stderr := invoke(t, strings.Fields(args)...)
		if code != exitCannotRun || !strings.Contains(stderr, fmt.Sprint(uint32(id))) || !strings.Contains(stderr, info.Name) || !strings.Contains(stderr, "native") {
			t.Errorf("%s: exit %d, says %q, want id %d, name %q and mode", args, code, stderr, id, info.Name)
		}
	}
	if err := setXDP(-1); err != nil {
		t.Errorf("the foreign program is gone: %v", err)
	}
}

// The interface of the default route is not touched without a word.
func TestDefaultRouteIsGuarded(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	lab := nettest.Lab(t, veth.Config{})
	err := openNS(t, lab.A()).Do(func() error {
		l, err := netlink.LinkByName(veth.Interface)
		if err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Gw: net.IPv4(198, 18, 0, 2)})
	})
	if err != nil {
		t.Fatal(err)
	}
	code, _, stderr := invoke(t, "run", "--tx", lab.A(), "--rx", lab.B(), "-n", "100")
	if code != exitCannotRun || !strings.Contains(stderr, "default route") || !strings.Contains(stderr, "--i-own-this-link") {
		t.Errorf("exit %d, says %q", code, stderr)
	}
	if code, _, stderr := invoke(t, "run", "--tx", lab.A(), "--rx", lab.B(), "-n", "100", "--rate", "10kpps", "--max-rate-error", "100", "--i-own-this-link"); code != exitPassed {
		t.Errorf("with --i-own-this-link: exit %d, %s", code, stderr)
	}
}

// A queue that is taken: the error says by whom.
func TestQueueTaken(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	lab := nettest.Lab(t, veth.Config{})
	binary := build(t)
	holder := exec.Command(binary, "run", "--tx", lab.A(), "--rx", lab.B(), "-t", "30s", "--rate", "1kpps")
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Process.Signal(os.Interrupt); _ = holder.Wait() }()
	time.Sleep(time.Second)
	code, _, stderr := invoke(t, "blast", lab.A(), "-n", "1")
	if code != exitCannotRun {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if !strings.Contains(stderr, fmt.Sprintf("process %d", holder.Process.Pid)) {
		t.Errorf("%q does not name the holder, process %d", stderr, holder.Process.Pid)
	}
}

// Every capability that is missing is named.
func TestMissingCapability(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	lab := nettest.Lab(t, veth.Config{})
	binary := build(t)
	if err := os.Chmod(filepath.Dir(filepath.Dir(binary)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(binary), 0o755); err != nil {
		t.Fatal(err)
	}
	all := map[string]uintptr{"CAP_NET_RAW": unix.CAP_NET_RAW, "CAP_NET_ADMIN": unix.CAP_NET_ADMIN, "CAP_BPF": unix.CAP_BPF}
	attempt := func(without string) (int, string) {
		caps := []uintptr{unix.CAP_PERFMON, unix.CAP_IPC_LOCK}
		for name, c := range all {
			if name != without {
				caps = append(caps, c)
			}
		}
		var code int
		var text []byte
		// Started inside the namespace: nobody enters one without CAP_SYS_ADMIN.
		_ = openNS(t, lab.A()).Do(func() error {
			cmd := exec.Command(binary, "blast", veth.Interface, "-n", "10", "--dst-mac", "02:00:00:00:00:02")
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, AmbientCaps: caps}
			text, _ = cmd.CombinedOutput()
			if cmd.ProcessState != nil {
				code = cmd.ProcessState.ExitCode()
			}
			return nil
		})
		return code, string(text)
	}
	if code, text := attempt(""); code != exitPassed {
		t.Errorf("with all of them: exit %d: %s", code, text)
	}
	for name := range all {
		code, text := attempt(name)
		if code != exitCannotRun || !strings.Contains(text, name) {
			t.Errorf("without %s: exit %d, says %q", name, code, text)
		}
	}
}
