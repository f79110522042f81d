package stream

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"linerate/internal/nettest"
)

// asSeen is what tshark has to say of a stream's first frames: the protocols,
// and fields with one value a frame, repeated from the start when they run out.
// A "*" stands for anything.
var asSeen = []struct {
	stream, protocols string
	fields            map[string][]string
}{
	{"udp4", "eth:ethertype:ip:udp:data", map[string][]string{
		"eth.src": {"02:00:00:00:00:0a"}, "eth.dst": {"02:00:00:00:00:0b"}, "frame.len": {"60", "61", "124", "1514"},
		"ip.src": {"198.18.0.1", "198.18.0.2", "198.18.0.3"}, "ip.dst": {"198.18.1.1", "198.18.2.1"}, "ip.ttl": {"9"},
		"ip.dsfield.dscp": {"46"}, "ip.id": {"0x1234"}, "ip.checksum.status": {"1"}, "udp.checksum.status": {"1"},
		"udp.srcport": {"1000", "1010", "1020", "1030"}, "udp.dstport": {"5000", "5000", "5001", "5001"}}},
	{"udp6", "eth:ethertype:ipv6:udp:data", map[string][]string{"udp.checksum.status": {"1"}, "ipv6.hlim": {"5"},
		"ipv6.src":         {"2001:2::ffff:ffff:ffff:fffe", "2001:2::ffff:ffff:ffff:ffff", "2001:2:0:1::"},
		"ipv6.tclass.dscp": {"10"}, "ipv6.flow": {"0x0abcde", "0x0abcdf"}}},
	{"qinq", "eth:ethertype:ieee8021ad:ethertype:vlan:ethertype:ip:udp:data", map[string][]string{
		"eth.type": {"0x88a8"}, "ieee8021ad.id": {"100", "101", "102"}, "ieee8021ad.priority": {"5"}, "ieee8021ad.dei": {"0"},
		"vlan.id": {"7", "9"}, "vlan.priority": {"0"}, "vlan.dei": {"1"}, "vlan.etype": {"0x0800"}, "udp.checksum.status": {"1"}}},
	{"vlan6", "eth:ethertype:ieee8021ad:ethertype:ipv6:udp:data", map[string][]string{"eth.type": {"0x88a8"}, "ieee8021ad.id": {"4094"},
		"udp.checksum.status": {"1"}}},
	{"mpls", "eth:ethertype:mpls:ip:udp:data", map[string][]string{"mpls.label": {"16,1048575", "524304,1048575"},
		"mpls.exp": {"3,0"}, "mpls.bottom": {"0,1"}, "mpls.ttl": {"7,64"}, "udp.checksum.status": {"1"}}},
	{"tcp4", "eth:ethertype:ip:tcp*", map[string][]string{"tcp.srcport": {"80"}, "tcp.dstport": {"443", "8080"},
		"tcp.seq_raw": {"4294967290", "4294967291", "4294967292", "4294967293", "4294967294", "4294967295"},
		"tcp.flags":   {"0x0002", "0x0012", "0x0039", "0x0000"}, "tcp.window_size_value": {"512"}, "tcp.checksum.status": {"1"}}},
	{"tcp6", "eth:ethertype:ipv6:tcp", map[string][]string{"tcp.flags": {"0x00c4"}, "tcp.checksum.status": {"1"}, "frame.len": {"74"}}},
	{"icmp", "eth:ethertype:ip:icmp:data", map[string][]string{"icmp.type": {"8", "0"}, "icmp.ident": {"77"},
		"icmp.seq": counted("%d", 0), "icmp.checksum.status": {"1"}, "ip.checksum.status": {"1"}}},
	{"icmpv6", "eth:ethertype:ipv6:icmpv6:data", map[string][]string{"icmpv6.type": {"128"}, "icmpv6.echo.sequence_number": {"65535"},
		"icmpv6.checksum.status": {"1"}}},
	{"arp", "eth:ethertype:arp", map[string][]string{"eth.dst": {"ff:ff:ff:ff:ff:ff"}, "arp.opcode": {"1", "2"},
		"arp.src.hw_mac": {"02:00:00:00:00:07"}, "arp.src.proto_ipv4": {"198.18.0.1"}, "arp.dst.hw_mac": {"00:00:00:00:00:00"},
		"arp.dst.proto_ipv4": counted("198.18.0.%d", 1)}},
	{"vxlan4", "eth:ethertype:ip:udp:vxlan:eth:ethertype:vlan:ethertype:ipv6:tcp*", map[string][]string{
		"vxlan.vni": {"5000", "5001", "5002"}, "udp.checksum": {"0x0000"}, "udp.dstport": {"4789"}, "ip.checksum.status": {"1"},
		"eth.dst":  counted("02:00:00:00:00:02,02:00:00:00:01:%02x", 0),
		"ipv6.src": {"2001:2::1", "2001:2::2", "2001:2::3", "2001:2::4", "2001:2::5"}, "tcp.checksum.status": {"1"}, "vlan.id": {"12"}}},
	{"vxlan6", "eth:ethertype:ipv6:udp:vxlan:eth:ethertype:ip:udp:data", map[string][]string{"vxlan.vni": {"16777215"},
		"udp.checksum.status": {"1,1"}, "ip.checksum.status": {"1"}}},
	{"raw", "eth:ethertype:lldp*", map[string][]string{"eth.type": {"0x88cc"}}},
	{"rawip", "eth:ethertype:ip:ospf*", map[string][]string{"ip.proto": {"89"}, "ip.checksum.status": {"1"}, "ospf.version": {"2"}}},
	{"bare", "eth:ethertype:data", map[string][]string{"eth.type": {"0x88b5"}}},
	{"labelled", "eth:ethertype:mpls*", map[string][]string{"mpls.label": {"16"}, "mpls.bottom": {"1"}}},

	{"l3", "eth:ethertype:ip:udp:data", map[string][]string{"ip.checksum.status": {"0"}, "udp.checksum.status": {"1"}}},
	{"l4", "eth:ethertype:ipv6:udp:data", map[string][]string{"udp.checksum.status": {"0"}}},
	{"l4-tcp", "eth:ethertype:ip:tcp*", map[string][]string{"ip.checksum.status": {"1"}, "tcp.checksum.status": {"0"}}},
	{"ip-length", "eth:ethertype:ip*", map[string][]string{"ip.len": {"90"}, "frame.len": {"96"}}},
	{"ip6-length", "eth:ethertype:ipv6*", map[string][]string{"ipv6.plen": {"50"}, "frame.len": {"96"}}},
	{"udp-length", "eth:ethertype:ip:udp*", map[string][]string{"udp.length": {"70"}, "ip.len": {"82"}, "ip.checksum.status": {"1"}}},
	{"runt", "eth:ethertype:ip:udp*", map[string][]string{"frame.len": {"46"}, "ip.len": {"32"}}},
	{"oversize", "eth:ethertype:ip:udp:data", map[string][]string{"frame.len": {"9996"}, "udp.checksum.status": {"1"}}},
}

const frames = 12

// counted is a value for each frame, from first on.
func counted(format string, first int) (all []string) {
	for k := range frames {
		all = append(all, fmt.Sprintf(format, first+k))
	}
	return all
}

// Every kind of stream is, to tshark, what was asked for.
func TestTsharkReadsEveryKind(t *testing.T) {
	nettest.Require(t, nettest.Tshark)
	streams := append(mustParse(t, "protocols.yaml").Streams, mustParse(t, "wrong.yaml").Streams...)
	for _, s := range streams {
		i := slices.IndexFunc(asSeen, func(a struct {
			stream, protocols string
			fields            map[string][]string
		}) bool {
			return a.stream == s.Name
		})
		if i < 0 {
			t.Errorf("%s: nothing says what tshark should see", s.Name)
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			seen(t, s, asSeen[i].protocols, asSeen[i].fields)
		})
	}
}

func seen(t *testing.T, s *Stream, protocols string, fields map[string][]string) {
	names := []string{"frame.protocols"}
	for name := range fields {
		names = append(names, name)
	}
	rows := tshark(t, s, names)
	if len(rows) != frames {
		t.Fatalf("tshark read %d of %d frames", len(rows), frames)
	}
	for k, row := range rows {
		for i, got := range strings.Split(row, "\t") {
			want := protocols
			if i > 0 {
				all := fields[names[i]]
				want = all[k%len(all)]
			}
			if before, open := strings.CutSuffix(want, "*"); got != want && !(open && strings.HasPrefix(got, before)) {
				t.Errorf("frame %d: %s is %q, want %q", k, names[i], got, want)
			}
		}
	}
}

// tshark writes the first frames of a stream to a file and has tshark read it.
func tshark(t *testing.T, s *Stream, fields []string) []string {
	b := NewBuilder(s, testConfig)
	// pcap: magic, version 2.4, zone, accuracy, longest packet, Ethernet; then time, length kept and length of each.
	file := pcapWords(0xa1b2c3d4, 0x0002_0004, 0, 0, 65535, 1)
	buf := make([]byte, b.MaxLen())
	for k := range frames {
		n := int(b.Build(buf, uint64(k), uint64(k), 0))
		file = append(append(file, pcapWords(uint32(k), 0, uint32(n), uint32(n))...), buf[:n]...)
	}
	name := filepath.Join(t.TempDir(), "frames.pcap")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-r", name, "-T", "fields"}
	for _, p := range []string{"ip", "tcp", "udp"} {
		args = append(args, "-o", p+".check_checksum:TRUE")
	}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	cmd := exec.CommandContext(t.Context(), "tshark", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(fmt.Errorf("%v: %w: %s", args, err, &stderr))
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

func pcapWords(words ...uint32) (b []byte) {
	for _, w := range words {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}
