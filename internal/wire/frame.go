// Package wire is the one place where bytes become bits: frame lengths, sizes,
// rates, link speeds and the ceilings that follow from them.
//
// It is pure arithmetic and text. All values are immutable and every function
// may be called from any goroutine.
package wire

// FrameLen is the length of an Ethernet frame in bytes, FCS included, as
// RFC 2544 counts it.
type FrameLen int

// BufLen is the length of a frame in bytes without its FCS: what a UMEM buffer
// or an skb holds.
type BufLen int

const (
	// FCSBytes is the length of the frame check sequence (IEEE 802.3, 3.2.9).
	FCSBytes = 4
	// L1OverheadBytes is what every frame costs on the wire besides itself:
	// 7 bytes of preamble, 1 of start delimiter, 12 of inter-packet gap.
	L1OverheadBytes = 20
	// EthernetBytes is the length of an untagged Ethernet header.
	EthernetBytes = 14
	// VLANBytes is the length of one 802.1Q or 802.1ad tag.
	VLANBytes = 4
	// MinFrame is the least legal frame (IEEE 802.3, minFrameSize).
	MinFrame FrameLen = 64
	// MaxFrame is the longest frame linerate sends: the limit of the 82599 as
	// its driver sets it (ixgbe.h, IXGBE_MAX_JUMBO_FRAME_SIZE).
	MaxFrame FrameLen = 9728
)

// Buf returns the length of the frame without its FCS.
func (f FrameLen) Buf() BufLen { return BufLen(f - FCSBytes) }

// Frame returns the length of the buffer's frame with its FCS.
func (b BufLen) Frame() FrameLen { return FrameLen(b + FCSBytes) }

// WireBytes returns the bytes of line time one frame takes: its length and the
// preamble, delimiter and gap around it.
func (f FrameLen) WireBytes() int { return int(f) + L1OverheadBytes }

// FrameForMTU returns the longest frame of an interface with this MTU in bytes
// and this number of VLAN tags, which come on top of the MTU.
func FrameForMTU(mtu, vlans int) FrameLen {
	return FrameLen(mtu + EthernetBytes + VLANBytes*vlans + FCSBytes)
}

// MTU returns the layer 3 bytes that a frame with this number of VLAN tags
// holds. It is negative if the frame is shorter than its own header.
func (f FrameLen) MTU(vlans int) int {
	return int(f) - EthernetBytes - VLANBytes*vlans - FCSBytes
}

// L1Bits returns the bits of line time that frames took, from a counter of
// frames and one of bytes without FCS (the kernel's rule, if_link.h).
func L1Bits(frames, bytes uint64) uint64 {
	return 8 * (bytes + (FCSBytes+L1OverheadBytes)*frames)
}

// L2Bits returns the bits of the frames with their FCS, from a counter of
// frames and one of bytes without FCS.
func L2Bits(frames, bytes uint64) uint64 {
	return 8 * (bytes + FCSBytes*frames)
}
