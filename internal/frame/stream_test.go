package frame

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgregory.net/rapid"

	"linerate/internal/wire"
)

func TestLeastFrame(t *testing.T) {
	for _, c := range []struct {
		v6          bool
		vlans       int
		long, short wire.FrameLen
	}{
		{false, 0, 64, 64}, {false, 1, 68, 64}, {false, 2, 72, 64},
		{true, 0, 84, 76}, {true, 1, 88, 80}, {true, 2, 92, 84},
	} {
		long, short := LeastFrame(testStream(t, "64", c.v6, c.vlans).Stack)
		if long != c.long || short != c.short {
			t.Errorf("ipv6 %v, %d tags: %d and %d, want %d and %d", c.v6, c.vlans, long, short, c.long, c.short)
		}
	}
}

var addr = netip.MustParseAddr

var invalidStreams = []struct {
	name, sizes string
	v6          bool
	vlans       int
	change      func(*Stream)
	want        error // its type, and its text without the prefix
}{
	{"plain", "64", false, 0, func(*Stream) {}, nil},
	{"short tag", "64", false, 1, func(*Stream) {}, nil},
	{"short tag, stream 16", "64", false, 1, func(s *Stream) { s.ID = 16 }, &LeastError{64, 68, "vlan/ipv4/udp", false}},
	{"IPv6 at 75", "75", true, 0, func(*Stream) {}, &LeastError{75, 76, "ipv6/udp", true}},
	{"IPv6 at 83, stream 16", "1518,83", true, 0, func(s *Stream) { s.ID = 16 }, &LeastError{83, 84, "ipv6/udp", false}},
	{"no sizes", "64", false, 0, func(s *Stream) { s.Sizes = wire.Sizes{} }, &FieldError{"frame sizes", "", "none given"}},
	{"stream 4096", "64", false, 0, func(s *Stream) { s.ID = 4096 }, &LimitError{"stream", 4096, 4095, "12 bits in the tag"}},
	{"three tags", "128", false, 3, func(*Stream) {}, &LimitError{"VLAN tags", 3, 2, "outer and inner"}},
	{"VLAN 4095", "68", false, 1, func(s *Stream) { s.Stack.VLANs[0].ID = 4095 }, &LimitError{"VLAN", 4095, 4094, "802.1Q reserves 4095"}},
	{"priority 8", "68", false, 1, func(s *Stream) { s.Stack.VLANs[0].PCP = 8 }, &LimitError{"VLAN priority", 8, 7, "3 bits in 802.1Q"}},
	{"VLAN type", "68", false, 1, func(s *Stream) { s.Stack.VLANs[0].TPID = 0x9100 }, &FieldError{"VLAN type", "0x9100", "neither 0x8100 nor 0x88a8"}},
	{"DSCP", "64", false, 0, func(s *Stream) { s.Stack.DSCP = 64 }, &LimitError{"DSCP", 64, 63, "6 bits in the IP header"}},
	{"no source", "64", false, 0, func(s *Stream) { s.Stack.Src = netip.Addr{} }, &FieldError{"source address", "", "missing"}},
	{"no destination", "64", false, 0, func(s *Stream) { s.Stack.Dst = netip.Addr{} }, &FieldError{"destination address", "", "missing"}},
	{"mixed", "128", false, 0, func(s *Stream) { s.Stack.Dst = addr("2001:2::2") },
		&FieldError{"addresses", "198.18.0.1, 2001:2::2", "one is IPv4, the other IPv6"}},
	{"zone", "128", true, 0, func(s *Stream) { s.Stack.Dst = addr("fe80::1%x") },
		&FieldError{"addresses", "2001:2::1, fe80::1%x", "a zone is not sent in a frame"}},
	{"ports turned round", "64", false, 0, func(s *Stream) { s.Flows.DstPorts = PortRange{9, 8} },
		&FieldError{"destination ports", "9-8", "the end is under the start"}},
	{"addresses turned round", "64", false, 0, func(s *Stream) { s.Flows.SrcAddrs = AddrRange{addr("10.0.0.2"), addr("10.0.0.1")} },
		&FieldError{"source addresses", "10.0.0.2-10.0.0.1", "the end is under the start"}},
	{"half a range", "64", false, 0, func(s *Stream) { s.Flows.SrcAddrs.Lo = addr("10.0.0.2") },
		&FieldError{"source addresses", "10.0.0.2-invalid IP", "one end is missing"}},
	{"range of the other family", "64", false, 0, func(s *Stream) { s.Flows.DstAddrs = AddrRange{addr("2001::1"), addr("2001::2")} },
		&FieldError{"destination addresses", "2001::1-2001::2", "IPv4 and IPv6 are mixed"}},
	{"MACs turned round", "64", false, 0, func(s *Stream) { s.Flows.DstMACs = MACRange{[6]byte{2}, [6]byte{1}} },
		&FieldError{"destination MACs", "020000000000-010000000000", "the end is under the start"}},
	{"more flows than there are", "64", false, 0, func(s *Stream) { s.Flows = Flows{DstPorts: PortRange{1, 3}, Count: 4} },
		&LimitError{"flows", 4, 3, "combinations of the ranges"}},
	{"too many flows", "84", true, 0, func(s *Stream) { s.Flows.DstAddrs = AddrRange{addr("::"), addr("ffff::")} },
		&LimitError{"flows", 1 << 63, MaxFlows, "size of the flow table"}},
	{"ports run out", "64", false, 0, func(s *Stream) { s.Flows.Count = 20000 },
		&LimitError{"flows", 20000, 16352, "source ports from 49184 up; give ranges of ports or addresses for more"}},
	{"negative", "64", false, 0, func(s *Stream) { s.Flows.Count = -1 }, &FieldError{"flows", "-1", "negative"}},
}

func TestValidate(t *testing.T) {
	for _, c := range invalidStreams {
		s := testStream(t, c.sizes, c.v6, c.vlans)
		c.change(&s)
		err := s.Validate()
		if c.want == nil {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if got := errors.Unwrap(err); !cmp.Equal(got, c.want) {
			t.Errorf("%s:\n got %v\nwant %v", c.name, err, c.want)
		} else if want := fmt.Sprintf("validate stream %d: %v", s.ID, c.want); err.Error() != want {
			t.Errorf("%s: %q, want %q", c.name, err, want)
		}
		if _, err := NewWriter(WriterConfig{Stream: s}); err == nil {
			t.Errorf("%s: NewWriter takes it", c.name)
		}
	}
}

func TestLeastErrorNamesTheLeast(t *testing.T) {
	err := testStream(t, "70", true, 0).Validate()
	want := "validate stream 3: frame size 70: the least for ipv6/udp with its short tag is 76 bytes, FCS included"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
}

func TestWriterShare(t *testing.T) {
	for _, c := range []WriterConfig{
		{Workers: 17}, {Workers: 2, Worker: 2}, {Worker: 1}, {Workers: -1}, {Stride: -1}, {FirstFlow: -1}, {StampEvery: -1},
	} {
		c.Stream = testStream(t, "64", false, 0)
		_, err := NewWriter(c)
		var limit *LimitError
		var field *FieldError
		if !errors.As(err, &limit) && !errors.As(err, &field) {
			t.Errorf("workers %d, worker %d, first %d, stride %d: %v", c.Workers, c.Worker, c.FirstFlow, c.Stride, err)
		}
	}
}

// further is n addresses on, over a carry.
func further(a netip.Addr, n int) netip.Addr {
	for range n {
		a = a.Next()
	}
	return a
}

// TestFlowsAreDistinct: any Count of flows, over ranges of any kind.
func TestFlowsAreDistinct(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		v6 := rapid.Bool().Draw(r, "v6")
		st := testStream(t, "128", v6, 0).Stack
		lo := netip.MustParseAddr("10.255.255.254")
		if v6 {
			lo = netip.MustParseAddr("2001:2::ffff:ffff:ffff:fffe")
		}
		wide := [4]int{}
		all := 1
		for i := range wide {
			wide[i] = rapid.IntRange(0, 4).Draw(r, "width")
			all *= wide[i] + 1
		}
		f := Flows{
			DstPorts: PortRange{100, 100 + uint16(wide[0])},
			SrcAddrs: AddrRange{lo, further(lo, wide[1])}, DstAddrs: AddrRange{lo, further(lo, wide[2])},
			DstMACs: MACRange{Lo: [6]byte{2, 0, 0, 0xff, 0xff, 0xfe}},
		}
		f.DstMACs.Hi = [6]byte(macBytes(macNumber(f.DstMACs.Lo) + uint64(wide[3])))
		f.Count = rapid.IntRange(0, all).Draw(r, "count")
		a, err := newAxes(st, f)
		if err != nil {
			r.Fatal(err)
		}
		want := f.Count
		if want == 0 {
			want = all
		}
		seen := map[[48]byte]bool{}
		for k := range a.count {
			x := a.flow(k, 0, 0)
			seen[[48]byte(append(x.mac[:], x.addr[:]...))] = true
		}
		if len(seen) != want {
			r.Fatalf("%d distinct flows, want %d", len(seen), want)
		}
	})
}

func TestAddressesCarry(t *testing.T) {
	for _, c := range []struct {
		v6       bool
		lo, want string
	}{
		{false, "10.0.255.254", "10.1.0.1"},
		{true, "2001:2:0:7:ffff:ffff:ffff:fffe", "2001:2:0:8::1"},
	} {
		st := testStream(t, "128", c.v6, 0).Stack
		a, err := newAxes(st, Flows{SrcAddrs: AddrRange{addr(c.lo), addr(c.want)}})
		if err != nil || a.count != 4 {
			t.Fatalf("%s: %d flows, %v", c.lo, a.count, err)
		}
		f := a.flow(3, 0, 0)
		want := addr(c.want).AsSlice()
		if got := f.addr[:len(want)]; string(got) != string(want) {
			t.Errorf("%s + 3 is % x, want %s", c.lo, got, c.want)
		}
	}
}

func macBytes(m uint64) []byte {
	b := make([]byte, 6)
	putMAC(b, m)
	return b
}

func TestDescribe(t *testing.T) {
	s := testStream(t, "64-128", false, 1)
	s.Flows.Count, s.PayloadCheck = 1000, true
	want := "stream 3: vlan/ipv4/udp 198.18.0.1:49184 -> 198.18.0.2:7777, vlan 100, frame 64-128, 1000 flows, short tag, payload checked"
	if got := s.Describe(); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if got := testStream(t, "imix", true, 0).Describe(); !strings.HasPrefix(got, "stream 3: ipv6/udp [2001:2::1]:49184 -> [2001:2::2]:7777, frame imix") {
		t.Errorf("%s", got)
	}
}
