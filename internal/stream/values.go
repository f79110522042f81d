package stream

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// u128 is an unsigned number as wide as an IPv6 address.
type u128 struct{ hi, lo uint64 }

func (a u128) less(b u128) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

// plus is a + n*step, and whether it stayed within 128 bits.
func (a u128) plus(n, step uint64) (u128, bool) {
	ph, pl := bits.Mul64(n, step)
	lo, c := bits.Add64(a.lo, pl, 0)
	hi, c := bits.Add64(a.hi, ph, c)
	return u128{hi, lo}, c == 0
}

func (a u128) minus(b u128) u128 {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	hi, _ := bits.Sub64(a.hi, b.hi, borrow)
	return u128{hi, lo}
}

// most is the greatest number of a width in bits.
func most(width int) u128 {
	switch {
	case width >= 128:
		return u128{^uint64(0), ^uint64(0)}
	case width >= 64:
		return u128{1<<(width-64) - 1, ^uint64(0)}
	}
	return u128{0, 1<<width - 1}
}

// values is what a field holds from frame to frame: a list, or n numbers from
// first on, step apart.
type values struct {
	list   []u128
	first  u128
	step   uint64
	n      uint64 // how many values, at least 1
	every  uint64 // frames for which one value stays, at least 1
	random bool
	seed   uint64
	seeded bool // the file gives the seed
}

func fixed(v u128) values { return values{first: v, n: 1, every: 1} }

// varies tells whether there is more than one value.
func (v *values) varies() bool { return v.n > 1 }

// at is the value of frame k.
func (v *values) at(k uint64) u128 {
	if v.every > 1 {
		k /= v.every
	}
	var i uint64
	if v.random {
		i, _ = bits.Mul64(mix64(v.seed+k*0x9e3779b97f4a7c15), v.n)
	} else {
		i = k % v.n
	}
	if v.list != nil {
		return v.list[i]
	}
	u, _ := v.first.plus(i, v.step)
	return u
}

// mix64 is the output function of SplitMix64 (Steele, Lea, Flood 2014): every
// bit of the result depends on every bit of x.
func mix64(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func ofAddr(a netip.Addr) u128 {
	if a.Is4() {
		b := a.As4()
		return u128{0, uint64(binary.BigEndian.Uint32(b[:]))}
	}
	b := a.As16()
	return u128{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

// text prints a number the way a file gives it.
func (s fieldSpec) text(v u128) string {
	switch s.kind {
	case macAddr:
		return macText(v.lo)
	case ip4Addr:
		return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(v.lo)))).String()
	case ip6Addr:
		return netip.AddrFrom16([16]byte(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, v.hi), v.lo))).String()
	case flagSet:
		return flagsText(s.names, v.lo)
	}
	for _, n := range s.names {
		if n.value == v.lo {
			return n.name
		}
	}
	if s.width == 16 && (s.name == "type" || s.name == "tpid") {
		return hexText(v.lo)
	}
	return decimal(v.lo)
}
