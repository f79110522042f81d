package xsk

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// veth is a pair in a network namespace of its own, which ends with the test's
// thread. The sender's end is lrx0, the receiver's lrx1.
type veth struct {
	tx, rx int // ifindexes
}

// requireLab is an earned skip: it names what is missing.
func requireLab(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // never unlocked: the thread dies, and its namespace
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		missing(t, "a network namespace of its own (CAP_SYS_ADMIN): "+err.Error())
	}
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW, 0)
	if err != nil {
		missing(t, "AF_XDP sockets (CONFIG_XDP_SOCKETS, CAP_NET_RAW): "+err.Error())
	}
	unix.Close(fd)
}

func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("TEST_NO_SKIP") == "1" {
		t.Fatalf("missing: %s", what)
	}
	t.Skipf("missing: %s", what)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newVeth makes the pair, up, with no address and no IPv6, so that no frame
// flies that a test did not send.
func newVeth(t *testing.T, queues, mtu int) veth {
	t.Helper()
	requireLab(t)
	must(t, os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0o644))
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = "lrx0", mtu
	attrs.NumTxQueues, attrs.NumRxQueues = queues, queues
	must(t, netlink.LinkAdd(&netlink.Veth{
		LinkAttrs: attrs, PeerName: "lrx1", PeerMTU: uint32(mtu),
		PeerNumTxQueues: uint32(queues), PeerNumRxQueues: uint32(queues),
	}))
	v := veth{tx: index(t, "lrx0"), rx: index(t, "lrx1")}
	v.set(t, "lrx0", true)
	v.set(t, "lrx1", true)
	t.Cleanup(func() { v.remove(t) })
	return v
}

// remove deletes the pair, if it is still there.
func (v veth) remove(t *testing.T) {
	t.Helper()
	if l, err := netlink.LinkByName("lrx0"); err == nil {
		must(t, netlink.LinkDel(l))
	}
}

func index(t *testing.T, name string) int {
	t.Helper()
	l, err := netlink.LinkByName(name)
	must(t, err)
	return l.Attrs().Index
}

func (v veth) set(t *testing.T, name string, up bool) {
	t.Helper()
	l, err := netlink.LinkByName(name)
	must(t, err)
	if up {
		must(t, netlink.LinkSetUp(l))
	} else {
		must(t, netlink.LinkSetDown(l))
	}
}

// txDropped is stats64 tx_dropped of the sender's end.
func (v veth) txDropped(t *testing.T) uint64 {
	t.Helper()
	l, err := netlink.LinkByName("lrx0")
	must(t, err)
	return l.Attrs().Statistics.TxDropped
}

// attach puts a program on the receiver's end, native mode.
func (v veth) attach(t *testing.T, spec *ebpf.ProgramSpec) {
	t.Helper()
	prog, err := ebpf.NewProgram(spec)
	var ve *ebpf.VerifierError
	if errors.As(err, &ve) {
		t.Fatalf("%+v", ve)
	}
	must(t, err)
	l, err := link.AttachXDP(link.XDPOptions{Program: prog, Interface: v.rx, Flags: link.XDPDriverMode})
	must(t, err)
	t.Cleanup(func() { l.Close(); prog.Close() })
}

// drop is a program that drops what comes; frags for an MTU over 3506.
func (v veth) drop(t *testing.T, frags bool) {
	t.Helper()
	spec := &ebpf.ProgramSpec{
		Type: ebpf.XDP, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 1), asm.Return()},
	}
	if frags {
		spec.Flags = unix.BPF_F_XDP_HAS_FRAGS
	}
	v.attach(t, spec)
}

// redirect gives every frame to the socket of its queue.
func (v veth) redirect(t *testing.T, frags bool, sockets ...*Socket) {
	t.Helper()
	m, err := ebpf.NewMap(&ebpf.MapSpec{
		Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: uint32(len(sockets)),
	})
	must(t, err)
	t.Cleanup(func() { m.Close() })
	for _, s := range sockets {
		must(t, m.Put(uint32(s.Config().Queue), uint32(s.FD())))
	}
	spec := &ebpf.ProgramSpec{
		Type: ebpf.XDP, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{
			asm.LoadMem(asm.R2, asm.R1, 16, asm.Word), // xdp_md.rx_queue_index
			asm.LoadMapPtr(asm.R1, m.FD()),
			asm.Mov.Imm(asm.R3, 1), // no socket: XDP_DROP
			asm.FnRedirectMap.Call(),
			asm.Return(),
		},
	}
	if frags {
		spec.Flags = unix.BPF_F_XDP_HAS_FRAGS
	}
	v.attach(t, spec)
}

// testFrame is an Ethernet frame of n bytes with a counter in its payload.
func testFrame(buf []byte, count byte) {
	copy(buf, []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5})
	for i := 14; i < len(buf); i++ {
		buf[i] = count + byte(i)
	}
}

func sameFrame(buf []byte, n int, count byte) bool {
	want := make([]byte, n)
	testFrame(want, count)
	return bytes.Equal(buf, want)
}

func openUmem(t *testing.T, cfg UmemConfig) *Umem {
	t.Helper()
	u, err := NewUmem(cfg)
	must(t, err)
	t.Cleanup(func() { must(t, u.Close()) })
	return u
}

func openSocket(t *testing.T, u *Umem, cfg Config) *Socket {
	t.Helper()
	s, err := Open(u, cfg)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}
