package frame

import (
	"net/netip"
	"testing"

	"linerate/internal/wire"
)

// testStream is a stream with vlans VLAN tags and the default addresses.
func testStream(t testing.TB, sizes string, v6 bool, vlans int) Stream {
	t.Helper()
	z, err := wire.ParseSizes(sizes)
	if err != nil {
		t.Fatal(err)
	}
	st := Stack{
		SrcMAC: [6]byte{2, 0, 0, 0, 0, 1}, DstMAC: [6]byte{2, 0, 0, 0, 0, 2},
		Src: netip.MustParseAddr("198.18.0.1"), Dst: netip.MustParseAddr("198.18.0.2"),
		SrcPort: 49184, DstPort: 7777, DSCP: 46,
	}
	if v6 {
		st.Src, st.Dst = netip.MustParseAddr("2001:2::1"), netip.MustParseAddr("2001:2::2")
	}
	for i := range vlans {
		st.VLANs = append(st.VLANs, VLAN{ID: uint16(100 + i), PCP: uint8(i)})
	}
	return Stream{ID: 3, Stack: st, Sizes: z}
}

func mustWriter(t testing.TB, c WriterConfig) *Writer {
	t.Helper()
	w, err := NewWriter(c)
	if err != nil {
		t.Fatal(err)
	}
	return w
}
