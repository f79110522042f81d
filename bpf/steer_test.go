package bpf

import (
	"bytes"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"
)

// The XDP verdicts of linux/bpf.h.
const (
	xdpDrop     = 1
	xdpPass     = 2
	xdpRedirect = 4
)

// xdpMD is struct xdp_md of linux/bpf.h.
type xdpMD struct {
	Data, DataEnd, DataMeta      uint32
	IngressIfindex, RxQueueIndex uint32
	EgressIfindex                uint32
}

func newSteer(t testing.TB, cfg SteerConfig) *Steer {
	t.Helper()
	requireCaps(t)
	s, err := LoadSteer(cfg)
	must(t, err)
	closing(t, s)
	return s
}

// xskFD is an AF_XDP socket with an RX ring, not bound: enough for the XSKMAP.
func xskFD(t testing.TB) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	must(t, unix.SetsockoptInt(fd, unix.SOL_XDP, unix.XDP_RX_RING, 64))
	return fd
}

// run runs a program on one frame and returns verdict and frame, metadata first.
func run(t testing.TB, prog *ebpf.Program, frame []byte, md *xdpMD) (uint32, []byte) {
	t.Helper()
	opts := ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+256)}
	if md != nil {
		opts.Context = md
	}
	verdict, err := prog.Run(&opts)
	must(t, err)
	return verdict, opts.DataOut
}

// counted runs f and returns the counters of a queue that it moved.
func counted(t testing.TB, read func() ([]QueueCounters, error), queue int, f func()) map[Reason]uint64 {
	t.Helper()
	before, err := read()
	must(t, err)
	f()
	return difference(t, before, read, queue)
}

// difference is what moved since before, which must be of one queue only.
func difference(t testing.TB, before []QueueCounters, read func() ([]QueueCounters, error), queue int) map[Reason]uint64 {
	t.Helper()
	after, err := read()
	must(t, err)
	moved := map[Reason]uint64{}
	for i := range after {
		for r, n := range after[i].Frames {
			if n -= before[i].Frames[r]; n == 0 {
				continue
			}
			if after[i].Queue != queue {
				t.Errorf("queue %d: %s moved by %d", after[i].Queue, r, n)
			}
			moved[r] += n
		}
	}
	return moved
}

type frameCase struct {
	name   string
	frame  []byte
	reason Reason // ReasonRedirected, or why not
}

// frameCases is every kind of frame that a program meets, and what the tag
// rule says of it.
func frameCases(t testing.TB) []frameCase {
	long, short := longTag(), shortTag()
	plain := udp4(t, long)
	return append(append(extCases(t), otherCases(t)...), []frameCase{
		{"plain 64", plain, ReasonRedirected},
		{"plain 1518", udp4(t, padded(1472, long)), ReasonRedirected},
		{"short tag", udp4(t, padded(17, short)), ReasonRedirected},
		{"short tag in a long payload", udp4(t, padded(100, short)), ReasonRedirected},
		{"short tag alone", udp4(t, short), ReasonRedirected},
		{"one VLAN", udp4(t, long, 7), ReasonRedirected},
		{"QinQ", udp4(t, long, 7, 8), ReasonRedirected},
		{"802.1ad", patched(udp4(t, long, 7, 8), 12, 0x88, 0xa8), ReasonRedirected},
		{"0x9100", patched(udp4(t, long, 7, 8), 12, 0x91, 0x00), ReasonRedirected},
		{"three VLANs", udp4(t, long, 7, 8, 9), ReasonVLANDepth},
		{"IPv6", udp6(t, long), ReasonRedirected},
		{"IPv6 short", udp6(t, short), ReasonRedirected},
		{"options", ipv4Options(t, long), ReasonRedirected},
		{"padding beyond UDP", append(udp4(t, long), 0, 0, 0, 0, 0, 0), ReasonRedirected},
		{"tag in the padding", append(udp4(t, make([]byte, 30)), long...), ReasonNoTag},
		{"IPv4 total length wrong", patched(plain, 16, 0, 21), ReasonRedirected},
		{"first fragment", patched(plain, 20, 0x20, 0), ReasonFragment},
		{"later fragment", patched(plain, 20, 0, 9), ReasonFragment},
		{"do not fragment", patched(plain, 20, 0x40, 0), ReasonRedirected},
		{"IPv4 version 5", patched(plain, 14, 0x55), ReasonBadIP},
		{"IPv4 header of 16", patched(plain, 14, 0x44), ReasonBadIP},
		{"IPv6 version 4", patched(udp6(t, long), 14, 0x40), ReasonBadIP},
	}...)
}

// otherCases are frames that are not quite ours, and those of others.
func otherCases(t testing.TB) []frameCase {
	long := longTag()
	plain := udp4(t, long)
	return []frameCase{
		{"magic wrong", patched(plain, 42, 0x4C, 0x51), ReasonNoTag},
		{"magic of the short tag", patched(plain, 42, 0x4C, 0x53), ReasonNoTag},
		{"payload of 9", udp4(t, make([]byte, 9)), ReasonShortPayload},
		{"no payload", udp4(t, nil), ReasonShortPayload},
		{"UDP length 7", patched(plain, 38, 0, 7), ReasonBadUDPLength},
		{"UDP length 0", patched(plain, 38, 0, 0), ReasonBadUDPLength},
		{"UDP length over the frame", patched(plain, 38, 0, 27), ReasonTruncated},
		{"UDP length 16383", patched(plain, 38, 0x3f, 0xff), ReasonTruncated},
		{"UDP length 16384", patched(plain, 38, 0x40, 0), ReasonTooLong},
		{"ARP", arp(t), ReasonNotIP},
		{"LLDP", patched(plain, 12, 0x88, 0xcc), ReasonNotIP},
		{"ICMP", layersOf(t, ether(layers.EthernetTypeIPv4), ipv4(layers.IPProtocolICMPv4),
			&layers.ICMPv4{TypeCode: 0x0800}, gopacket.Payload(long)), ReasonNotUDP},
		{"TCP", tcp(t, long), ReasonNotUDP},
		{"bare Ethernet", plain[:14], ReasonTruncated},
	}
}

// extCases are IPv6 extension headers.
func extCases(t testing.TB) []frameCase {
	long := longTag()
	six := []extHeader{hopByHop, destOpts, routing, authHead, mobility, destOpts}
	return []frameCase{
		{"hop-by-hop", udp6Ext(t, long, hopByHop), ReasonRedirected},
		{"authentication", udp6Ext(t, long, authHead), ReasonRedirected},
		{"six extensions", udp6Ext(t, long, six...), ReasonRedirected},
		{"seven extensions", udp6Ext(t, long, append(six, hopByHop)...), ReasonExtChain},
		{"fragment header", udp6Ext(t, long, fragHead), ReasonFragment},
		{"fragment after options", udp6Ext(t, long, hopByHop, fragHead), ReasonFragment},
		{"ESP", udp6Ext(t, long, espHead), ReasonNotUDP},
		{"no next header", patched(udp6(t, long), 20, 59), ReasonNotUDP},
		{"extension over the frame", patched(udp6Ext(t, long, hopByHop), 55, 255), ReasonTruncated},
	}
}

func ipv4Options(t testing.TB, payload []byte) []byte {
	ip := ipv4(layers.IPProtocolUDP)
	ip.Options = []layers.IPv4Option{{OptionType: 148, OptionLength: 4, OptionData: []byte{0, 0}}}
	return layersOf(t, ether(layers.EthernetTypeIPv4), ip, udpOver(t, ip), gopacket.Payload(payload))
}

func arp(t testing.TB) []byte {
	return layersOf(t, ether(layers.EthernetTypeARP), &layers.ARP{
		AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4,
		HwAddressSize: 6, ProtAddressSize: 4, Operation: layers.ARPRequest,
		SourceHwAddress: srcMAC, SourceProtAddress: src4,
		DstHwAddress: make([]byte, 6), DstProtAddress: dst4,
	})
}

func tcp(t testing.TB, payload []byte) []byte {
	ip := ipv4(layers.IPProtocolTCP)
	h := &layers.TCP{SrcPort: 49184, DstPort: 7777, Window: 1024, ACK: true}
	must(t, h.SetNetworkLayerForChecksum(ip))
	return layersOf(t, ether(layers.EthernetTypeIPv4), ip, h, gopacket.Payload(payload))
}

// verdictOf is what XDP returns for a reason in the steer program.
func verdictOf(r Reason) uint32 {
	if r == ReasonRedirected {
		return xdpRedirect
	}
	return xdpPass
}

func TestSteerVerdicts(t *testing.T) {
	for _, frags := range []bool{false, true} {
		s := newSteer(t, SteerConfig{Frags: frags})
		must(t, s.SetSocket(0, xskFD(t)))
		for _, c := range frameCases(t) {
			checkFrame(t, s, c, nil)
		}
	}
}

// checkFrame runs one frame: verdict, unchanged frame, exactly these counters.
func checkFrame(t *testing.T, s *Steer, c frameCase, extra map[Reason]uint64) {
	t.Helper()
	var verdict uint32
	var out []byte
	moved := counted(t, s.Counters, 0, func() { verdict, out = run(t, s.Program(), c.frame, nil) })
	want := map[Reason]uint64{ReasonSeen: 1, c.reason: 1}
	for r, n := range extra {
		want[r] = n
	}
	if d := cmp.Diff(want, moved); d != "" {
		t.Errorf("%s: counters (-want +got):\n%s", c.name, d)
	}
	if verdict != verdictOf(c.reason) {
		t.Errorf("%s: verdict %d", c.name, verdict)
	}
	if !bytes.Equal(out, c.frame) {
		t.Errorf("%s: frame came out as % x", c.name, out)
	}
}

// Every frame that ends early passes as truncated, wherever it ends.
func TestSteerTruncated(t *testing.T) {
	s := newSteer(t, SteerConfig{})
	must(t, s.SetSocket(0, xskFD(t)))
	for name, frame := range map[string][]byte{
		"plain":      udp4(t, longTag()),
		"QinQ":       udp4(t, longTag(), 7, 8),
		"extensions": udp6Ext(t, longTag(), hopByHop, destOpts, authHead),
		"options":    ipv4Options(t, longTag()),
		"short tag":  udp4(t, padded(40, shortTag())),
	} {
		for n := 14; n < len(frame); n++ {
			checkFrame(t, s, frameCase{name, frame[:n], ReasonTruncated}, nil)
		}
	}
}

// A frame with our tag that is not among those asked for is passed under a
// reason of its own, and seen once.
func TestTaggedButNotMatched(t *testing.T) {
	requireCaps(t)
	frame := frameCases(t)[0].frame
	for name, cfg := range map[string]SteerConfig{
		"port": {Match: MatchPorts, Ports: []uint16{1}},
		"vlan": {Match: MatchVLANs, VLANs: []uint16{77}},
		"mac":  {Match: MatchMACs, MACs: [][6]byte{{2, 9, 9, 9, 9, 9}}},
	} {
		s := newSteer(t, cfg)
		if _, err := s.Program().Run(&ebpf.RunOptions{Data: frame}); err != nil {
			t.Fatal(err)
		}
		all, err := s.Counters()
		must(t, err)
		for reason, n := range all[0].Frames {
			want := uint64(0)
			if reason == ReasonSeen || reason == ReasonNotMatched {
				want = 1
			}
			if n != want {
				t.Errorf("%s: %s is %d, want %d", name, reason, n, want)
			}
		}
	}
}
