package frame

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"linerate/internal/wire"
)

// Lengths of headers, in bytes.
const (
	etherBytes = 14
	vlanBytes  = 4
	ipv4Bytes  = 20
	ipv6Bytes  = 40
	udpBytes   = 8
	maxHeader  = etherBytes + 2*vlanBytes + ipv6Bytes + udpBytes
)

const (
	typeIPv4  = 0x0800
	typeIPv6  = 0x86dd
	typeVLAN  = 0x8100 // 802.1Q customer tag
	typeSVLAN = 0x88a8 // 802.1ad service tag
	protoUDP  = 17
	protoFrag = 44
)

// VLAN is one 802.1Q tag. TPID 0 means 0x8100, or 0x88a8 for the outer of two;
// no other values than these two are sent or understood.
type VLAN struct {
	TPID uint16
	ID   uint16 // 0..4094; 0 is a priority tag
	PCP  uint8  // 0..7
}

// Stack is the headers of a stream's frames: Ethernet, up to two VLAN tags
// (outermost first), IPv4 or IPv6, UDP. TTL 0 means 64. IPv4 frames carry
// identification 0 and "do not fragment" (an atomic datagram, RFC 6864).
type Stack struct {
	SrcMAC, DstMAC   [6]byte
	VLANs            []VLAN
	Src, Dst         netip.Addr
	SrcPort, DstPort uint16
	TTL, DSCP        uint8
}

// String names the layers: "ipv4/udp", "vlan/vlan/ipv6/udp".
func (st Stack) String() string {
	ip := "ipv4/udp"
	if st.v6() {
		ip = "ipv6/udp"
	}
	return strings.Repeat("vlan/", len(st.VLANs)) + ip
}

func (st Stack) v6() bool { return st.Src.Unmap().Is6() }

func (st Stack) l3() int { return etherBytes + vlanBytes*len(st.VLANs) }

// headers is the length of all headers: the offset of the L4 payload.
func (st Stack) headers() int {
	if st.v6() {
		return st.l3() + ipv6Bytes + udpBytes
	}
	return st.l3() + ipv4Bytes + udpBytes
}

// LeastFrame gives the least frame that carries the long and the short tag
// under these headers, never under 64.
func LeastFrame(st Stack) (long, short wire.FrameLen) {
	n := wire.BufLen(st.headers())
	return max((n + LongTagBytes).Frame(), wire.MinFrame),
		max((n + ShortTagBytes).Frame(), wire.MinFrame)
}

func (st Stack) validate() error {
	switch {
	case !st.Src.IsValid():
		return &FieldError{"source address", "", "missing"}
	case !st.Dst.IsValid():
		return &FieldError{"destination address", "", "missing"}
	case st.Src.Zone() != "" || st.Dst.Zone() != "":
		return &FieldError{"addresses", pair(st.Src, st.Dst), "a zone is not sent in a frame"}
	case st.Src.Unmap().Is4() != st.Dst.Unmap().Is4():
		return &FieldError{"addresses", pair(st.Src, st.Dst), "one is IPv4, the other IPv6"}
	case st.DSCP > 63:
		return &LimitError{"DSCP", uint64(st.DSCP), 63, "6 bits in the IP header"}
	case len(st.VLANs) > 2:
		return &LimitError{"VLAN tags", uint64(len(st.VLANs)), 2, "outer and inner"}
	}
	for _, v := range st.VLANs {
		if v.ID > 4094 {
			return &LimitError{"VLAN", uint64(v.ID), 4094, "802.1Q reserves 4095"}
		}
		if v.PCP > 7 {
			return &LimitError{"VLAN priority", uint64(v.PCP), 7, "3 bits in 802.1Q"}
		}
		if v.TPID != 0 && v.TPID != typeVLAN && v.TPID != typeSVLAN {
			return &FieldError{"VLAN type", fmt.Sprintf("%#04x", v.TPID), "neither 0x8100 nor 0x88a8"}
		}
	}
	return nil
}

func pair(a, b netip.Addr) string { return a.String() + ", " + b.String() }

// template writes the headers with addresses, ports, lengths and checksums
// left 0: those depend on the flow and on the size.
func (st Stack) template() []byte {
	h := make([]byte, 12, maxHeader)
	for i, v := range st.VLANs {
		tpid := v.TPID
		if tpid == 0 {
			tpid = typeVLAN
			if i == 0 && len(st.VLANs) == 2 {
				tpid = typeSVLAN
			}
		}
		h = binary.BigEndian.AppendUint16(h, tpid)
		h = binary.BigEndian.AppendUint16(h, uint16(v.PCP)<<13|v.ID)
	}
	ttl := st.TTL
	if ttl == 0 {
		ttl = 64
	}
	if st.v6() {
		h = binary.BigEndian.AppendUint16(h, typeIPv6)
		h = append(h, 0x60|st.DSCP>>2, st.DSCP<<6, 0, 0, 0, 0, protoUDP, ttl)
		return append(h, make([]byte, 32+udpBytes)...)
	}
	h = binary.BigEndian.AppendUint16(h, typeIPv4)
	h = append(h, 0x45, st.DSCP<<2, 0, 0, 0, 0, 0x40, 0, ttl, protoUDP)
	return append(h, make([]byte, 2+8+udpBytes)...)
}
