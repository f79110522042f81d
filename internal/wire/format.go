package wire

import (
	"math"
	"strconv"
)

// FormatPPS prints a rate with its prefix and three decimals, as in
// "14.881 Mpps"; a whole number below 1000 has none.
func FormatPPS(v PPS) string { return formatSI(float64(v), "pps") }

// FormatBits prints a bit rate with its decimal prefix and three decimals, as
// in "7.619 Gbit/s".
func FormatBits(v BitsPerSec) string { return formatSI(float64(v), "bit/s") }

// formatSI chooses the prefix after rounding, so that 999.9996k is 1.000M.
func formatSI(v float64, base string) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "unknown"
	}
	for _, p := range siPrefixes[:len(siPrefixes)-1] {
		if scale := float64(pow10(p.exp)); math.Round(math.Abs(v)/scale*1000) >= 1000 {
			return strconv.FormatFloat(v/scale, 'f', 3, 64) + " " + p.name + base
		}
	}
	if v == math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 0, 64) + " " + base
	}
	return strconv.FormatFloat(v, 'f', 3, 64) + " " + base
}

// FormatCount prints a count with a comma between thousands: 14,880,952.
func FormatCount(n uint64) string {
	s := strconv.FormatUint(n, 10)
	out := make([]byte, 0, len(s)+len(s)/3)
	for i := range len(s) {
		if i > 0 && (len(s)-i)%3 == 0 {
			out = append(out, ',')
		}
		out = append(out, s[i])
	}
	return string(out)
}
