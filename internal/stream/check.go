package stream

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"linerate/internal/frame"
	"linerate/internal/wire"
)

// headerBytes is the length of all headers.
func (s *Stream) headerBytes() int {
	n := 0
	for i := range s.layers {
		n += s.layers[i].size()
	}
	return n
}

// inner gives the index of the innermost layer with one of the names, -1 if
// there is none.
func (s *Stream) inner(names ...string) int {
	for i := len(s.layers) - 1; i >= 0; i-- {
		if slices.Contains(names, s.layers[i].spec.name) {
			return i
		}
	}
	return -1
}

// check looks for contradictions within a stream whose parts are right.
func (p *parser) check(s *Stream, n *yaml.Node, at map[string]*yaml.Node) {
	if at["count"] != nil && at["time"] != nil {
		p.fail(at["time"], "time", "contradicts count: give one of them")
	}
	if at["payload"] == nil && s.layers[len(s.layers)-1].spec.name == "arp" {
		s.payload.kind = payloadZero
	}
	p.checkSizes(s, at["frame"])
	p.checkWrong(s, at["wrong"])
	if s.tag == tagAlways {
		if why := s.Untagged(); why != "" {
			p.fail(at["tag"], "tag", "the frames of this stream cannot carry it: %s", why)
		}
	}
}

func (p *parser) checkSizes(s *Stream, n *yaml.Node) {
	least, greatest := slices.Min(s.sizes), slices.Max(s.sizes)
	head := wire.BufLen(s.headerBytes()).Frame()
	switch {
	case least < head:
		p.fail(n, "frame", "%d bytes: the headers alone take %d, FCS included", least, head)
	case least < wire.MinFrame && s.wrong&wrongRunt == 0:
		p.fail(n, "frame", "%d bytes: the least frame has %d; wrong: [runt] sends it all the same", least, wire.MinFrame)
	case greatest > wire.MaxFrame && s.wrong&wrongOversize == 0:
		p.fail(n, "frame", "%d bytes: the longest frame has %d; wrong: [oversize] sends it all the same", greatest, wire.MaxFrame)
	}
}

// checkWrong refuses faults that the stream has no place for.
func (p *parser) checkWrong(s *Stream, n *yaml.Node) {
	l4 := s.inner("udp", "tcp", "icmp", "icmpv6")
	for _, c := range []struct {
		fault wrong
		no    bool
		what  string
	}{
		{wrongL3, s.inner("ipv4") < 0, "l3-checksum: there is no ipv4 layer"},
		{wrongL4, l4 < 0, "l4-checksum: there is no layer with one"},
		{wrongIPLen, s.inner("ipv4", "ipv6") < 0, "ip-length: there is no ipv4 or ipv6 layer"},
		{wrongUDPLen, s.inner("udp") < 0, "udp-length: there is no udp layer"},
		{wrongRunt, slices.Min(s.sizes) >= wire.MinFrame, "runt: no size lies under 64"},
		{wrongOversize, slices.Max(s.sizes) <= wire.MaxFrame, "oversize: no size lies over 9728"},
	} {
		if s.wrong&c.fault != 0 && c.no {
			p.fail(n, "wrong", "%s", c.what)
		}
	}
}

// Untagged says why the frames of the stream carry no test tag, "" if they do.
func (s *Stream) Untagged() string {
	if s.tag == tagNever {
		return "the file says tag: false"
	}
	i := 1
	for i < len(s.layers) && s.layers[i].spec.name == "vlan" {
		if s.layers[i].tpid == 0x9100 {
			return "only 0x8100 and 0x88a8 are read"
		}
		i++
	}
	names := []string{"", "", ""}
	for j := range names {
		if i+j < len(s.layers) {
			names[j] = s.layers[i+j].spec.name
		}
	}
	if names[0] != "ipv4" && names[0] != "ipv6" || names[1] != "udp" || names[2] != "" && names[2] != "raw" {
		return "only UDP over IPv4 or IPv6 under at most two VLAN tags does"
	}
	room := int(slices.Min(s.sizes).Buf()) - s.headerBytes()
	switch {
	case room < frame.ShortTagBytes:
		return "the least frame that could has " + decimal(uint64(s.headerBytes()+frame.ShortTagBytes+wire.FCSBytes)) + " bytes"
	case room < frame.LongTagBytes && s.ID >= frame.MaxShortStreams:
		return "from the 17th stream on the least frame that could has " +
			decimal(uint64(s.headerBytes()+frame.LongTagBytes+wire.FCSBytes)) + " bytes"
	}
	return ""
}

// Tagged tells whether the stream's frames carry the test tag.
func (s *Stream) Tagged() bool { return s.Untagged() == "" }
