package neighbor

import (
	"encoding/binary"
	"net/netip"
)

// allNodes is ff02::1, and allNodesMAC the address its frames go to (RFC 2464
// section 7).
var (
	allNodes    = [16]byte{0: 0xff, 1: 0x02, 15: 1}
	allNodesMAC = [6]byte{0x33, 0x33, 0, 0, 0, 1}
)

// Announce appends to out[:0] the frame that tells everybody on the link where
// an address is: an ARP announcement (RFC 5227 section 3) or an unsolicited
// neighbour advertisement (RFC 4861 section 7.2.6).
func Announce(out []byte, addr netip.Addr, mac [6]byte) []byte {
	if addr.Is4() {
		ip := addr.As4()
		out = ether(out[:0], []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, mac, typeARP)
		return pad(appendARP(out, 1, mac, ip, [6]byte{}, ip))
	}
	return appendAdvertisement(out[:0], nil, mac, addr.As16(), nil, false)
}

// appendAdvertisement is a neighbour advertisement that overrides what is known
// of the target: to one who asked, or to all nodes.
func appendAdvertisement(out, to []byte, mac [6]byte, target [16]byte, dst []byte, asked bool) []byte {
	flags := byte(0x60) // solicited, override
	if !asked {
		flags = 0x20
		mcast, every := allNodesMAC, allNodes
		to, dst = mcast[:], every[:]
	}
	const size = naBytes + 8
	out = ether(out, to, mac, typeIPv6)
	out = appendIPv6(out, size, 255, target[:], dst)
	at := len(out)
	out = append(out, 136, 0, 0, 0, flags, 0, 0, 0)
	out = append(out, target[:]...)
	out = append(out, 2, 1) // target link-layer address, 8 bytes
	out = append(out, mac[:]...)
	binary.BigEndian.PutUint16(out[at+2:], checksum(sum(pseudo6(target[:], dst, size), out[at:])))
	return out
}
