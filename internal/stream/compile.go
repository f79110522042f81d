package stream

import (
	"encoding/binary"
	"slices"

	"linerate/internal/frame"
)

// headers writes the headers and notes what varies in them.
func (b *Builder) headers(c Config) {
	at := 0
	var addr patchRange
	for i := range b.stream.layers {
		l := &b.stream.layers[i]
		head := append(make([]byte, l.spec.size), l.raw...)
		for _, f := range l.spec.fixed {
			putBits(head, f.bit, f.width, u128{lo: f.value})
		}
		for j, f := range l.spec.fields {
			v := l.values[j]
			if i == 0 && !l.set[j] && f.kind == macAddr {
				v = fixed(macOr(v.first, c, f.name))
			}
			if v.varies() {
				first, last := f.bit/16, (f.bit+f.width-1)/16
				b.patches = append(b.patches, patch{v, at + 2*first, last - first + 1, 16*(last+1) - f.bit - f.width})
				continue
			}
			putBits(head, f.bit, f.width, v.at(0))
		}
		b.layer(i, at, head, &addr)
		b.head = append(b.head, head...)
		at += len(head)
	}
}

// patchRange is where the IP header begins that the layers above lie in.
type patchRange struct {
	l3 int
	v6 bool
}

func macOr(v u128, c Config, field string) u128 {
	mac := c.SrcMAC
	if field == "dst" {
		mac = c.DstMAC
	}
	if mac == [6]byte{} {
		return v
	}
	return u128{lo: uint64(binary.BigEndian.Uint16(mac[:]))<<32 | uint64(binary.BigEndian.Uint32(mac[2:]))}
}

// layer notes the lengths and checksums of one header.
func (b *Builder) layer(i, at int, head []byte, ip *patchRange) {
	s, l := b.stream, &b.stream.layers[i]
	wrongIP := s.wrong != 0 && i == s.inner("ipv4", "ipv6")
	wrongL4 := s.wrong&wrongL4 != 0 && i == s.inner("udp", "tcp", "icmp", "icmpv6")
	more := func(on bool) int {
		if on {
			return 8
		}
		return 0
	}
	switch l.spec.name {
	case "mpls":
		if i+1 == len(s.layers) || s.layers[i+1].spec.name != "mpls" {
			head[2] |= 1 // bottom of stack
		}
	case "ipv4":
		*ip = patchRange{at, false}
		b.lengths = append(b.lengths, length{at + 2, at, more(wrongIP && s.wrong&wrongIPLen != 0)})
		b.sums = append(b.sums, sum{at: at + 10, from: at, to: at + 20, bad: wrongIP && s.wrong&wrongL3 != 0})
	case "ipv6":
		*ip = patchRange{at, true}
		b.lengths = append(b.lengths, length{at + 4, at + 40, more(wrongIP && s.wrong&wrongIPLen != 0)})
	case "udp":
		b.lengths = append(b.lengths, length{at + 4, at, more(s.wrong&wrongUDPLen != 0 && i == s.inner("udp"))})
		tunnel := i+1 < len(s.layers) && s.layers[i+1].spec.name == "vxlan"
		b.addr = [2]int{ip.l3 + 12, at + 4}
		if ip.v6 {
			b.addr[0] = ip.l3 + 8
		}
		if !tunnel || ip.v6 { // RFC 7348: 0 over IPv4
			b.sums = append(b.sums, sum{at: at + 6, from: at, pseudo: ip.l3, proto: 17, udp: true, tagged: true, bad: wrongL4})
		}
	case "tcp":
		b.sums = append(b.sums, sum{at: at + 16, from: at, pseudo: ip.l3, proto: 6, bad: wrongL4})
	case "icmp":
		b.sums = append(b.sums, sum{at: at + 2, from: at, bad: wrongL4})
	case "icmpv6":
		b.sums = append(b.sums, sum{at: at + 2, from: at, pseudo: ip.l3, proto: 58, bad: wrongL4})
	}
}

// putBits ORs v into the bits of a header.
func putBits(h []byte, bit, width int, v u128) {
	for i := width - 1; i >= 0; i-- {
		if v.lo&1 != 0 {
			h[(bit+i)/8] |= 0x80 >> ((bit + i) % 8)
		}
		v.lo = v.lo>>1 | v.hi<<63
		v.hi >>= 1
	}
}

// getBits reads them back.
func getBits(h []byte, bit, width int) (v u128) {
	for i := range width {
		v.hi = v.hi<<1 | v.lo>>63
		v.lo = v.lo<<1 | uint64(h[(bit+i)/8]>>(7-(bit+i)%8)&1)
	}
	return v
}

// checksums finds out what lies within which sum.
func (b *Builder) checksums() {
	slices.Reverse(b.sums)
	for i := range b.sums {
		c := &b.sums[i]
		within := func(at int) bool { return at >= c.from && (c.to == 0 || at < c.to) }
		for j := range b.patches {
			p := &b.patches[j]
			if within(p.at) || c.pseudo != 0 && c.isAddress(b.head, p) {
				c.patches = append(c.patches, j)
			}
		}
		for j := range b.sums[:i] {
			if within(b.sums[j].at) {
				c.inner = append(c.inner, j)
			}
		}
	}
}

// addresses gives the place of both addresses of the IP header at l3.
func addresses(head []byte, l3 int) (from, to int) {
	if head[l3]>>4 == 6 {
		return l3 + 8, l3 + 40
	}
	return l3 + 12, l3 + 20
}

func (c *sum) isAddress(head []byte, p *patch) bool {
	from, to := addresses(head, c.pseudo)
	return p.at >= from && p.at < to
}

// prefix gives, for each n, the sum of the first n bytes of the payload.
func (b *Builder) prefix() []uint32 {
	at := make([]uint32, len(b.fill)+1)
	for i, x := range b.fill {
		word := uint32(x)
		if (len(b.head)+i)%2 == 0 {
			word <<= 8
		}
		at[i+1] = at[i] + word
	}
	return at
}

// shape computes what a length of the frame decides. Every header but the last
// has an even length, so all sums count from an even offset.
func (b *Builder) shape(n int, tagged bool, faults wrong, prefix []uint32) shape {
	s := shape{len: n, base: make([]uint16, len(b.sums)), lens: make([]uint16, len(b.lengths))}
	end := n
	if tagged {
		s.tag = n - frame.LongTagBytes
		if s.tag < len(b.head) {
			s.tag, b.short = n-frame.ShortTagBytes, true
		}
		end = s.tag
	}
	h := slices.Clone(b.head)
	for i, l := range b.lengths {
		v := uint16(n - l.from)
		if faults != 0 {
			v += uint16(l.more)
		}
		s.lens[i] = v
		binary.BigEndian.PutUint16(h[l.at:], v)
	}
	for i := range b.sums {
		c := &b.sums[i]
		if c.to != 0 {
			s.base[i] = fold(sumOf(h[c.from:c.to]))
			continue
		}
		total := sumOf(h[c.from:]) + uint64(prefix[end-len(h)])
		if c.pseudo != 0 {
			from, to := addresses(h, c.pseudo)
			total += sumOf(h[from:to]) + c.proto + uint64(n-c.from)
		}
		s.base[i] = fold(total)
	}
	return s
}
