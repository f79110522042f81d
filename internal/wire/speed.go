package wire

import "strings"

// Speed is the speed of a link in bits per second at layer 1, line coding not
// counted. 0 means unknown.
type Speed uint64

// Speed10G is the speed of 10 Gigabit Ethernet.
const Speed10G Speed = 10_000_000_000

// maxSpeed keeps every product with a frame length far from overflow.
const maxSpeed Speed = 1_000_000_000_000_000

const speedRemedy = "a speed is a number with M, G or T (or Mbps, Gbps, Tbps), as in 10G"

// speedUnits are tried in order for printing: largest first.
var speedUnits = [...]unit{{"T", 12}, {"G", 9}, {"M", 6}, {"k", 3}, {"", 0}}

// LineRate returns the most frames of this length the link carries per second.
// It is 0 for an unknown speed.
func (s Speed) LineRate(f FrameLen) PPS { return s.LineRateOf(float64(f)) }

// LineRateOf is LineRate for a mean frame length in bytes, FCS included.
func (s Speed) LineRateOf(meanWire float64) PPS {
	return PPS(float64(s) / (8 * (meanWire + L1OverheadBytes)))
}

// String prints the speed so that ParseSpeed reads it back; 0 is "unknown".
func (s Speed) String() string {
	if s == 0 {
		return "unknown"
	}
	for _, u := range speedUnits {
		if u.name != "" && pow10(u.exp) <= uint64(s) {
			return fixedPoint(uint64(s), u.exp) + u.name
		}
	}
	return fixedPoint(uint64(s), 0) + "bps"
}

// ParseSpeed reads a link speed such as "10G", "2.5G", "100M" or "10Gbps". A
// bare number is refused: some tools mean Mbit/s by it, some bit/s. The error
// is a *ParseError.
func ParseSpeed(s string) (Speed, error) {
	fail := func(what string) (Speed, error) {
		return 0, &ParseError{Input: s, What: what, Remedy: speedRemedy}
	}
	num, suffix, ok := splitNumber(strings.TrimSpace(s))
	if !ok {
		return fail("not a speed")
	}
	if suffix == "" {
		return fail("a speed needs a unit")
	}
	for _, u := range speedUnits {
		if !strings.EqualFold(suffix, u.name) && !strings.EqualFold(suffix, u.name+"bps") &&
			!strings.EqualFold(suffix, u.name+"bit/s") {
			continue
		}
		v, ok := whole(num, u.exp)
		switch {
		case !ok || v > uint64(maxSpeed):
			return fail("not a whole number of bits per second, or too large")
		case v == 0:
			return fail("a speed is above zero")
		}
		return Speed(v), nil
	}
	return fail("unknown unit of speed")
}

// pow10 returns 10^exp for the small powers units use.
func pow10(exp int) uint64 {
	v := uint64(1)
	for range exp {
		v *= 10
	}
	return v
}
