package bpf

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// requireCaps skips the test, or with TEST_NO_SKIP=1 fails it, when this
// process may not load and attach programs.
func requireCaps(t testing.TB) {
	t.Helper()
	lack := missing(capBPF | capNetAdmin | capPerfmon)
	if len(lack) == 0 {
		return
	}
	if os.Getenv("TEST_NO_SKIP") == "1" {
		t.Fatalf("needs %s", strings.Join(lack, ", "))
	}
	t.Skipf("needs %s", strings.Join(lack, ", "))
}

// pair is a veth pair with both ends in the test's own network namespace.
type pair struct {
	A, B netlink.Link
}

// newNetns moves the test to a thread in a fresh network namespace. The thread
// stays locked, so it and the namespace end with the test's goroutine. Subtests
// run elsewhere: do not start any.
func newNetns(t testing.TB) {
	t.Helper()
	requireCaps(t)
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatalf("unshare: %v", err)
	}
}

// newPair makes a veth pair of queues queues, up, in a fresh namespace.
func newPair(t testing.TB, queues, mtu int) pair {
	t.Helper()
	newNetns(t)
	return addPair(t, queues, mtu)
}

// addPair makes a veth pair in the calling thread's namespace.
func addPair(t testing.TB, queues, mtu int) pair {
	t.Helper()
	la := netlink.NewLinkAttrs()
	la.Name, la.MTU = "a", mtu
	la.NumTxQueues, la.NumRxQueues = queues, queues
	veth := &netlink.Veth{LinkAttrs: la, PeerName: "b", PeerMTU: uint32(mtu),
		PeerNumTxQueues: uint32(queues), PeerNumRxQueues: uint32(queues)}
	if err := netlink.LinkAdd(veth); err != nil {
		t.Fatalf("add veth: %v", err)
	}
	return pair{up(t, "a"), up(t, "b")}
}

func up(t testing.TB, name string) netlink.Link {
	t.Helper()
	// Without IPv6 the stack sends nothing of its own accord.
	_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0)
	l, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatalf("find %s: %v", name, err)
	}
	if err := netlink.LinkSetUp(l); err != nil {
		t.Fatalf("set %s up: %v", name, err)
	}
	return l
}

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// closing closes c at the end of the test and checks that it could.
func closing(t testing.TB, c interface{ Close() error }) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// TestMain runs the tests, or the child of one.
func TestMain(m *testing.M) {
	if idx := os.Getenv(childEnv); idx != "" {
		os.Exit(attachAndWait(idx))
	}
	os.Exit(m.Run())
}
