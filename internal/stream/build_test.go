package stream

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"linerate/internal/frame"
	"linerate/internal/wire"
)

var testConfig = Config{Run: 0x1234, Worker: 3}

// wantLayers is what gopacket has to find in each stream of protocols.yaml.
var wantLayers = map[string]string{
	"udp4":     "Ethernet IPv4 UDP",
	"udp6":     "Ethernet IPv6 UDP",
	"qinq":     "Ethernet Dot1Q Dot1Q IPv4 UDP",
	"vlan6":    "Ethernet Dot1Q IPv6 UDP",
	"mpls":     "Ethernet MPLS MPLS IPv4 UDP",
	"tcp4":     "Ethernet IPv4 TCP",
	"tcp6":     "Ethernet IPv6 TCP",
	"icmp":     "Ethernet IPv4 ICMPv4",
	"icmpv6":   "Ethernet IPv6 ICMPv6 ICMPv6Echo",
	"arp":      "Ethernet ARP",
	"vxlan4":   "Ethernet IPv4 UDP VXLAN Ethernet Dot1Q IPv6 TCP",
	"vxlan6":   "Ethernet IPv6 UDP VXLAN Ethernet IPv4 UDP",
	"raw":      "Ethernet",
	"rawip":    "Ethernet IPv4",
	"bare":     "Ethernet",
	"labelled": "Ethernet MPLS",
}

// Every kind of header is, to gopacket, what was asked for, and its checksums
// are right.
func TestGopacketReadsEveryKind(t *testing.T) {
	for _, s := range mustParse(t, "protocols.yaml").Streams {
		b := NewBuilder(s, testConfig)
		buf := make([]byte, b.MaxLen())
		for k := range uint64(300) {
			n := b.Build(buf, k, k, 1)
			if want := s.sizes[k%uint64(len(s.sizes))].Buf(); n != want {
				t.Fatalf("%s: frame %d has %d bytes, want %d", s.Name, k, n, want)
			}
			p := gopacket.NewPacket(buf[:n], layers.LayerTypeEthernet, gopacket.Default)
			var names []string
			var network gopacket.NetworkLayer
			for _, l := range p.Layers() {
				if n, is := l.(gopacket.NetworkLayer); is {
					network = n
				}
				if c, is := l.(interface {
					SetNetworkLayerForChecksum(gopacket.NetworkLayer) error
				}); is {
					if err := c.SetNetworkLayerForChecksum(network); err != nil {
						t.Fatal(err)
					}
				}
				switch l.LayerType() {
				case gopacket.LayerTypePayload, gopacket.LayerTypeDecodeFailure:
				default:
					names = append(names, l.LayerType().String())
				}
			}
			got := strings.Join(names, " ")
			if !strings.HasPrefix(got, wantLayers[s.Name]) {
				t.Fatalf("%s: frame %d is %s, want %s (%v)\n%x", s.Name, k, got, wantLayers[s.Name], p.ErrorLayer(), buf[:n])
			}
			if err, bad := p.VerifyChecksums(); err != nil || len(bad) > 0 {
				t.Fatalf("%s: frame %d: checksums: %v %v\n%x", s.Name, k, err, bad, buf[:n])
			}
		}
	}
}

// The sums that a Builder patches are those of a frame summed up from scratch.
func TestChecksumsFromScratch(t *testing.T) {
	for _, s := range mustParse(t, "protocols.yaml").Streams {
		b := NewBuilder(s, testConfig)
		buf := make([]byte, b.MaxLen())
		for k := range uint64(5000) {
			k *= 7919
			f := buf[:b.Build(buf, k, k, k)]
			for _, c := range b.sums {
				to := len(f)
				if c.to != 0 {
					to = c.to
				}
				total := sumOf(f[c.from:to])
				if c.pseudo != 0 {
					from, to := addresses(f, c.pseudo)
					total += sumOf(f[from:to]) + c.proto + uint64(len(f)-c.from)
				}
				if fold(total) != 0xffff {
					t.Fatalf("%s: frame %d: the sum from %d on is %#x\n%x", s.Name, k, c.from, fold(total), f)
				}
			}
		}
	}
}

// Frame k is the same whatever was built before and whoever builds it; another
// seed makes another frame.
func TestDeterminism(t *testing.T) {
	text := func(seed string) []byte {
		return []byte("seed: " + seed + "\nstreams:\n - {name: a, frame: [64, 200], payload: random, layers: [eth, " +
			"ipv4: {src: {from: 198.18.0.0, to: 198.18.255.255, random: true}}, udp]}\n")
	}
	build := func(seed string, order []uint64) map[uint64][]byte {
		f, err := Parse("f", text(seed))
		if err != nil {
			t.Fatal(err)
		}
		b, out := NewBuilder(f.Streams[0], testConfig), map[uint64][]byte{}
		buf := make([]byte, b.MaxLen())
		for _, k := range order {
			out[k] = bytes.Clone(buf[:b.Build(buf, k, k, k)])
		}
		return out
	}
	var order, mixed []uint64
	for k := range uint64(1000) {
		order, mixed = append(order, k), append(mixed, k)
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	one, same, other := build("5", order), build("5", mixed), build("6", order)
	differ := 0
	for k := range one {
		if !bytes.Equal(one[k], same[k]) {
			t.Fatalf("frame %d: %x and %x", k, one[k], same[k])
		}
		if !bytes.Equal(one[k], other[k]) {
			differ++
		}
	}
	if differ < 990 {
		t.Errorf("only %d of 1000 frames differ with another seed", differ)
	}
}

// No frame costs an allocation.
func TestBuildAllocatesNothing(t *testing.T) {
	for _, name := range []string{"protocols.yaml", "wrong.yaml"} {
		for _, s := range mustParse(t, name).Streams {
			b := NewBuilder(s, testConfig)
			buf := make([]byte, b.MaxLen())
			k := uint64(0)
			if n := testing.AllocsPerRun(200, func() { b.Build(buf, k, k, k); b.BuildEnd(buf, k, k, k); k++ }); n != 0 {
				t.Errorf("%s: %v allocations per frame", s.Name, n)
			}
		}
	}
}

// The tag is one that the receiver accepts, with run, space and number, where
// the stream can carry it.
func TestReceiverAcceptsTheTag(t *testing.T) {
	tagged := map[string]bool{"udp4": true, "udp6": true, "qinq": true, "vlan6": true}
	for _, s := range mustParse(t, "protocols.yaml").Streams {
		if s.Tagged() != tagged[s.Name] {
			t.Errorf("%s: tagged is %v", s.Name, s.Tagged())
		}
		b := NewBuilder(s, testConfig)
		check := frame.NewChecker(frame.CheckerConfig{Run: testConfig.Run, PayloadCheck: true})
		buf := make([]byte, b.MaxLen())
		for k := range uint64(3000) {
			var out frame.Checked
			check.Check(buf[:b.Build(buf, k, 1000+k, k+1)], &out)
			if !s.Tagged() && out.Class != frame.ClassUntagged || s.Tagged() && out.Class != frame.ClassGood {
				t.Fatalf("%s: frame %d is %v: %v\n%x", s.Name, k, out.Class, out.Reason, buf)
			}
			if want := (frame.Space{Worker: 3, Stream: uint16(s.ID)}); s.Tagged() && (out.Tag.Space != want || out.Tag.Seq != 1000+k) {
				t.Fatalf("%s: frame %d: tag %+v", s.Name, k, out.Tag)
			}
		}
	}
}

// A fault on purpose is the fault that the receiver finds.
func TestReceiverFindsTheFault(t *testing.T) {
	want := map[string]frame.Reason{"l3": frame.ReasonL3, "l4": frame.ReasonL4, "ip-length": frame.ReasonLength,
		"ip6-length": frame.ReasonLength, "udp-length": frame.ReasonLength}
	for _, s := range mustParse(t, "wrong.yaml").Streams {
		b := NewBuilder(s, testConfig)
		check := frame.NewChecker(frame.CheckerConfig{Run: testConfig.Run})
		buf := make([]byte, b.MaxLen())
		for k := range uint64(100) {
			var out frame.Checked
			n := b.Build(buf, k, k, 1)
			check.Check(buf[:n], &out)
			if reason, bad := want[s.Name]; bad && (out.Class != frame.ClassCorrupt || out.Reason != reason || !out.Identified || out.Tag.Seq != k) {
				t.Fatalf("%s: %v %v, want %v", s.Name, out.Class, out.Reason, reason)
			}
			if n = b.BuildEnd(buf, k, 77, 1); n != 0 {
				if check.Check(buf[:n], &out); out.Class != frame.ClassEnd || out.Tag.Seq != 77 {
					t.Fatalf("%s: END is %v %v", s.Name, out.Class, out.Reason)
				}
			}
		}
		lengths := map[string]wire.BufLen{"runt": 46, "oversize": 9996}
		if l := lengths[s.Name]; l != 0 && b.Build(buf, 0, 0, 0) != l {
			t.Errorf("%s: not %d bytes", s.Name, l)
		}
	}
}

// The account of several workers of one stream: every frame once, ENDs included.
func TestWorkersShareAStream(t *testing.T) {
	s := mustParse(t, "protocols.yaml").Streams[0]
	account := frame.NewAccount()
	q := account.Queue(0)
	check := frame.NewChecker(frame.CheckerConfig{Run: 9})
	seen := map[string]int{}
	for worker := range uint8(3) {
		w := NewWriter(s, Config{Run: 9, Worker: worker}, 3)
		buf := make([]byte, w.MaxLen())
		enter := func(n wire.BufLen) {
			var out frame.Checked
			check.Check(buf[:n], &out)
			q.Count(&out)
		}
		whole := NewBuilder(s, Config{Run: 9, Worker: worker})
		want := make([]byte, whole.MaxLen())
		for i := range uint64(1000) {
			n := w.Next(buf, 0, 1)
			if m := whole.Build(want, uint64(worker)+3*i, i, 1); !bytes.Equal(buf[:n], want[:m]) {
				t.Fatalf("worker %d: frame %d is not frame %d of the stream", worker, i, uint64(worker)+3*i)
			}
			seen[string(buf[26:38])]++
			enter(n)
		}
		enter(w.End(buf, w.Seq(), 1))
		if w.Next(buf[:10], 0, 1) != 0 || w.Seq() != 1000 {
			t.Errorf("a short buffer used a number up: %d", w.Seq())
		}
	}
	q.Publish()
	got := account.Streams()
	if len(got) != 1 || got[0].Distinct != 3000 || got[0].Duplicate != 0 || !got[0].EndSeen || got[0].EndSent != 3000 {
		t.Errorf("%+v", got)
	}
	if len(seen) != 12 {
		t.Errorf("%d flows, want 12: 3 sources, 2 destinations and 2 ports, 4 and 2 and 2 steps", len(seen))
	}
}
