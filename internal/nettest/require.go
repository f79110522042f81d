package nettest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"linerate/internal/lab/veth"
	"linerate/internal/netns"
)

// Need is something a test cannot do without. Its text is what the skip says.
type Need string

// The needs. Each is probed by doing the thing, once per process.
const (
	Root         Need = "user id 0"
	Namespaces   Need = "network namespaces (CAP_SYS_ADMIN and CAP_NET_ADMIN)"
	RawSockets   Need = "AF_PACKET sockets (CAP_NET_RAW)"
	BPF          Need = "loading XDP programs (CAP_BPF and CAP_NET_ADMIN)"
	Tracing      Need = "BTF tracing (CAP_PERFMON and kernel BTF)"
	VethXDP      Need = "native XDP on a veth"
	AFXDP        Need = "AF_XDP sockets (CONFIG_XDP_SOCKETS and CAP_NET_RAW)"
	ThreadedNAPI Need = "threaded NAPI on a veth whose threads can be told apart (Linux 6.8)"
)

// Programs of Debian packages of the same name: others that read our frames and
// scrape our runs.
const (
	Tshark     Need = program + "tshark"
	Prometheus Need = program + "prometheus"
)

// program begins the need of a program: its name follows.
const program = "the program "

// Program is the need of a program that PATH names: a shell, or Prometheus.
func Program(name string) Need { return Need(program + name) }

// probes is a function and not a variable: nobody may change it.
func probe(n Need) func() error {
	switch n {
	case Root:
		return probeRoot
	case Namespaces:
		return probeNamespaces
	case RawSockets:
		return func() error { return probeSocket(unix.AF_PACKET) }
	case AFXDP:
		return func() error { return probeSocket(unix.AF_XDP) }
	case BPF:
		return probeBPF
	case Tracing:
		return probeTracing
	case VethXDP:
		return func() error { return probeVeth(func(*veth.Lab) error { return nil }) }
	case ThreadedNAPI:
		return func() error { return probeVeth(probeThreaded) }
	}
	if name, ok := strings.CutPrefix(string(n), program); ok {
		return func() error { return probeProgram(name) }
	}
	return func() error { return fmt.Errorf("no probe for %q", string(n)) }
}

// results keeps what was found, for the process.
var results sync.Map // Need -> func() error

// Check probes one need: nil if this host has it.
func Check(n Need) error {
	once, _ := results.LoadOrStore(n, sync.OnceValue(probe(n)))
	return once.(func() error)()
}

// Require skips the test unless this host has everything it needs. The skip
// names what is missing and why; with TEST_NO_SKIP=1 it is a failure.
func Require(t testing.TB, needs ...Need) {
	t.Helper()
	var missing []string
	for _, n := range needs {
		if err := Check(n); err != nil {
			missing = append(missing, fmt.Sprintf("%s: %v", n, err))
		}
	}
	if len(missing) == 0 {
		return
	}
	text := "missing " + strings.Join(missing, "; ")
	if noSkip() {
		t.Fatal(text)
	}
	t.Skip(text)
}

func probeProgram(name string) error {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && unix.Access(path, unix.X_OK) == nil {
			return nil
		}
	}
	return errors.New("not in PATH")
}

func probeRoot() error {
	if id := os.Geteuid(); id != 0 {
		return fmt.Errorf("it is %d", id)
	}
	return nil
}

func probeNamespaces() error {
	n, err := netns.New()
	if err != nil {
		return err
	}
	defer n.Close()
	return n.Do(func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(lo)
	})
}

func probeSocket(family int) error {
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// pass loads a program that passes every frame.
func pass() (*ebpf.Program, error) {
	return ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "GPL", Instructions: asm.Instructions{
		asm.Mov.Imm(asm.R0, xdpPass), asm.Return(),
	}})
}

func probeBPF() error {
	p, err := pass()
	if err != nil {
		return err
	}
	return p.Close()
}

func probeTracing() error {
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		return err
	}
	if err := spec.TypeByName("btf_trace_xdp_exception", new(*btf.Typedef)); err != nil {
		return err
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp, AttachTo: "xdp_exception", License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return err
	}
	return p.Close()
}

// probeVeth attaches a program to a veth in native mode and goes on from there.
func probeVeth(more func(*veth.Lab) error) error {
	l, err := veth.Up(veth.Config{})
	if err != nil {
		return err
	}
	p, err := pass()
	if err != nil {
		return errors.Join(err, l.Down())
	}
	defer p.Close()
	at, err := attach(l.NS(veth.A), veth.Interface, p)
	if err == nil {
		err = errors.Join(more(l), at.Close())
	}
	return errors.Join(err, l.Down())
}

func probeThreaded(l *veth.Lab) error {
	if err := l.SetThreadedNAPI(veth.A, true); err != nil {
		return err
	}
	threads, err := l.NAPIThreads(veth.A)
	if err == nil && len(threads) != 1 {
		err = fmt.Errorf("%d threads for one queue", len(threads))
	}
	return err
}

// attach puts a program on an interface in native mode.
func attach(ns *netns.NS, name string, p *ebpf.Program) (at link.Link, err error) {
	err = ns.Do(func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		at, err = link.AttachXDP(link.XDPOptions{Program: p, Interface: l.Attrs().Index, Flags: link.XDPDriverMode})
		return err
	})
	return at, err
}
