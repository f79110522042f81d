package nettest

import "encoding/binary"

// where says where the parts of a frame lie, as offsets into it.
type where struct {
	udp        int // UDP header
	payload    int // UDP payload, up to end
	end        int
	tag, magic int // test tag and its two magic bytes; -1 if there is none
	tagLen     int
}

// Parts of the test tag that the box must find to damage them. Written down
// here again and not taken from the package under test.
const (
	longMagic, longTag   = 0x4c52, 18
	shortMagic, shortTag = 0x4c53, 10
)

const (
	etherIPv4, etherIPv6 = 0x0800, 0x86dd
	protoUDP             = 17
)

// locate finds the parts of an Ethernet frame with up to two VLAN tags, IPv4 or
// IPv6 without extension headers, and UDP to port. Anything else is not ok:
// it is none of the frames that rules count.
func locate(b []byte, port uint16) (w where, ok bool) {
	at, kind := 12, uint16(0)
	for range 3 {
		if len(b) < at+2 {
			return w, false
		}
		if kind = binary.BigEndian.Uint16(b[at:]); kind != 0x8100 && kind != 0x88a8 {
			break
		}
		at += 4
	}
	if w.udp, ok = afterIP(b, at+2, kind); !ok || len(b) < w.udp+8 {
		return w, false
	}
	size := int(binary.BigEndian.Uint16(b[w.udp+4:]))
	if binary.BigEndian.Uint16(b[w.udp+2:]) != port || size < 8 || w.udp+size > len(b) {
		return w, false
	}
	w.payload, w.end, w.tag, w.magic = w.udp+8, w.udp+size, -1, -1
	for _, t := range []struct {
		magic uint16
		size  int
	}{{longMagic, longTag}, {shortMagic, shortTag}} {
		if at := w.end - t.size; at >= w.payload && binary.BigEndian.Uint16(b[at:]) == t.magic {
			w.tag, w.magic, w.tagLen = at, at, t.size
			break
		}
	}
	return w, true
}

// afterIP gives the offset behind an IP header at offset at that carries UDP.
func afterIP(b []byte, at int, kind uint16) (int, bool) {
	switch kind {
	case etherIPv4:
		if len(b) < at+20 || b[at]>>4 != 4 || b[at+9] != protoUDP || binary.BigEndian.Uint16(b[at+6:])&0x1fff != 0 {
			return 0, false
		}
		size := int(b[at]&0xf) * 4
		return at + size, size >= 20 && len(b) >= at+size
	case etherIPv6:
		return at + 40, len(b) >= at+40 && b[at+6] == protoUDP
	}
	return 0, false
}
