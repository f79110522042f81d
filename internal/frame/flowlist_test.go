package frame

import (
	"net/netip"
	"testing"

	"linerate/internal/wire"
)

func TestEachFlow(t *testing.T) {
	sizes, err := wire.ParseSizes("128")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ src, last, dst string }{{"10.0.0.1", "10.0.0.2", "10.0.1.9"}, {"fd00::1", "fd00::2", "fd01::9"}} {
		src, dst := netip.MustParseAddr(c.src), netip.MustParseAddr(c.dst)
		s := Stream{Stack: Stack{Src: src, Dst: dst, SrcPort: 5, DstPort: 6, TTL: 64}, Sizes: sizes,
			Flows: Flows{SrcPorts: PortRange{5, 6}, SrcAddrs: AddrRange{src, netip.MustParseAddr(c.last)}}}
		var got [][2]netip.AddrPort
		s.EachFlow(func(a, b netip.AddrPort) bool { got = append(got, [2]netip.AddrPort{a, b}); return true })
		if len(got) != 4 || len(got) != s.FlowCount() {
			t.Fatalf("%v", got)
		}
		if got[1] != [2]netip.AddrPort{netip.AddrPortFrom(src, 6), netip.AddrPortFrom(dst, 6)} || got[2][0] != netip.AddrPortFrom(netip.MustParseAddr(c.last), 5) {
			t.Errorf("%v", got)
		}
		n := 0
		s.EachFlow(func(netip.AddrPort, netip.AddrPort) bool { n++; return false })
		if n != 1 {
			t.Errorf("%d flows after no", n)
		}
	}
	Stream{}.EachFlow(func(netip.AddrPort, netip.AddrPort) bool {
		t.Error("a stream that is not valid has a flow")
		return false
	})
}
