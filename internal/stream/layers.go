package stream

// kind is how the values of a field are written.
type kind uint8

const (
	number kind = iota
	macAddr
	ip4Addr
	ip6Addr
	flagSet // names joined by "|"
)

// fieldSpec is one field of a header that a file may set. All of them lie
// within 16-bit words that other fields may share.
type fieldSpec struct {
	name       string
	bit, width int // from the start of the header
	kind       kind
	names      []nameOf // words for some values
	def        string
	about      string
}

type nameOf struct {
	name  string
	value uint64
}

// fixedBits is what every header of its kind has.
type fixedBits struct {
	bit, width int
	value      uint64
}

// layerSpec is one kind of header.
type layerSpec struct {
	name   string
	size   int // in bytes; raw has the size of what it is given
	next   []string
	kinds  string    // which numbers name the next header: "ether", "ip" or none
	typeAt fixedBits // where that number stands
	fixed  []fixedBits
	fields []fieldSpec
	about  string
}

var overEther = []string{"vlan", "mpls", "ipv4", "ipv6", "arp", "raw"}

// etherTypes and ipProtocols name what may follow. raw also stands for nothing.
var (
	etherTypes = []nameOf{{"ipv4", 0x0800}, {"ipv6", 0x86dd}, {"arp", 0x0806}, {"mpls", 0x8847}, {"vlan", 0x8100},
		{"raw", 0x88b5}} // IEEE 802, local experimental
	ipProtocols = []nameOf{{"udp", 17}, {"tcp", 6}, {"icmp", 1}, {"icmpv6", 58}, {"raw", 253}} // RFC 3692
	tcpFlags    = []nameOf{{"none", 0}, {"fin", 1}, {"syn", 2}, {"rst", 4}, {"psh", 8}, {"ack", 16}, {"urg", 32},
		{"ece", 64}, {"cwr", 128}}
	arpOps    = []nameOf{{"request", 1}, {"reply", 2}}
	icmpTypes = []nameOf{{"echo-reply", 0}, {"unreachable", 3}, {"echo-request", 8}, {"time-exceeded", 11}}
	icmp6Type = []nameOf{{"unreachable", 1}, {"packet-too-big", 2}, {"time-exceeded", 3}, {"echo-request", 128},
		{"echo-reply", 129}, {"neighbor-solicitation", 135}, {"neighbor-advertisement", 136}}
)

// layerSpecs is every header that a stack may be made of.
var layerSpecs = []layerSpec{
	{name: "eth", size: 14, next: overEther, kinds: "ether", typeAt: fixedBits{bit: 96, width: 16}, about: "Ethernet II",
		fields: []fieldSpec{
			{name: "dst", bit: 0, width: 48, kind: macAddr, def: "02:00:00:00:00:02", about: "destination address"},
			{name: "src", bit: 48, width: 48, kind: macAddr, def: "02:00:00:00:00:01", about: "source address"},
			{name: "type", bit: 96, width: 16, about: "EtherType, where no layer or raw follows"},
		}},
	{name: "vlan", size: 4, next: overEther, kinds: "ether", typeAt: fixedBits{bit: 16, width: 16}, about: "IEEE 802.1Q or 802.1ad tag",
		fields: []fieldSpec{
			{name: "id", bit: 4, width: 12, def: "0", about: "VLAN identifier"},
			{name: "pcp", bit: 0, width: 3, def: "0", about: "priority"},
			{name: "dei", bit: 3, width: 1, def: "0", about: "drop eligible"},
			{name: "type", bit: 16, width: 16, about: "EtherType, where no layer or raw follows"},
		}},
	{name: "mpls", size: 4, next: []string{"mpls", "ipv4", "ipv6", "raw"}, about: "one MPLS label, RFC 3032",
		fields: []fieldSpec{
			{name: "label", bit: 0, width: 20, def: "16", about: "label"},
			{name: "tc", bit: 20, width: 3, def: "0", about: "traffic class"},
			{name: "ttl", bit: 24, width: 8, def: "64", about: "time to live"},
		}},
	{name: "ipv4", size: 20, next: []string{"udp", "tcp", "icmp", "raw"}, kinds: "ip", typeAt: fixedBits{bit: 72, width: 8},
		about: "IPv4 without options, RFC 791", fixed: []fixedBits{{0, 8, 0x45}, {48, 16, 0x4000}},
		fields: []fieldSpec{
			{name: "src", bit: 96, width: 32, kind: ip4Addr, def: "198.18.0.1", about: "source address"},
			{name: "dst", bit: 128, width: 32, kind: ip4Addr, def: "198.18.0.2", about: "destination address"},
			{name: "ttl", bit: 64, width: 8, def: "64", about: "time to live"},
			{name: "dscp", bit: 8, width: 6, def: "0", about: "differentiated services"},
			{name: "ecn", bit: 14, width: 2, def: "0", about: "congestion notification"},
			{name: "id", bit: 32, width: 16, def: "0", about: "identification"},
			{name: "protocol", bit: 72, width: 8, about: "protocol, where no layer or raw follows"},
		}},
	{name: "ipv6", size: 40, next: []string{"udp", "tcp", "icmpv6", "raw"}, kinds: "ip", typeAt: fixedBits{bit: 48, width: 8},
		about: "IPv6 without extension headers, RFC 8200", fixed: []fixedBits{{0, 4, 6}},
		fields: []fieldSpec{
			{name: "src", bit: 64, width: 128, kind: ip6Addr, def: "2001:2::1", about: "source address"},
			{name: "dst", bit: 192, width: 128, kind: ip6Addr, def: "2001:2::2", about: "destination address"},
			{name: "hop_limit", bit: 56, width: 8, def: "64", about: "hop limit"},
			{name: "dscp", bit: 4, width: 6, def: "0", about: "differentiated services"},
			{name: "ecn", bit: 10, width: 2, def: "0", about: "congestion notification"},
			{name: "flow_label", bit: 12, width: 20, def: "0", about: "flow label"},
			{name: "next_header", bit: 48, width: 8, about: "next header, where no layer or raw follows"},
		}},
	{name: "udp", size: 8, next: []string{"vxlan", "raw"}, about: "UDP, RFC 768",
		fields: []fieldSpec{
			{name: "src", bit: 0, width: 16, def: "49152", about: "source port"},
			{name: "dst", bit: 16, width: 16, def: "9", about: "destination port"},
		}},
	{name: "tcp", size: 20, next: []string{"raw"}, about: "TCP without options, RFC 9293", fixed: []fixedBits{{96, 4, 5}},
		fields: []fieldSpec{
			{name: "src", bit: 0, width: 16, def: "49152", about: "source port"},
			{name: "dst", bit: 16, width: 16, def: "9", about: "destination port"},
			{name: "seq", bit: 32, width: 32, def: "0", about: "sequence number"},
			{name: "ack", bit: 64, width: 32, def: "0", about: "acknowledgment number"},
			{name: "flags", bit: 104, width: 8, kind: flagSet, names: tcpFlags, def: "ack", about: "flags, as syn|ack"},
			{name: "window", bit: 112, width: 16, def: "65535", about: "window"},
			{name: "urgent", bit: 144, width: 16, def: "0", about: "urgent pointer"},
		}},
	{name: "icmp", size: 8, next: []string{"raw"}, about: "ICMP, RFC 792",
		fields: []fieldSpec{
			{name: "type", bit: 0, width: 8, names: icmpTypes, def: "echo-request", about: "type"},
			{name: "code", bit: 8, width: 8, def: "0", about: "code"},
			{name: "id", bit: 32, width: 16, def: "1", about: "identifier"},
			{name: "seq", bit: 48, width: 16, def: "0", about: "sequence number"},
		}},
	{name: "icmpv6", size: 8, next: []string{"raw"}, about: "ICMPv6, RFC 4443",
		fields: []fieldSpec{
			{name: "type", bit: 0, width: 8, names: icmp6Type, def: "echo-request", about: "type"},
			{name: "code", bit: 8, width: 8, def: "0", about: "code"},
			{name: "id", bit: 32, width: 16, def: "1", about: "identifier"},
			{name: "seq", bit: 48, width: 16, def: "0", about: "sequence number"},
		}},
	{name: "arp", size: 28, about: "ARP for IPv4 over Ethernet, RFC 826", fixed: []fixedBits{{0, 48, 0x0001_0800_0604}},
		fields: []fieldSpec{
			{name: "op", bit: 48, width: 16, names: arpOps, def: "request", about: "operation"},
			{name: "sender_mac", bit: 64, width: 48, kind: macAddr, def: "02:00:00:00:00:01", about: "sender's hardware address"},
			{name: "sender_ip", bit: 112, width: 32, kind: ip4Addr, def: "198.18.0.1", about: "sender's address"},
			{name: "target_mac", bit: 144, width: 48, kind: macAddr, def: "00:00:00:00:00:00", about: "target's hardware address"},
			{name: "target_ip", bit: 192, width: 32, kind: ip4Addr, def: "198.18.0.2", about: "target's address"},
		}},
	{name: "vxlan", size: 8, next: []string{"eth"}, about: "VXLAN, RFC 7348; an inner stack follows", fixed: []fixedBits{{0, 8, 8}},
		fields: []fieldSpec{
			{name: "vni", bit: 32, width: 24, def: "1", about: "network identifier"},
		}},
	{name: "raw", about: "bytes as they are"},
}

// specOf finds a layer by its name.
func specOf(name string) (layerSpec, bool) {
	for _, s := range layerSpecs {
		if s.name == name {
			return s, true
		}
	}
	return layerSpec{}, false
}

// valueOf finds a word in a table.
func valueOf(table []nameOf, name string) (uint64, bool) {
	for _, n := range table {
		if n.name == name {
			return n.value, true
		}
	}
	return 0, false
}
