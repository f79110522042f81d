package wire

// CeilingOptions says what a frame holds besides its payload.
type CeilingOptions struct {
	VLANs      int  // number of VLAN tags
	IPv6       bool // IPv6 instead of IPv4, no extension headers
	Timestamps bool // TCP timestamps (RFC 7323), 12 bytes with padding
}

// Header lengths in bytes (RFC 791, 8200, 768, 9293, 7323).
const (
	ipv4Bytes          = 20
	ipv6Bytes          = 40
	udpBytes           = 8
	tcpBytes           = 20
	tcpTimestampsBytes = 12
)

// IPBytes returns the length of the IP header.
func (o CeilingOptions) IPBytes() int {
	if o.IPv6 {
		return ipv6Bytes
	}
	return ipv4Bytes
}

// TCPBytes returns the length of the TCP header of a data segment.
func (o CeilingOptions) TCPBytes() int {
	if o.Timestamps {
		return tcpBytes + tcpTimestampsBytes
	}
	return tcpBytes
}

// ACKFrame returns the length of a frame that only acknowledges. SACK blocks
// are not counted.
func (o CeilingOptions) ACKFrame() FrameLen {
	return max(MinFrame, FrameForMTU(o.IPBytes()+o.TCPBytes(), o.VLANs))
}

// Ceiling is the most that a link can carry in one direction with frames of one
// length back to back: exact arithmetic, nothing measured. A payload below zero
// means that the headers do not fit the frame; its goodput is 0.
type Ceiling struct {
	Speed   Speed
	Frame   FrameLen
	Options CeilingOptions

	PPS             PPS        // frames per second
	FrameNs         float64    // line time of one frame, ns
	L1              BitsPerSec // on the wire: the link speed
	L2              BitsPerSec // frames with FCS
	L2NoFCS         BitsPerSec // frames without FCS
	ProcBytesPerSec float64    // as /proc/net/dev counts bytes: no FCS (if_link.h), VLAN tags counted
	UDPPayload      int        // bytes per frame
	TCPPayload      int        // bytes per full segment
	UDPGoodput      BitsPerSec // payload bits
	TCPGoodput      BitsPerSec // payload bits, no ACKs in this direction
}

// NewCeiling computes the ceiling. The error is a *RangeError for an unknown
// speed, a frame below MinFrame or a negative number of tags.
func NewCeiling(speed Speed, frame FrameLen, opts CeilingOptions) (Ceiling, error) {
	switch {
	case speed == 0 || speed > maxSpeed:
		return Ceiling{}, &RangeError{What: "link speed in bit/s", Value: float64(speed)}
	case frame < MinFrame:
		return Ceiling{}, &RangeError{What: "frame length in bytes", Value: float64(frame)}
	case opts.VLANs < 0:
		return Ceiling{}, &RangeError{What: "number of VLAN tags", Value: float64(opts.VLANs)}
	}
	packet := frame.MTU(opts.VLANs)
	c := Ceiling{
		Speed: speed, Frame: frame, Options: opts,
		PPS:        speed.LineRate(frame),
		L1:         BitsPerSec(speed),
		UDPPayload: packet - opts.IPBytes() - udpBytes,
		TCPPayload: packet - opts.IPBytes() - opts.TCPBytes(),
	}
	wireBytes := float64(frame.WireBytes())
	c.FrameNs = wireBytes * 8e9 / float64(speed)
	c.L2 = c.share(float64(frame), wireBytes)
	c.L2NoFCS = c.share(float64(frame.Buf()), wireBytes)
	c.ProcBytesPerSec = float64(c.L2NoFCS) / 8
	c.UDPGoodput = c.share(float64(c.UDPPayload), wireBytes)
	c.TCPGoodput = c.share(float64(c.TCPPayload), wireBytes)
	return c, nil
}

// share returns the part of the link speed that carries these bytes of every
// wireBytes.
func (c Ceiling) share(bytes, wireBytes float64) BitsPerSec {
	return BitsPerSec(float64(c.Speed) * max(bytes, 0) / wireBytes)
}

// perSegment returns what one segment and its part of an opposite stream's ACK
// take on the wire, in bytes. segmentsPerACK below 1 counts as 1.
func (c Ceiling) perSegment(segmentsPerACK int) (wireBytes, ackPart float64) {
	ackPart = 1 / float64(max(segmentsPerACK, 1))
	return float64(c.Frame.WireBytes()) + ackPart*float64(c.Options.ACKFrame().WireBytes()), ackPart
}

// TCPBothWays returns the TCP goodput per direction when both directions carry
// full segments and each also the ACKs of the other, one per segmentsPerACK.
func (c Ceiling) TCPBothWays(segmentsPerACK int) BitsPerSec {
	wireBytes, _ := c.perSegment(segmentsPerACK)
	return c.share(float64(c.TCPPayload), wireBytes)
}

// ProcBothWays returns the bytes per second of one direction as /proc/net/dev
// counts them, in the traffic of TCPBothWays. The kernel counts an ACK before
// the hardware pads it.
func (c Ceiling) ProcBothWays(segmentsPerACK int) float64 {
	wireBytes, ackPart := c.perSegment(segmentsPerACK)
	ack := FrameForMTU(c.Options.IPBytes()+c.Options.TCPBytes(), c.Options.VLANs).Buf()
	return float64(c.share(float64(c.Frame.Buf())+ackPart*float64(ack), wireBytes)) / 8
}
