package netns

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

var serial atomic.Int64

// named makes a namespace that is removed with the test.
func named(t *testing.T) string {
	t.Helper()
	needAdmin(t)
	name := fmt.Sprintf("lrt-netns-%d-%d", os.Getpid(), serial.Add(1))
	if err := Create(name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Delete(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
	return name
}

// needAdmin skips where the process may not unshare. The probe is the real
// thing: these tests cannot import nettest, which is built on this package.
func needAdmin(t *testing.T) {
	t.Helper()
	res := make(chan error)
	ownThread(func() { res <- unix.Unshare(unix.CLONE_NEWNS) })
	err := <-res
	if err == nil {
		return
	}
	if os.Getenv("TEST_NO_SKIP") == "1" {
		t.Fatalf("missing CAP_SYS_ADMIN: unshare: %v", err)
	}
	t.Skipf("missing CAP_SYS_ADMIN: unshare: %v", err)
}

func open(t *testing.T, name string) *NS {
	t.Helper()
	n, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

func TestOpenShowsTheNamespaceOnly(t *testing.T) {
	name := named(t)
	n := open(t, name)
	if in, ok := Inum(name); !ok || in != n.Inum() {
		t.Errorf("Inum(%s) = %d, %v; the thread is in %d", name, in, ok, n.Inum())
	}
	err := n.Do(func() error {
		ents, err := os.ReadDir("/sys/class/net")
		if err != nil {
			return err
		}
		for _, e := range ents {
			if e.Name() != "lo" && e.Name() != "bonding_masters" {
				t.Errorf("/sys/class/net shows %s of another namespace", e.Name())
			}
		}
		ifs, err := net.Interfaces()
		if err != nil || len(ifs) != 1 || ifs[0].Name != "lo" {
			t.Errorf("interfaces: %v, want only lo", ifs)
		}
		dev, err := os.ReadFile("/proc/thread-self/net/dev")
		if lines := strings.Count(string(dev), "\n"); lines != 3 {
			t.Errorf("/proc/thread-self/net/dev has %d lines, want 3", lines)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOpenOwnMovesNothing(t *testing.T) {
	n := open(t, "")
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/net", &st); err != nil {
		t.Fatal(err)
	}
	if st.Ino != n.Inum() {
		t.Errorf("Open(\"\") entered %d, the process is in %d", n.Inum(), st.Ino)
	}
	mnt := func() (l string) { l, _ = os.Readlink("/proc/thread-self/ns/mnt"); return }
	host, inside := mnt(), ""
	if err := n.Do(func() error { inside = mnt(); return nil }); err != nil {
		t.Fatal(err)
	}
	if host != inside {
		t.Errorf("mount namespace changed for the caller's own network namespace: %s, %s", host, inside)
	}
}

// TestOpenOwnRepairsSysfs: a whole process in a namespace of its own still has
// the host's /sys; Open("") there must not believe it.
func TestOpenOwnRepairsSysfs(t *testing.T) {
	needAdmin(t)
	cmd := exec.Command("/proc/self/exe", "-test.run=^$")
	cmd.Env = append(os.Environ(), "NETNS_CHILD=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "[lo]\n" {
		t.Errorf("/sys/class/net = %s, %v; want [lo]", out, err)
	}
}

// child prints what Open("") shows under /sys/class/net.
func child() error {
	n, err := Open("")
	if err != nil {
		return err
	}
	defer n.Close()
	return n.Do(func() error {
		entries, err := os.ReadDir("/sys/class/net")
		var names []string
		for _, e := range entries {
			if e.Name() != "bonding_masters" {
				names = append(names, e.Name())
			}
		}
		fmt.Println(names)
		return err
	})
}

func TestAnotherOutlivesTheName(t *testing.T) {
	name := named(t)
	n := open(t, name)
	if err := Delete(name); err != nil {
		t.Fatal(err)
	}
	m, err := n.Another()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if m.Inum() != n.Inum() || m.Name() != name {
		t.Errorf("another: %d %q, want %d %q", m.Inum(), m.Name(), n.Inum(), name)
	}
}

func TestDoReturnsWhatFReturns(t *testing.T) {
	n := open(t, "")
	want := errors.New("mine")
	if got := n.Do(func() error { return want }); got != want {
		t.Errorf("Do = %v, want %v", got, want)
	}
	tids := map[int]bool{}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			_ = n.Do(func() error {
				tids[unix.Gettid()] = true // one thread: no lock needed
				return n.Do(func() error { tids[unix.Gettid()] = true; return nil })
			})
		})
	}
	wg.Wait()
	if len(tids) != 1 || tids[unix.Getpid()] {
		t.Errorf("ran on threads %v, want one that is not the main thread", tids)
	}
}

func TestDoSurvivesPanic(t *testing.T) {
	n := open(t, "")
	func() {
		defer func() {
			if r := recover(); r != "boom" {
				t.Errorf("recovered %v, want boom", r)
			}
		}()
		_ = n.Do(func() error { panic("boom") })
	}()
	if err := n.Do(func() error { return nil }); err != nil {
		t.Errorf("after a panic: %v", err)
	}
}

func TestDoPassesGoexitOn(t *testing.T) {
	n := open(t, "")
	gone := make(chan bool)
	go func() {
		defer close(gone)
		_ = n.Do(func() error { runtime.Goexit(); return nil })
		t.Error("Do returned after its function ended the goroutine")
	}()
	<-gone
	if err := n.Do(func() error { return nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("after Goexit: %v, want ErrClosed", err)
	}
}

func TestCloseIsFinal(t *testing.T) {
	n := open(t, "")
	for range 2 {
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
	err := n.Do(func() error { t.Error("ran after Close"); return nil })
	var e *Error
	if !errors.Is(err, ErrClosed) || !errors.As(err, &e) {
		t.Errorf("Do after Close = %v, want ErrClosed", err)
	}
}

// TestThreadIDsComeRoundAgain: a thread that happens to have the id of an NS
// that is closed is not inside its namespace.
func TestThreadIDsComeRoundAgain(t *testing.T) {
	n := open(t, "")
	n.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	n.tid = unix.Gettid()
	err := n.Do(func() error { t.Error("ran on a thread of somebody else's"); return nil })
	if !errors.Is(err, ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
}

// TestMainThreadIsNotTaken floods the runtime until the main thread is offered
// too: its network namespace must never change.
func TestMainThreadIsNotTaken(t *testing.T) {
	name := named(t)
	before, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			n, err := Open(name)
			if err != nil {
				t.Error(err)
				return
			}
			defer n.Close()
			_ = n.Do(func() error {
				if unix.Gettid() == unix.Getpid() {
					t.Error("namespace work runs on the main thread")
				}
				return nil
			})
		})
	}
	wg.Wait()
	after, _ := os.Readlink("/proc/self/ns/net")
	if before != after {
		t.Errorf("the process moved from %s to %s", before, after)
	}
}
