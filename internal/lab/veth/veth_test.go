package veth

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"linerate/internal/netns"
	"linerate/internal/nic"
)

func TestMain(m *testing.M) {
	if os.Getenv("LAB_CRASH_CHILD") != "" {
		crashChild()
	}
	goleak.VerifyTestMain(m)
}

// needAdmin skips where labs cannot be built at all. These tests cannot import
// nettest, which is built on this package.
func needAdmin(t *testing.T) {
	t.Helper()
	n, err := netns.New()
	if err == nil {
		n.Close()
		return
	}
	if !errors.Is(err, unix.EPERM) || os.Getenv("TEST_NO_SKIP") == "1" {
		t.Fatal(err)
	}
	t.Skipf("missing CAP_SYS_ADMIN: %v", err)
}

func up(t *testing.T, cfg Config) *Lab {
	t.Helper()
	needAdmin(t)
	l, err := Up(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func port(t *testing.T, l *Lab, e End) *nic.Port {
	t.Helper()
	p, err := nic.Open(l.NS(e), Interface)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestUpGivesTwoJoinedPorts(t *testing.T) {
	l := up(t, Config{Queues: 3, MTU: 3000})
	a, b := port(t, l, A), port(t, l, B)
	if a.PeerIndex != b.Index || b.PeerIndex != a.Index || a.Index == b.Index {
		t.Errorf("indexes %d (peer %d) and %d (peer %d): want peers with different indexes",
			a.Index, a.PeerIndex, b.Index, b.PeerIndex)
	}
	for i, p := range []*nic.Port{a, b} {
		if p.MAC != MAC(End(i)) || p.MAC[0]&3 != 2 {
			t.Errorf("end %d: address %x is not the local unicast one of this end", i, p.MAC)
		}
		if p.RxQueues != 3 || p.TxQueues != 3 || p.MTU != 3000 || !p.Up || !p.Carrier || p.Driver != "veth" {
			t.Errorf("end %d: %+v", i, p)
		}
	}
	if !strings.HasPrefix(l.Name(), "lr-") || l.A() != l.Name()+"-a/lr0" || l.B() != l.Name()+"-b/lr0" {
		t.Errorf("names %q %q %q", l.Name(), l.A(), l.B())
	}
	if in, ok := netns.Inum(l.Namespace(A)); !ok || in != l.NS(A).Inum() {
		t.Error("the name does not lead to the namespace of end A")
	}
}

func TestMiddleSeparatesTheEnds(t *testing.T) {
	l := up(t, Config{Queues: 2, Middle: true})
	a, b := port(t, l, A), port(t, l, B)
	if a.Index == b.Index || !a.Carrier || !b.Carrier || a.MAC != MAC(A) || b.MAC != MAC(B) {
		t.Errorf("%+v\n%+v", a, b)
	}
	for end, name := range map[*nic.Port]string{a: MiddleA, b: MiddleB} {
		m, err := nic.Open(l.NS(Middle), name)
		if err != nil {
			t.Fatal(err)
		}
		if m.PeerIndex != end.Index || end.PeerIndex != m.Index || m.RxQueues != 2 {
			t.Errorf("%s is not joined with its end: %+v", name, m)
		}
	}
	if err := l.Down(); err != nil {
		t.Fatal(err)
	}
	names, _ := netns.List()
	for _, e := range []End{A, B, Middle} {
		if slices.Contains(names, l.Namespace(e)) {
			t.Errorf("%s is left", l.Namespace(e))
		}
	}
}

// TestQuiet: nothing but what is sent on purpose may be on the wire.
func TestQuiet(t *testing.T) {
	l := up(t, Config{})
	time.Sleep(300 * time.Millisecond) // room for router solicitations, reports, probes
	err := l.NS(A).Do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, []byte("one"), 0, &unix.SockaddrInet4{Port: 9, Addr: Addr(B).As4()})
	})
	if err != nil {
		t.Fatal(err)
	}
	for e, want := range map[End]uint64{A: 1, B: 1} { // the datagram, the port unreachable
		c, err := port(t, l, e).Counters()
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Stats64["tx_packets"]; got != want {
			t.Errorf("end %d sent %d frames, want %d", e, got, want)
		}
	}
}

func TestDownLeavesNothing(t *testing.T) {
	l := up(t, Config{})
	a, b := l.Namespace(A), l.Namespace(B)
	watcher, err := l.NS(A).Another() // keeps the namespace alive
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close()
	if err := l.Down(); err != nil {
		t.Fatal(err)
	}
	names, _ := netns.List()
	if slices.Contains(names, a) || slices.Contains(names, b) {
		t.Errorf("still named: %v", names)
	}
	err = watcher.Do(func() error {
		links, err := netlink.LinkList()
		if len(links) != 1 {
			t.Errorf("%d interfaces left in a namespace that is still open, want lo", len(links))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Down(); err != nil {
		t.Errorf("second Down: %v", err)
	}
}

func TestDownOfHalfALab(t *testing.T) {
	for _, gone := range []End{A, B} {
		l := up(t, Config{})
		if err := netns.Delete(l.Namespace(gone)); err != nil {
			t.Fatal(err)
		}
		if err := l.Down(); err != nil {
			t.Errorf("end %d gone: %v", gone, err)
		}
	}
}

func TestTwoLabsAtOnce(t *testing.T) {
	a, b := up(t, Config{}), up(t, Config{})
	if a.Name() == b.Name() {
		t.Fatalf("both are called %s", a.Name())
	}
	labs, err := List()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []*Lab{a, b} {
		i := slices.IndexFunc(labs, func(i Info) bool { return i.Name == l.Name() })
		if i < 0 {
			t.Fatalf("%s is not in %v", l.Name(), labs)
		}
		if got := labs[i]; got.PID != os.Getpid() || !got.Alive || !got.Complete || got.Keep || got.Stale() {
			t.Errorf("%+v", got)
		}
	}
	if err := a.Down(); err != nil {
		t.Fatal(err)
	}
	if p := port(t, b, A); !p.Carrier {
		t.Error("taking one lab down hurt the other")
	}
}

func TestNamedLabExistsOnce(t *testing.T) {
	name := "lr-test-once-" + time.Now().Format("150405.000000")
	l := up(t, Config{Name: name})
	_, err := Up(Config{Name: name, Middle: true})
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, unix.EEXIST) {
		t.Errorf("second lab of that name: %v, want EEXIST", err)
	}
	if names, _ := netns.List(); slices.Contains(names, name+"-m") {
		t.Error("the refused lab left its middle")
	}
	if p := port(t, l, B); !p.Carrier {
		t.Error("the refused lab hurt the standing one")
	}
	if err := Down(name); err != nil {
		t.Fatal(err)
	}
	if err := Down(name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("second Down by name: %v, want ErrNotExist", err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []Config{
		{Queues: -1}, {Queues: MaxQueues + 1}, {MTU: 60}, {MTU: 70000},
		{Name: "other"}, {Name: "lr-"}, {Name: "lr-a/b"}, {Name: "lr-" + strings.Repeat("x", 200)},
	} {
		var e *ConfigError
		if _, err := Up(c); !errors.As(err, &e) {
			t.Errorf("Up(%+v) = %v, want *ConfigError", c, err)
		}
	}
}
