// Package frame turns streams into Ethernet frames and frames back into
// verdicts: it writes headers, payload and the test tag, verifies what comes
// back, and keeps the account of sequence numbers.
//
// # Tag
//
// The tag stands in the last bytes of the L4 payload (never of the buffer: a
// short frame may carry padding). All fields are big endian.
//
//	long, 18 bytes                      short, 10 bytes
//	 0  magic   u16 0x4C52               0  magic   u16 0x4C53
//	 2  run     u16                      2  run     u8  low 8 bits
//	 4  space   u16 worker<<12|stream    3  space   u8  worker<<4|stream
//	 6  seq     u40                      4  seq     u32 low 32 bits
//	11  time    u32 ns>>6                8  check   u16
//	15  flags   u8
//	16  check   u16
//
// check is CRC-16/CCITT-FALSE (polynomial 0x1021, start 0xffff) over source
// address, destination address, source port, destination port and the tag
// with check 0. The long tag is used wherever it fits; a frame too short for
// it carries the short one, so the length of a frame decides its tag.
//
// # Payload
//
// Payload byte i, counted from the first byte after the UDP header, is
// byte(j + j>>8) with j = i mod 4096. It depends on nothing else, so a buffer
// can be reused by any stream, and two exchanged 16-bit words do show.
//
// # What a check covers
//
// A frame is good when its lengths agree, the IPv4 header checksum, the UDP
// checksum (0, which means "none", is refused: linerate always sends one) and
// the tag check are right, and with PayloadCheck the pattern is there byte by
// byte. Not covered by anything, and so free to change on the way: both MAC
// addresses, the 16-bit control field of each VLAN tag (and the presence of
// the tags), padding up to 60 bytes, and in IPv6, which has no header
// checksum, traffic class, flow label and hop limit. Of IPv4 every header bit
// is covered.
//
// Probability that damage is missed, given that it reaches us at all (it
// already got past the Ethernet FCS, or happened behind it, in a bus, a DMA
// engine or a driver):
//
//   - up to 3 wrong bits, any odd number of them, or one burst of up to 16 bits
//     within addresses, ports and tag: never missed (CRC-16).
//   - random damage to tag, addresses or ports: 2^-16 (CRC) x 2^-16 (UDP
//     checksum) = 2^-32.
//   - random damage to the payload pattern: 2^-16 (UDP checksum alone);
//     exchanged 16-bit words always. With PayloadCheck: never.
//   - random damage to an IPv4 header field nothing else looks at (TTL, DSCP,
//     identification): 2^-16.
package frame
