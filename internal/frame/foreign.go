package frame

import (
	"encoding/binary"
	"math/bits"
)

// Generator is another program whose sequence numbers a receiver can read.
type Generator string

// Pktgen is the kernel's packet generator (net/core/pktgen.c at v6.18).
const Pktgen Generator = "pktgen"

const (
	// pktgenMagic and pktgenBytes: struct pktgen_hdr, right behind the UDP header:
	// magic, sequence, seconds, microseconds, each of 32 bits, big endian.
	pktgenMagic = 0xbe9be955
	pktgenBytes = 16
	// pktgenFirst is the number of a device's first frame.
	pktgenFirst = 1
)

// CheckPktgen is Check for frames of the kernel's pktgen: a good one has its
// number, from 0 on, of 32 bits as the short tag's is, in the space of worker 0
// and stream 0. pktgen sends a frame again with the same number where clone_skb
// or burst is above its least: those are duplicates. Its UDP checksum is 0
// unless UDPCSUM is set, and then nothing protects the payload.
func (c *Checker) CheckPktgen(buf []byte, out *Checked) {
	*out = Checked{}
	if len(buf) < etherBytes {
		out.Class, out.Reason = ClassUnreadable, ReasonLength
		return
	}
	l3, kind := etherBytes, binary.BigEndian.Uint16(buf[12:])
	for n := 0; n < 2 && (kind == typeVLAN || kind == typeSVLAN) && len(buf) >= l3+vlanBytes; n++ {
		kind = binary.BigEndian.Uint16(buf[l3+2:])
		l3 += vlanBytes
	}
	var p packet
	switch kind {
	case typeIPv4:
		out.Class, out.Reason = readIPv4(buf, l3, &p)
	case typeIPv6:
		out.Class, out.Reason = readIPv6(buf, l3, &p)
	default:
		out.Class, out.Reason = ClassUntagged, ReasonNotIP
	}
	if out.Reason == ReasonNone {
		readPktgen(buf, &p, out)
	}
}

// readPktgen judges a UDP datagram.
func readPktgen(buf []byte, p *packet, out *Checked) {
	body := buf[p.l4+udpBytes : p.end]
	if len(body) < pktgenBytes || binary.BigEndian.Uint32(body) != pktgenMagic {
		out.Class, out.Reason = ClassUntagged, ReasonNoTag
		return
	}
	udp := buf[p.l4:]
	udpLen := binary.BigEndian.Uint16(udp[4:])
	switch {
	case int(udpLen) != p.end-p.l4:
		out.Class, out.Reason = ClassCorrupt, ReasonLength
	case !p.l3ok:
		out.Class, out.Reason = ClassCorrupt, ReasonL3
	case (udp[6] != 0 || udp[7] != 0) && fold(sumLE(uint64(bits.ReverseBytes16(udpLen))+protoUDP<<8, buf[p.addr:p.end])) != 0xffff:
		out.Class, out.Reason = ClassCorrupt, ReasonL4
	default:
		out.Short = true
		out.Tag.Seq = uint64(binary.BigEndian.Uint32(body[4:]) - pktgenFirst)
	}
}
