package frame

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"linerate/internal/wire"
)

// decoded is what an independent decoder reads from a frame.
type decoded struct {
	eth     *layers.Ethernet
	vlans   []*layers.Dot1Q
	ip4     *layers.IPv4
	ip6     *layers.IPv6
	udp     *layers.UDP
	payload []byte
}

// decode has gopacket read the frame, checks both checksums by having gopacket
// compute them anew, and checks the lengths.
func decode(t testing.TB, buf []byte) decoded {
	t.Helper()
	p := gopacket.NewPacket(buf, layers.LayerTypeEthernet, gopacket.DecodeOptions{NoCopy: true})
	if e := p.ErrorLayer(); e != nil {
		t.Fatalf("gopacket: %v in % x", e.Error(), buf)
	}
	var d decoded
	var again []gopacket.SerializableLayer
	for _, l := range p.Layers() {
		switch l := l.(type) {
		case *layers.Ethernet:
			d.eth = l
		case *layers.Dot1Q:
			d.vlans = append(d.vlans, l)
		case *layers.IPv4:
			d.ip4 = l
		case *layers.IPv6:
			d.ip6 = l
		case *layers.UDP:
			d.udp = l
		}
		if s, ok := l.(gopacket.SerializableLayer); ok {
			again = append(again, s)
		}
	}
	if d.udp == nil {
		t.Fatalf("no UDP in % x", buf)
	}
	d.payload = d.udp.Payload
	writeAnew(t, buf, d, again)
	return d
}

// writeAnew has gopacket write the layers anew, lengths and checksums computed.
func writeAnew(t testing.TB, buf []byte, d decoded, again []gopacket.SerializableLayer) {
	t.Helper()
	sums := [2]uint16{d.udp.Checksum}
	if d.ip4 != nil {
		sums[1] = d.ip4.Checksum
		_ = d.udp.SetNetworkLayerForChecksum(d.ip4)
	} else {
		_ = d.udp.SetNetworkLayerForChecksum(d.ip6)
	}
	out := gopacket.NewSerializeBuffer()
	opt := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(out, opt, again...); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), buf) {
		t.Fatalf("gopacket writes the same frame otherwise\n ours % x\nthere % x", buf, out.Bytes())
	}
	if d.udp.Checksum != sums[0] || sums[0] == 0 {
		t.Fatalf("UDP checksum %#04x, want %#04x, never 0", sums[0], d.udp.Checksum)
	}
	if d.ip4 != nil && d.ip4.Checksum != sums[1] {
		t.Fatalf("IPv4 checksum %#04x, want %#04x", sums[1], d.ip4.Checksum)
	}
}

var flowCases = map[string]Flows{
	"1flow":  {},
	"count7": {Count: 7},
	"ranges": {SrcPorts: PortRange{1, 3}, DstPorts: PortRange{0xfffe, 0xffff},
		SrcMACs: MACRange{[6]byte{2, 0, 0, 0, 0, 0xff}, [6]byte{2, 0, 0, 0, 1, 1}}},
}

// TestWriterAgainstGopacket: every stack, size and kind of flow.
func TestWriterAgainstGopacket(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for vlans := range 3 {
			long, short := LeastFrame(testStream(t, "64", v6, vlans).Stack)
			for _, sizes := range []string{
				fmt.Sprint(short), fmt.Sprint(long), fmt.Sprintf("%d-%d", short, short+37),
				fmt.Sprintf("%d,594,1518,%d,9000,595", long, long+1),
			} {
				for name, flows := range flowCases {
					s := testStream(t, sizes, v6, vlans)
					s.Flows = flows
					t.Run(fmt.Sprintf("%v/%s/%s", s.Stack, sizes, name), func(t *testing.T) {
						checkStream(t, s, long)
					})
				}
			}
		}
	}
}

func checkStream(t *testing.T, s Stream, long wire.FrameLen) {
	w := mustWriter(t, WriterConfig{Stream: s, Run: 0xbeef, Worker: 2, Workers: 3, StampEvery: 3,
		FirstFlow: 0, Stride: 1})
	k := NewChecker(CheckerConfig{Run: 0xbeef, PayloadCheck: true})
	bufs := [3][]byte{}
	prev := [3]wire.BufLen{}
	for i := range bufs {
		bufs[i] = bytes.Repeat([]byte{0xa5}, int(w.MaxLen()))
	}
	cycle := s.Sizes.Cycle()
	for i := range 3 * len(cycle) {
		b := bufs[i%3]
		now := uint64(1)<<40 + uint64(i)*1000
		n := w.Next(b, prev[i%3], now)
		prev[i%3] = n
		if want := cycle[i%len(cycle)].Buf(); n != want {
			t.Fatalf("frame %d: %d bytes, want %d", i, n, want)
		}
		d := decode(t, b[:n])
		want := Tag{Run: 0xbeef, Space: Space{2, 3}, Seq: uint64(i)}
		if isShort := n.Frame() < long; isShort {
			want.Flags = FlagShort
		} else if i%3 == 0 {
			want.Flags, want.TimeNs = FlagStamp, now&(1<<38-1)&^63
		}
		var c Checked
		if k.Check(b[:n], &c); c.Class != ClassGood || c.Tag != want {
			t.Fatalf("frame %d: %v %v %+v, want good %+v", i, c.Class, c.Reason, c.Tag, want)
		}
		checkFields(t, s, d, c)
		checkTail(t, b[:n], d, want, c.Short)
	}
}

// checkTail compares tag and payload with the plain way of writing them.
func checkTail(t *testing.T, b []byte, d decoded, tag Tag, short bool) {
	t.Helper()
	var addr []byte
	if d.ip4 != nil {
		addr = append(append(addr, d.ip4.SrcIP.To4()...), d.ip4.DstIP.To4()...)
	} else {
		addr = append(append(addr, d.ip6.SrcIP...), d.ip6.DstIP...)
	}
	addr = binary.BigEndian.AppendUint16(addr, uint16(d.udp.SrcPort))
	addr = binary.BigEndian.AppendUint16(addr, uint16(d.udp.DstPort))
	var want []byte
	for i := range len(d.payload) - tagBytes(short) {
		j := i % 4096
		want = append(want, byte(j+j>>8))
	}
	if want = AppendTag(want, tag, short, addr); !bytes.Equal(d.payload, want) {
		t.Fatalf("payload\n got % x\nwant % x", d.payload, want)
	}
}

func checkFields(t *testing.T, s Stream, d decoded, c Checked) {
	t.Helper()
	if len(d.vlans) != len(s.Stack.VLANs) {
		t.Fatalf("%d VLAN tags, want %d", len(d.vlans), len(s.Stack.VLANs))
	}
	for i, v := range s.Stack.VLANs {
		if d.vlans[i].VLANIdentifier != v.ID || d.vlans[i].Priority != v.PCP {
			t.Fatalf("VLAN %d: %+v, want %+v", i, d.vlans[i], v)
		}
	}
	if d.ip4 != nil {
		if d.ip4.TTL != 64 || d.ip4.TOS != 46<<2 || d.ip4.Flags != layers.IPv4DontFragment {
			t.Fatalf("IPv4 header %+v", d.ip4)
		}
	} else if d.ip6.HopLimit != 64 || d.ip6.TrafficClass != 46<<2 || d.ip6.FlowLabel != 0 {
		t.Fatalf("IPv6 header %+v", d.ip6)
	}
	// The k-th frame carries flow k, counted from the ranges by hand.
	k, f := int(c.Tag.Seq), s.Flows
	if n := len(s.Sizes.Cycle()); n > 1 {
		return // flows are shifted against sizes: TestEveryFlowMeetsEverySize
	}
	src, dst, mac := uint16(49184), uint16(7777), "02:00:00:00:00:01"
	switch {
	case f.Count == 7:
		src += uint16(k % 7)
	case f != Flows{}:
		src, dst = uint16(1+k%3), uint16(0xfffe+k/3%2)
		mac = []string{"02:00:00:00:00:ff", "02:00:00:00:01:00", "02:00:00:00:01:01"}[k/6%3]
	}
	if uint16(d.udp.SrcPort) != src || uint16(d.udp.DstPort) != dst || d.eth.SrcMAC.String() != mac ||
		d.eth.DstMAC.String() != "02:00:00:00:00:02" {
		t.Fatalf("frame %d: ports %d %d, MACs %v %v; want %d %d %v", k, d.udp.SrcPort, d.udp.DstPort,
			d.eth.SrcMAC, d.eth.DstMAC, src, dst, mac)
	}
}
