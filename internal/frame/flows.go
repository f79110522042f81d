package frame

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
)

// MaxFlows is the greatest number of flows of a stream: a worker keeps 64
// bytes for each of its own.
const MaxFlows = 1 << 20

// PortRange is the UDP ports Lo..Hi, both included. Both 0: the Stack's port.
type PortRange struct{ Lo, Hi uint16 }

// AddrRange is the addresses Lo..Hi, both included. Both unset: the Stack's.
type AddrRange struct{ Lo, Hi netip.Addr }

// MACRange is the addresses Lo..Hi, both included, counted as 48-bit numbers.
// Both 0: the Stack's.
type MACRange struct{ Lo, Hi [6]byte }

// Flows spreads a stream over distinct flows. Flow k takes its fields from the
// ranges in mixed radix: the source port moves fastest, then destination port,
// source and destination address, source and destination MAC. Count 0 means
// all combinations; Count > 1 with no range at all takes that many source
// ports from the Stack's upwards.
type Flows struct {
	SrcPorts, DstPorts PortRange
	SrcAddrs, DstAddrs AddrRange
	SrcMACs, DstMACs   MACRange
	Count              int
}

// span is a range counted from a start: n values.
type span struct {
	hi, lo uint64 // start, a 128-bit number
	n      uint64 // how many values, saturated
}

// at is the i-th value modulo the range, as a 128-bit number.
func (s span) at(i uint64) (hi, lo uint64) {
	lo, c := bits.Add64(s.lo, i, 0)
	return s.hi + c, lo
}

// axes is a Flows with its defaults filled in, fastest first: source port,
// destination port, source address, destination address, source MAC,
// destination MAC.
type axes struct {
	span  [6]span
	count uint64
	v6    bool
}

func newAxes(st Stack, f Flows) (axes, error) {
	if f.Count < 0 {
		return axes{}, &FieldError{"flows", fmt.Sprint(f.Count), "negative"}
	}
	if f.Count > 1 && (f == Flows{Count: f.Count}) {
		if last := int(st.SrcPort) + f.Count - 1; last > 0xffff {
			return axes{}, &LimitError{"flows", uint64(f.Count), uint64(0x10000 - int(st.SrcPort)),
				fmt.Sprintf("source ports from %d up; give ranges of ports or addresses for more", st.SrcPort)}
		}
		f.SrcPorts = PortRange{st.SrcPort, st.SrcPort + uint16(f.Count-1)}
	}
	a := axes{v6: st.v6()}
	var errs [6]error
	a.span[0], errs[0] = portSpan("source ports", f.SrcPorts, st.SrcPort)
	a.span[1], errs[1] = portSpan("destination ports", f.DstPorts, st.DstPort)
	a.span[2], errs[2] = addrSpan("source addresses", f.SrcAddrs, st.Src)
	a.span[3], errs[3] = addrSpan("destination addresses", f.DstAddrs, st.Dst)
	a.span[4], errs[4] = macSpan("source MACs", f.SrcMACs, st.SrcMAC)
	a.span[5], errs[5] = macSpan("destination MACs", f.DstMACs, st.DstMAC)
	all := uint64(1)
	for i, s := range a.span {
		if errs[i] != nil {
			return axes{}, errs[i]
		}
		over, product := bits.Mul64(all, s.n)
		if all = product; over != 0 {
			all = 1 << 63
		}
	}
	return a, a.setCount(uint64(f.Count), all)
}

func (a *axes) setCount(count, all uint64) error {
	if count > all {
		return &LimitError{"flows", count, all, "combinations of the ranges"}
	}
	if count == 0 {
		count = all
	}
	if count > MaxFlows {
		return &LimitError{"flows", count, MaxFlows, "size of the flow table"}
	}
	a.count = count
	return nil
}

func portSpan(field string, r PortRange, fixed uint16) (span, error) {
	if r == (PortRange{}) {
		return span{lo: uint64(fixed), n: 1}, nil
	}
	if r.Lo > r.Hi {
		return span{}, &FieldError{field, fmt.Sprintf("%d-%d", r.Lo, r.Hi), "the end is under the start"}
	}
	return span{lo: uint64(r.Lo), n: uint64(r.Hi-r.Lo) + 1}, nil
}

func addrSpan(field string, r AddrRange, fixed netip.Addr) (span, error) {
	if r == (AddrRange{}) {
		r = AddrRange{fixed, fixed}
	}
	text := fmt.Sprintf("%v-%v", r.Lo, r.Hi)
	lo, hi, is4 := r.Lo.Unmap(), r.Hi.Unmap(), fixed.Unmap().Is4()
	switch {
	case !lo.IsValid() || !hi.IsValid():
		return span{}, &FieldError{field, text, "one end is missing"}
	case lo.Zone() != "" || hi.Zone() != "":
		return span{}, &FieldError{field, text, "a zone is not sent in a frame"}
	case lo.Is4() != is4 || hi.Is4() != is4:
		return span{}, &FieldError{field, text, "IPv4 and IPv6 are mixed"}
	case hi.Less(lo):
		return span{}, &FieldError{field, text, "the end is under the start"}
	}
	h1, l1 := addrNumber(lo)
	h2, l2 := addrNumber(hi)
	n, borrow := bits.Sub64(l2, l1, 0)
	if h2-h1-borrow != 0 || n == ^uint64(0) {
		n = 1<<63 - 1
	}
	return span{hi: h1, lo: l1, n: n + 1}, nil
}

func macSpan(field string, r MACRange, fixed [6]byte) (span, error) {
	if r == (MACRange{}) {
		return span{lo: macNumber(fixed), n: 1}, nil
	}
	lo, hi := macNumber(r.Lo), macNumber(r.Hi)
	if lo > hi {
		return span{}, &FieldError{field, fmt.Sprintf("%x-%x", r.Lo, r.Hi), "the end is under the start"}
	}
	return span{lo: lo, n: hi - lo + 1}, nil
}

// addrNumber is the address as a 128-bit number; IPv4 in the low 32 bits.
func addrNumber(a netip.Addr) (hi, lo uint64) {
	if a.Is4() {
		b := a.As4()
		return 0, uint64(binary.BigEndian.Uint32(b[:]))
	}
	b := a.As16()
	return binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
}

func macNumber(m [6]byte) uint64 {
	return uint64(binary.BigEndian.Uint16(m[:]))<<32 | uint64(binary.BigEndian.Uint32(m[2:]))
}

// flow is what one flow puts into its frames.
type flow struct {
	mac         [12]byte // destination, source
	addr        [36]byte // source, destination, source port, destination port; 12 bytes for IPv4
	long, short uint16   // CRC state after addr, for each tag
	l3          uint16   // partial IPv4 header checksum: the addresses
	l4          uint16   // partial UDP checksum: addresses and ports
	_           [8]byte  // one cache line
}

// addrLen is the number of bytes of addr in use.
func addrLen(v6 bool) int {
	if v6 {
		return 36
	}
	return 12
}

// flow computes flow k. The CRC states include the tag's fixed part.
func (a *axes) flow(k uint64, fixedLong, fixedShort uint16) flow {
	var f flow
	var hi, lo [6]uint64
	for i, s := range a.span {
		hi[i], lo[i] = s.at(k % s.n)
		k /= s.n
	}
	putMAC(f.mac[0:6], lo[5])
	putMAC(f.mac[6:12], lo[4])
	n := addrLen(a.v6)
	if a.v6 {
		for i := range 2 {
			binary.BigEndian.PutUint64(f.addr[16*i:], hi[2+i])
			binary.BigEndian.PutUint64(f.addr[16*i+8:], lo[2+i])
		}
	} else {
		binary.BigEndian.PutUint32(f.addr[0:], uint32(lo[2]))
		binary.BigEndian.PutUint32(f.addr[4:], uint32(lo[3]))
	}
	binary.BigEndian.PutUint16(f.addr[n-4:], uint16(lo[0]))
	binary.BigEndian.PutUint16(f.addr[n-2:], uint16(lo[1]))
	f.long = crcFlow(f.addr[:n], LongTagBytes) ^ fixedLong
	f.short = crcFlow(f.addr[:n], ShortTagBytes) ^ fixedShort
	f.l3 = sumBE(f.addr[:n-4])
	f.l4 = sumBE(f.addr[:n])
	return f
}

func putMAC(b []byte, m uint64) {
	binary.BigEndian.PutUint16(b, uint16(m>>32))
	binary.BigEndian.PutUint32(b[2:], uint32(m))
}
