package frame

import (
	"encoding/binary"
	"net/netip"
)

// EachFlow calls f with the addresses and ports of each flow of the stream, in
// order, until f says no. A stream that is not valid has none.
func (s Stream) EachFlow(f func(src, dst netip.AddrPort) bool) {
	a, err := s.plan()
	if err != nil {
		return
	}
	n := addrLen(a.v6)
	size := (n - 4) / 2
	for k := range a.count {
		fl := a.flow(k, 0, 0)
		src, _ := netip.AddrFromSlice(fl.addr[:size])
		dst, _ := netip.AddrFromSlice(fl.addr[size : 2*size])
		ports := fl.addr[n-4 : n]
		if !f(netip.AddrPortFrom(src, binary.BigEndian.Uint16(ports)), netip.AddrPortFrom(dst, binary.BigEndian.Uint16(ports[2:]))) {
			return
		}
	}
}
