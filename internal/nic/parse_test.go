package nic

import (
	"encoding/binary"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// tree writes files below a new directory and gives it.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestSysfsOfAnIxgbe(t *testing.T) {
	root := tree(t, map[string]string{
		"class/net/eth1/speed":              "10000\n",
		"class/net/eth1/queues/rx-0/x":      "",
		"class/net/eth1/queues/rx-1/x":      "",
		"class/net/eth1/queues/tx-0/x":      "",
		"class/net/eth1/queues/tx-10/x":     "",
		"class/net/eth1/queues/tx-2/x":      "",
		"class/net/eth1/queues/other/x":     "",
		"devices/0000:01:00.0/numa_node":    "1\n",
		"class/net/eth1/carrier_changes":    "7\n",
		"class/net/virt/speed":              "-1\n",
		"class/net/virt/device_is_absent/x": "",
	})
	if err := os.Symlink("../../../devices/0000:01:00.0", filepath.Join(root, "class/net/eth1/device")); err != nil {
		t.Fatal(err)
	}
	p := &Port{Name: "eth1", roots: roots{sys: root}}
	p.fromSysfs()
	if p.Speed != 10_000_000_000 || p.RxQueues != 2 || p.TxQueues != 3 || p.PCI != "0000:01:00.0" || p.NUMANode != 1 {
		t.Errorf("%+v", p)
	}
	v := &Port{Name: "virt", roots: roots{sys: root}}
	v.fromSysfs()
	if v.Speed != 0 || v.RxQueues != 0 || v.TxQueues != 0 || v.PCI != "" || v.NUMANode != -1 {
		t.Errorf("%+v", v)
	}
}

func TestParseSpeed(t *testing.T) {
	for in, want := range map[string]uint64{
		"10000\n": 1e10, "100": 1e8, "-1\n": 0, "4294967295\n": 0, "2147483647": 0, "": 0, "fast": 0, "0": 0,
	} {
		if got := uint64(parseSpeed(in)); got != want {
			t.Errorf("%q: %d, want %d", in, got, want)
		}
	}
}

const tcpFixture = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 020012C6:0016 010012C6:C350 01 00000000:00000000 02:000A0000 00000000     0        0 2 2 0 20 4 30 10 -1
   2: 030012C6:0050 010012C6:C351 01 00000000:00000000 02:000A0000 00000000     0        0 3 2 0 20 4 30 10 -1
   3: 040012C6:0016 010012C6:C352 06 00000000:00000000 02:000A0000 00000000     0        0 4 2 0 20 4 30 10 -1
`

const tcp6Fixture = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when
   0: B80D0120000000000000000005000000:0016 B80D0120000000000000000006000000:C350 01 00000000:00000000 00:00000000
   1: 0000000000000000FFFF0000050012C6:0016 0000000000000000FFFF0000060012C6:C350 01 00000000:00000000 00:00000000
`

func TestSSHLocals(t *testing.T) {
	root := tree(t, map[string]string{"thread-self/net/tcp": tcpFixture, "thread-self/net/tcp6": tcp6Fixture})
	got, err := readSSHLocals(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []netip.Addr{
		netip.MustParseAddr("198.18.0.2"),
		netip.MustParseAddr("2001:db8::5"),
		netip.MustParseAddr("198.18.0.5"),
	}
	if d := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); d != "" {
		t.Error(d)
	}
	if got, err := readSSHLocals(t.TempDir()); err != nil || got != nil {
		t.Errorf("without files: %v, %v", got, err)
	}
}

func TestParseSSHConnection(t *testing.T) {
	if a, ok := parseSSHConnection("fe80::1%eth0 5000 fe80::2%eth0 22"); !ok || a != netip.MustParseAddr("fe80::2") {
		t.Errorf("%v %v", a, ok)
	}
	for _, bad := range []string{"", "a b c d", "192.0.2.1 1 192.0.2.2", "1 2 3 4 5"} {
		if _, ok := parseSSHConnection(bad); ok {
			t.Errorf("%q was taken", bad)
		}
	}
}

const mapsFixture = `7f0000000000-7f0000001000 rw-s 00000000 00:08 100                        socket:[100]
7f0000001000-7f0000002000 rw-s 80000000 00:08 101                        socket:[101]
7f0000002000-7f0000003000 rw-s 100000000 00:08 101                        socket:[101]
7f0000003000-7f0000004000 rw-s 180000000 00:08 102                        socket:[102]
7f0000004000-7f0000005000 r--p 80000000 fd:00 103                        /data/large file
7f0000005000-7f0000006000 rw-p 00000000 00:00 0 
`

func TestRingHolders(t *testing.T) {
	root := tree(t, map[string]string{
		"20/maps": mapsFixture, "20/comm": "xdpsock\n",
		"3/maps": "7f-80 rw-s 100000000 00:08 7 socket:[7]\n",
		"4/maps": "7f-80 rw-s 00000000 00:08 7 socket:[7]\n", "4/comm": "tcpdump\n",
		"self/maps": mapsFixture,
	})
	got := ringHolders(root)
	if len(got) != 2 || got[0].String() != "process 3" || got[1].String() != "process 20 (xdpsock)" {
		t.Fatalf("%v", got)
	}
	if d := cmp.Diff([]uint32{101, 102}, got[1].inodes); d != "" {
		t.Error(d)
	}
}

func TestParseCPUInfo(t *testing.T) {
	model, virtual := parseCPUInfo("processor\t: 0\nmodel name\t: Some  CPU @ 3.00GHz\nflags\t\t: fpu hypervisor\n\nprocessor\t: 1\nmodel name\t: Other\n")
	if model != "Some CPU @ 3.00GHz" || !virtual {
		t.Errorf("%q %v", model, virtual)
	}
	if model, virtual = parseCPUInfo("Hardware\t: Board\n"); model != "Board" || virtual {
		t.Errorf("%q %v", model, virtual)
	}
}

// linkMsg builds one netlink message as the kernel sends it.
func linkMsg(kind uint16, family byte, index int32, flags uint32, attrs ...[]byte) []byte {
	b := make([]byte, unix.NLMSG_HDRLEN+unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint16(b[4:], kind)
	b[16] = family
	binary.NativeEndian.PutUint32(b[20:], uint32(index))
	binary.NativeEndian.PutUint32(b[24:], flags)
	for _, a := range attrs {
		b = append(b, a...)
	}
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	return b
}

func attr(kind uint16, v []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(v)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, v...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func u32(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }

func TestParseLinks(t *testing.T) {
	up := uint32(unix.IFF_UP | unix.IFF_LOWER_UP)
	b := linkMsg(unix.RTM_NEWLINK, 0, 5, up, attr(unix.IFLA_IFNAME, []byte("eth1\x00")),
		attr(unix.IFLA_MTU, u32(9000)), attr(unix.IFLA_CARRIER_CHANGES, u32(3)))
	b = append(b, linkMsg(unix.RTM_NEWLINK, unix.AF_BRIDGE, 5, 0)...)
	b = append(b, linkMsg(unix.RTM_NEWADDR, 0, 5, 0)...)
	b = append(b, linkMsg(unix.RTM_DELLINK, 0, 5, unix.IFF_UP)...)
	got := parseLinks(b)
	want := []linkMessage{
		{linkState: linkState{index: 5, name: "eth1", mtu: 9000, changes: 3, up: true}},
		{linkState: linkState{index: 5}, deleted: true},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(linkMessage{}, linkState{})); d != "" {
		t.Error(d)
	}
}

func FuzzParse(f *testing.F) {
	up := uint32(unix.IFF_UP | unix.IFF_LOWER_UP)
	f.Add([]byte(tcpFixture), "rx_queue_3_xdp_packets")
	f.Add([]byte(mapsFixture), "rx-3")
	f.Add(linkMsg(unix.RTM_NEWLINK, 0, 5, up, attr(unix.IFLA_IFNAME, []byte("eth1\x00")), attr(unix.IFLA_MTU, u32(9000))), "10000")
	f.Fuzz(func(t *testing.T, b []byte, s string) {
		for _, m := range parseLinks(b) {
			if len(m.name) > len(b) {
				t.Error("name longer than the message")
			}
		}
		_, _ = parseLink(b)
		_, _, _ = parseTCPLine(string(b))
		_, _ = parseTCPAddr(s)
		_, _ = parseRingMapping(string(b))
		_, _ = parseCPUInfo(string(b))
		_, _ = parseSSHConnection(s)
		_, _ = parseQueueName(s)
		if v := parseSpeed(s); uint64(v)%1_000_000 != 0 {
			t.Errorf("%q: speed %d is no whole Mbit/s", s, v)
		}
		if n, ok := queueOf(s, "rx_queue_", "_xdp_packets"); ok && (n < 0 || n > 65535) {
			t.Errorf("%q: queue %d", s, n)
		}
	})
}
