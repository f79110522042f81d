package nic

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"linerate/internal/netns"
)

func TestXDPModeNames(t *testing.T) {
	for want, x := range map[string]*netlink.LinkXdp{
		"none": nil, "native": {Attached: true, AttachMode: 1}, "generic": {Attached: true, AttachMode: 2},
		"offload": {Attached: true, AttachMode: 3}, "multi": {Attached: true, AttachMode: 4},
		"unknown": {Attached: true, AttachMode: 9},
	} {
		if got := xdpMode(x); got != want {
			t.Errorf("%+v: %s, want %s", x, got, want)
		}
	}
	if got := xdpMode(&netlink.LinkXdp{AttachMode: 1}); got != "none" {
		t.Errorf("not attached: %s", got)
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{"5.1.0\x00junk": "5.1.0", " x \x00": "x", "N/A\x00": "", "": ""} {
		if got := clean(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestQueueOf(t *testing.T) {
	for name, want := range map[string]int{
		"rx_queue_0_drops": 0, "rx_queue_127_drops": 127, "rx_queue_65535_drops": 65535,
		"rx_queue_01_drops": -1, "rx_queue_-1_drops": -1, "rx_queue_+1_drops": -1, "rx_queue__drops": -1,
		"rx_queue_65536_drops": -1, "rx_queue_0_xdp_drops": -1, "tx_queue_0_drops": -1, "rx_queue_drops": -1,
	} {
		got, ok := queueOf(name, "rx_queue_", "_drops")
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%s: %d, %v", name, got, ok)
		}
	}
}

func TestIsDefault(t *testing.T) {
	dst := func(s string) *net.IPNet {
		_, n, err := net.ParseCIDR(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, c := range []struct {
		r    netlink.Route
		want bool
	}{
		{netlink.Route{Type: unix.RTN_UNICAST}, true},
		{netlink.Route{Type: unix.RTN_UNICAST, Dst: dst("0.0.0.0/0")}, true},
		{netlink.Route{Type: unix.RTN_UNICAST, Dst: dst("::/0")}, true},
		{netlink.Route{Type: unix.RTN_UNICAST, Dst: dst("0.0.0.0/1")}, false},
		{netlink.Route{Type: unix.RTN_UNICAST, Dst: dst("198.18.0.0/24")}, false},
		{netlink.Route{Type: unix.RTN_UNREACHABLE}, false},
		{netlink.Route{Type: unix.RTN_BLACKHOLE, Dst: dst("0.0.0.0/0")}, false},
	} {
		if got := isDefault(c.r); got != c.want {
			t.Errorf("%+v: %v", c.r, got)
		}
	}
	multi := netlink.Route{MultiPath: []*netlink.NexthopInfo{{LinkIndex: 3}, {LinkIndex: 5}}}
	if !leavesBy(multi, 5) || leavesBy(multi, 4) || !leavesBy(netlink.Route{LinkIndex: 4}, 4) {
		t.Error("hops of a multipath route")
	}
}

func TestNameHolder(t *testing.T) {
	holders := []holder{{pid: 3, comm: "one", inodes: []uint32{7}}, {pid: 4, inodes: []uint32{8, 9}}}
	for inode, want := range map[uint32]string{0: "", 7: "process 3 (one)", 9: "process 4", 5: "socket 5 of a process that cannot be seen"} {
		if got := nameHolder(holders, inode); got != want {
			t.Errorf("%d: %q, want %q", inode, got, want)
		}
	}
}

func TestErrorsSayWhat(t *testing.T) {
	ns, err := netns.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	p := &Port{NS: ns, Name: "eth9"}
	denied := p.fail("read", unix.EPERM)
	if got := denied.Error(); got != "read eth9: operation not permitted (needs CAP_NET_ADMIN)" {
		t.Error(got)
	}
	if got := p.fail("read", unix.EIO).Error(); strings.Contains(got, "CAP_") {
		t.Errorf("capability named for EIO: %s", got)
	}
	if !errors.Is(denied, unix.EPERM) {
		t.Error("cause lost")
	}
	if _, err := Open(ns, "no-such-if"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "lo") {
		t.Errorf("%v", err)
	}
}

// TestWatchOverflow: dropped notifications are an event, and the state is read
// afresh. No socket overflows at will, so the message is made by hand.
func TestWatchOverflow(t *testing.T) {
	ns, err := netns.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	lo, err := Open(ns, "lo")
	if err != nil {
		t.Fatal(err)
	}
	w := &watch{port: lo, events: make(chan Event, 8)}
	w.last = linkState{index: lo.Index, name: "lo", mtu: 1, up: lo.Up && lo.Carrier}
	w.rx, w.tx = lo.RxQueues, lo.TxQueues
	if !w.message(context.Background(), linkMessage{linkState: linkState{index: lo.Index}, missed: true}) {
		t.Error("the watch ended")
	}
	if e := <-w.events; e.Kind != EventMissed {
		t.Errorf("%+v, want missed", e)
	}
	if e := <-w.events; e.Kind != EventMTU || w.last.mtu != lo.MTU {
		t.Errorf("%+v and %+v, want the MTU read afresh", e, w.last)
	}
	w.last.index = 1 << 30
	if w.message(context.Background(), linkMessage{missed: true}) {
		t.Error("the watch of an interface that is gone goes on")
	}
}

// TestWatchSeesAFlap: down and up again, told of in one notification.
func TestWatchSeesAFlap(t *testing.T) {
	w := &watch{port: &Port{}, events: make(chan Event, 8), last: linkState{up: true, changes: 2}}
	w.port.NS = ownNS(t)
	if !w.compare(context.Background(), linkState{up: true, changes: 4}) {
		t.Fatal("the watch ended")
	}
	if len(w.events) != 1 {
		t.Fatalf("%d events, want one", len(w.events))
	}
	if e := <-w.events; e.Kind != EventFlap {
		t.Errorf("%+v, want a flap", e)
	}
}

func ownNS(t *testing.T) *netns.NS {
	t.Helper()
	ns, err := netns.Open("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	return ns
}

// TestWatchPollsQueues: no notification comes with this change.
func TestWatchPollsQueues(t *testing.T) {
	root := tree(t, map[string]string{"class/net/lo/queues/rx-0/x": "", "class/net/lo/queues/tx-0/x": ""})
	p := &Port{NS: ownNS(t), Name: "lo", roots: roots{sys: root, proc: "/proc"}}
	ctx, cancel := context.WithCancel(context.Background())
	ch, err := p.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		for range ch {
		}
	}()
	if err := os.Mkdir(filepath.Join(root, "class/net/lo/queues/rx-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	select {
	case e := <-ch:
		if e.Kind != EventQueues || e.Text != "queues rx 1 tx 1 -> rx 2 tx 1" {
			t.Errorf("%+v", e)
		}
	case <-time.After(10 * time.Second):
		t.Error("no event")
	}
}

func TestHostOfAFixture(t *testing.T) {
	root := tree(t, map[string]string{"cpuinfo": "model name : A\nflags : x\n", "cmdline": "quiet isolcpus=2\n"})
	if h := readHost(root); h.CPU != "A" || h.Hypervisor || h.Cmdline != "quiet isolcpus=2" {
		t.Errorf("%+v", h)
	}
	if h := readHost(filepath.Join(root, "absent")); h.CPU != "" || h.Cmdline != "" || h.Kernel == "" {
		t.Errorf("%+v", h)
	}
}

func TestReadIntNamesTheFile(t *testing.T) {
	root := tree(t, map[string]string{"n": "12x\n"})
	if _, err := readInt(filepath.Join(root, "n")); err == nil || !strings.Contains(err.Error(), filepath.Join(root, "n")) {
		t.Errorf("%v", err)
	}
	if _, err := readInt(filepath.Join(root, "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
