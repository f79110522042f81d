package frame

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"linerate/internal/wire"
)

// oneFrame is the frame with sequence number 0.
func oneFrame(t testing.TB, s Stream, run Run) []byte {
	t.Helper()
	w := mustWriter(t, WriterConfig{Stream: s, Run: run, StampEvery: 1})
	buf := make([]byte, w.MaxLen())
	return buf[:w.Next(buf, 0, 1<<30)]
}

func check(c CheckerConfig, buf []byte) Checked {
	out := Checked{Class: 99, Reason: 99, Identified: true, Short: true, Tag: Tag{Run: 99, Flags: 99}}
	NewChecker(c).Check(buf, &out)
	return out
}

// uncovered lists the bits of a frame that no check covers, as doc.go does:
// bit 0 is the top bit of byte 0.
func uncovered(st Stack, bit int) bool {
	at := bit / 8
	switch {
	case at < 12: // MAC addresses
		return true
	case at < st.l3(): // the control fields of the VLAN tags, not the types
		return at >= 14 && (at-14)%4 < 2
	case !st.v6():
		return false
	}
	bit -= 8 * st.l3() // IPv6: traffic class and flow label, hop limit
	return bit >= 4 && bit < 32 || bit/8 == 7
}

// TestEverySingleBit: no flipped bit passes as good, but for those listed.
func TestEverySingleBit(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for vlans := range 3 {
			long, short := LeastFrame(testStream(t, "64", v6, vlans).Stack)
			for _, size := range []wire.FrameLen{short, long, long + 33} {
				s := testStream(t, fmt.Sprint(size), v6, vlans)
				buf := oneFrame(t, s, 0xbeef)
				for bit := range 8 * len(buf) {
					buf[bit/8] ^= 0x80 >> (bit % 8)
					c := check(CheckerConfig{Run: 0xbeef}, buf)
					buf[bit/8] ^= 0x80 >> (bit % 8)
					if good := c.Class == ClassGood; good != uncovered(s.Stack, bit) {
						t.Errorf("%v, size %d, byte %d (IP %d), bit %d: %v %v", s.Stack, size, bit/8,
							bit/8-s.Stack.l3(), bit%8, c.Class, c.Reason)
					}
				}
			}
		}
	}
}

// TestGopacketFrameVerifies: a frame made elsewhere, with our tag in it.
func TestGopacketFrameVerifies(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for _, short := range []bool{false, true} {
			st := testStream(t, "64", v6, 0).Stack
			eth := &layers.Ethernet{SrcMAC: st.SrcMAC[:], DstMAC: st.DstMAC[:], EthernetType: layers.EthernetTypeIPv4}
			udp := &layers.UDP{SrcPort: 49184, DstPort: 7777}
			ip4 := &layers.IPv4{Version: 4, Id: 777, TTL: 3, Protocol: layers.IPProtocolUDP,
				SrcIP: st.Src.AsSlice(), DstIP: st.Dst.AsSlice()}
			ip6 := &layers.IPv6{Version: 6, HopLimit: 3, NextHeader: layers.IPProtocolUDP,
				SrcIP: st.Src.AsSlice(), DstIP: st.Dst.AsSlice()}
			ip := gopacket.SerializableLayer(ip4)
			if v6 {
				ip, eth.EthernetType = ip6, layers.EthernetTypeIPv6
				_ = udp.SetNetworkLayerForChecksum(ip6)
			} else {
				_ = udp.SetNetworkLayerForChecksum(ip4)
			}
			addr := append(st.Src.AsSlice(), st.Dst.AsSlice()...)
			addr = binary.BigEndian.AppendUint16(addr, 49184)
			addr = binary.BigEndian.AppendUint16(addr, 7777)
			tag := Tag{Run: 0xab12, Space: Space{15, 12}, Seq: 0xfedcba98}
			payload := AppendTag([]byte{0, 1, 2, 3, 4, 5, 6}, tag, short, addr)
			out, opt := gopacket.NewSerializeBuffer(), gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
			if err := gopacket.SerializeLayers(out, opt, eth, ip, udp, gopacket.Payload(payload)); err != nil {
				t.Fatal(err)
			}
			buf := out.Bytes()
			for len(buf) < minBuffer { // padding, as on the wire
				buf = append(buf, 0xee)
			}
			c := check(CheckerConfig{Run: 0xab12, PayloadCheck: true}, buf)
			if short {
				tag.Flags = FlagShort
			}
			if c.Class != ClassGood || c.Short != short || c.Tag != tag {
				t.Errorf("ipv6 %v, short %v: %+v %v, want good %+v", v6, short, c, c.Reason, tag)
			}
		}
	}
}

// edit gives a frame changed by f, with its checksums made right again or not.
func edit(t *testing.T, s Stream, fix bool, f func(b []byte, ip int) []byte) []byte {
	ip := s.Stack.l3()
	b := f(oneFrame(t, s, 7), ip)
	if fix {
		l4 := s.Stack.headers() - udpBytes
		if !s.Stack.v6() {
			b[ip+10], b[ip+11] = 0, 0
			binary.BigEndian.PutUint16(b[ip+10:], ^plainSum(b[ip:l4]))
		}
		b[l4+6], b[l4+7] = 0, 0
		addr := map[bool]int{false: 12, true: 8}[s.Stack.v6()]
		end := l4 + int(binary.BigEndian.Uint16(b[l4+4:]))
		pseudo := append([]byte{0, 17, b[l4+4], b[l4+5]}, b[ip+addr:end]...)
		binary.BigEndian.PutUint16(b[l4+6:], ^plainSum(pseudo))
	}
	return b
}

func set(at int, v ...byte) func([]byte, int) []byte {
	return func(b []byte, ip int) []byte { copy(b[ip+at:], v); return b }
}

var classCases = []struct {
	name       string
	v6, fix    bool
	edit       func(b []byte, ip int) []byte
	class      Class
	reason     Reason
	identified bool
}{
	{"untouched", false, false, set(0), ClassGood, ReasonNone, false},
	{"hop limit", true, false, set(7, 9), ClassGood, ReasonNone, false},
	{"TTL, as a router does", false, true, set(8, 9), ClassGood, ReasonNone, false},
	{"TTL without checksum", false, false, set(8, 9), ClassCorrupt, ReasonL3, true},
	{"payload", false, false, set(40, 0xff), ClassCorrupt, ReasonL4, true},
	{"payload, checksum right", false, true, set(40, 0xff), ClassCorrupt, ReasonPattern, true},
	{"no UDP checksum", false, false, set(26, 0, 0), ClassCorrupt, ReasonL4, true},
	{"sequence number", false, false, set(82+8, 1), ClassCorrupt, ReasonTag, false},
	{"port, checksum right", false, true, set(20, 1, 1), ClassCorrupt, ReasonTag, false},
	{"magic", false, true, set(82, 0), ClassUntagged, ReasonNoTag, false},
	{"another's magic by chance", false, true, set(82+2, 1, 2, 3), ClassUntagged, ReasonNoTag, false},
	{"UDP length", false, false, set(24, 0, 93), ClassCorrupt, ReasonLength, true},
	{"IPv4 length", false, false, set(2, 0, 60), ClassCorrupt, ReasonLength, true},
	{"IPv6 length", true, false, set(4, 0, 60), ClassCorrupt, ReasonLength, true},
	{"IPv4 length beyond the end", false, false, set(2, 9), ClassCorrupt, ReasonLength, true},
	{"bytes after the packet", false, false,
		func(b []byte, _ int) []byte { return append(b, 1, 2, 3, 4) }, ClassCorrupt, ReasonLength, true},
	{"cut", false, false, func(b []byte, _ int) []byte { return b[:len(b)-1] }, ClassUnreadable, ReasonLength, false},
	{"cut in the IPv4 header", false, false, func(b []byte, ip int) []byte { return b[:ip+19] }, ClassUnreadable, ReasonLength, false},
	{"cut in the IPv6 header", true, false, func(b []byte, ip int) []byte { return b[:ip+39] }, ClassUnreadable, ReasonLength, false},
	{"runt", false, false, func(b []byte, _ int) []byte { return b[:13] }, ClassUnreadable, ReasonLength, false},
	{"empty", false, false, func([]byte, int) []byte { return nil }, ClassUnreadable, ReasonLength, false},
	{"version", false, false, set(0, 0x65), ClassCorrupt, ReasonL3, true},
	{"version, no tag", false, false, func(b []byte, ip int) []byte { b[ip] = 0x65; return b[:100] }, ClassUnreadable, ReasonHeader, false},
	{"IPv6 version, no tag", true, false, func(b []byte, ip int) []byte { b[ip] = 0x45; return b[:100] }, ClassUnreadable, ReasonHeader, false},
	{"protocol", false, false, set(9, 6), ClassCorrupt, ReasonL3, true},
	{"next header", true, false, set(6, 6), ClassCorrupt, ReasonL3, true},
	{"TCP", false, false, func(b []byte, ip int) []byte { b[ip+9] = 6; b[len(b)-1]++; return b }, ClassUntagged, ReasonNotUDP, false},
	{"ICMPv6", true, false, func(b []byte, ip int) []byte { b[ip+6] = 58; b[len(b)-1]++; return b }, ClassUntagged, ReasonNotUDP, false},
	{"IPv4 options", false, false, func(b []byte, ip int) []byte { b[ip] = 0x46; b[len(b)-1]++; return b }, ClassUntagged, ReasonNotUDP, false},
	{"first fragment", false, false, func(b []byte, ip int) []byte { b[ip+6] = 0x20; b[len(b)-1]++; return b }, ClassUnreadable, ReasonFragment, false},
	{"later fragment", false, false, func(b []byte, ip int) []byte { b[ip+7] = 1; b[len(b)-1]++; return b }, ClassUnreadable, ReasonFragment, false},
	{"IPv6 fragment", true, false, func(b []byte, ip int) []byte { b[ip+6] = 44; b[len(b)-1]++; return b }, ClassUnreadable, ReasonFragment, false},
	{"ARP", false, false, set(-2, 8, 6), ClassUntagged, ReasonNotIP, false},
}

func TestClasses(t *testing.T) {
	for _, c := range classCases {
		size := "118"
		if c.v6 {
			size = "138"
		}
		s := testStream(t, size, c.v6, 0)
		got := check(CheckerConfig{Run: 7, PayloadCheck: true}, edit(t, s, c.fix, c.edit))
		if got.Class != c.class || got.Reason != c.reason || got.Identified != c.identified {
			t.Errorf("%s: %v, %q, identified %v; want %v, %q, %v", c.name, got.Class, got.Reason,
				got.Identified, c.class, c.reason, c.identified)
		}
		if want := (Tag{Run: 7, Space: Space{0, 3}, TimeNs: 1 << 30, Flags: FlagStamp}); c.identified && got.Tag != want {
			t.Errorf("%s: tag %+v, want %+v", c.name, got.Tag, want)
		}
		if got.Class.String() == "class?" || got.Reason.String() == "reason?" {
			t.Errorf("%s: class or reason has no name", c.name)
		}
	}
}

// TestNoMagicNoTag: zeros with a right check are no tag, to a Checker that has
// seen none yet either.
func TestNoMagicNoTag(t *testing.T) {
	b := edit(t, testStream(t, "64", false, 0), true, func(b []byte, ip int) []byte {
		tag := b[len(b)-LongTagBytes:]
		clear(tag)
		binary.BigEndian.PutUint16(tag[16:], crcPlain(crcPlain(0xffff, b[ip+12:ip+24]), tag))
		return b
	})
	if c := check(CheckerConfig{}, b); c.Class != ClassUntagged {
		t.Errorf("%v %v", c.Class, c.Reason)
	}
}

func TestVLANEnds(t *testing.T) {
	three := []byte{0: 1, 12: 0x81, 16: 0x88, 17: 0xa8, 20: 0x81, 30: 0}
	for n, want := range map[int]Reason{31: ReasonNotIP, 23: ReasonLength, 15: ReasonLength} {
		if c := check(CheckerConfig{}, three[:n]); c.Reason != want {
			t.Errorf("three VLAN tags in %d bytes: %v %q, want %q", n, c.Class, c.Reason, want)
		}
	}
}

func TestPatternOnlyWhenAsked(t *testing.T) {
	b := edit(t, testStream(t, "9000", false, 0), true, func(b []byte, _ int) []byte { b[8000] ^= 1; return b })
	if c := check(CheckerConfig{Run: 7}, b); c.Class != ClassGood {
		t.Errorf("without: %v %v", c.Class, c.Reason)
	}
	if c := check(CheckerConfig{Run: 7, PayloadCheck: true}, b); c.Reason != ReasonPattern {
		t.Errorf("with: %v %v", c.Class, c.Reason)
	}
}

func TestRuns(t *testing.T) {
	long, short := testStream(t, "64", false, 0), testStream(t, "64", false, 1)
	for _, c := range []struct {
		s    Stream
		run  Run
		want Class
	}{
		{long, 0x1234, ClassGood}, {long, 0x1235, ClassOtherRun}, {long, 0x5634, ClassOtherRun},
		{short, 0x1234, ClassGood}, {short, 0x1235, ClassOtherRun}, {short, 0x5634, ClassGood},
	} {
		got := check(CheckerConfig{Run: 0x1234}, oneFrame(t, c.s, c.run))
		if got.Class != c.want {
			t.Errorf("run %#04x, %v: %v, want %v", c.run, c.s.Stack, got.Class, c.want)
		}
		if got.Class == ClassGood && got.Tag.Run != 0x1234 {
			t.Errorf("run %#04x, %v: reads %#04x", c.run, c.s.Stack, got.Tag.Run)
		}
	}
}

type adoptStep struct {
	queue int
	b     []byte
	want  Class
	known Run
}

func TestAdoption(t *testing.T) {
	long, short := testStream(t, "64", false, 0), testStream(t, "64", false, 1)
	end := func(run Run) []byte {
		w := mustWriter(t, WriterConfig{Stream: long, Run: run})
		b := make([]byte, w.MaxLen())
		return b[:w.End(b, 5, 0)]
	}
	bad := oneFrame(t, long, 0x1234)
	bad[24] ^= 1
	for name, steps := range map[string][]adoptStep{
		"long": {
			{0, end(0x9999), ClassOtherRun, 0},
			{0, bad, ClassOtherRun, 0},
			{0, oneFrame(t, long, 0x1234), ClassGood, 0xffff},
			{1, bad, ClassCorrupt, 0xffff},
			{1, oneFrame(t, long, 0x1134), ClassOtherRun, 0xffff},
			{2, end(0x1234), ClassEnd, 0xffff},
			{2, end(0x9999), ClassOtherRun, 0xffff},
		},
		"short, then its END": {
			{0, oneFrame(t, short, 0x1234), ClassGood, 0xff},
			{1, oneFrame(t, short, 0x1235), ClassOtherRun, 0xff},
			{2, bad, ClassCorrupt, 0xff},
			{1, end(0x1234), ClassEnd, 0xffff},
			{0, oneFrame(t, short, 0x1234), ClassGood, 0xffff},
			{0, end(0x1134), ClassOtherRun, 0xffff},
			{0, oneFrame(t, long, 0x1234), ClassGood, 0xffff},
		},
	} {
		followAdoption(t, name, steps)
	}
}

func followAdoption(t *testing.T, name string, steps []adoptStep) {
	var a Adoption
	var queues [3]*Checker
	for i := range queues {
		queues[i] = NewChecker(CheckerConfig{Adopt: &a})
	}
	for i, s := range steps {
		var c Checked
		queues[s.queue].Check(s.b, &c)
		if _, known := a.Run(); c.Class != s.want || known != s.known {
			t.Errorf("%s, step %d: %v %v, known %#04x; want %v, %#04x", name, i, c.Class, c.Reason, known, s.want, s.known)
		}
	}
}

// FuzzCheck: no bytes make Check panic or read as good without being so by the
// plain rules; the quick way and the step by step one never differ; a flipped
// bit of a good frame is not good.
func FuzzCheck(f *testing.F) {
	for _, v6 := range []bool{false, true} {
		for vlans := range 3 {
			long, short := LeastFrame(testStream(f, "64", v6, vlans).Stack)
			f.Add(oneFrame(f, testStream(f, fmt.Sprint(short), v6, vlans), 7), uint16(3))
			f.Add(oneFrame(f, testStream(f, fmt.Sprint(long+5), v6, vlans), 7), uint16(300))
		}
	}
	quick, steps := NewChecker(CheckerConfig{Run: 7}), NewChecker(CheckerConfig{Run: 7})
	f.Fuzz(func(t *testing.T, b []byte, bit uint16) {
		var c, d Checked
		quick.Check(b, &c)
		if len(b) < etherBytes {
			return
		}
		l3, kind := etherBytes, binary.BigEndian.Uint16(b[12:])
		for n := 0; n < 2 && (kind == typeVLAN || kind == typeSVLAN) && len(b) >= l3+4; n++ {
			kind = binary.BigEndian.Uint16(b[l3+2:])
			l3 += 4
		}
		if steps.judge(b, l3, kind, &d); c != d {
			t.Fatalf("quick %+v %v, step by step %+v %v", c, c.Reason, d, d.Reason)
		}
		if c.Class != ClassGood || int(bit) >= 8*len(b) || !plainlyOurs(b) {
			return
		}
		st := Stack{VLANs: make([]VLAN, (l3-etherBytes)/4), Src: testStream(t, "64", kind == typeIPv6, 0).Stack.Src}
		b[bit/8] ^= 0x80 >> (bit % 8)
		if quick.Check(b, &d); d.Class == ClassGood && !uncovered(st, int(bit)) {
			t.Fatalf("bit %d of byte %d flipped: still good: % x", bit%8, bit/8, b)
		}
	})
}

// plainlyOurs leaves out padded frames: padding is not covered.
func plainlyOurs(b []byte) bool {
	d := gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.DecodeOptions{Lazy: true, NoCopy: true})
	u, ok := d.Layer(layers.LayerTypeUDP).(*layers.UDP)
	return ok && len(u.Payload) > 0 && &u.Payload[len(u.Payload)-1] == &b[len(b)-1]
}
