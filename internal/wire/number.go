package wire

import (
	"strconv"
	"strings"
)

// maxDigits bounds a number as text. It holds every float64 this package prints.
const maxDigits = 40

// unit is a suffix and the power of ten it stands for.
type unit struct {
	name string
	exp  int
}

// splitNumber cuts a plain decimal number (digits, or digits "." digits) off
// the front of s. ok is false if there is none or it is too long to mean it.
func splitNumber(s string) (num, rest string, ok bool) {
	end := digits(s)
	if end == 0 {
		return "", s, false
	}
	if strings.HasPrefix(s[end:], ".") {
		frac := digits(s[end+1:])
		if frac == 0 {
			return "", s, false
		}
		end += 1 + frac
	}
	return s[:end], s[end:], end <= maxDigits
}

// digits counts the decimal digits s begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// scaled reads num x 10^exp in one rounding, so that what plain() prints comes
// back as the same float64. num is from splitNumber.
func scaled(num string, exp int) float64 {
	v, err := strconv.ParseFloat(num+"e"+strconv.Itoa(exp), 64)
	if err != nil {
		return 0 // too large or too small: every caller refuses 0
	}
	return v
}

// plain prints v / 10^exp with the fewest digits that still identify v, and
// without an exponent. v is finite and positive.
func plain(v float64, exp int) string {
	mantissa, power, _ := strings.Cut(strconv.FormatFloat(v, 'e', -1, 64), "e")
	point, err := strconv.Atoi(power)
	if err != nil {
		return strconv.FormatFloat(v, 'f', -1, 64) // Inf or NaN: has no power
	}
	digits := strings.Replace(mantissa, ".", "", 1)
	point += 1 - exp // digits before the decimal point
	switch {
	case point <= 0:
		return "0." + strings.Repeat("0", -point) + digits
	case point >= len(digits):
		return digits + strings.Repeat("0", point-len(digits))
	}
	return digits[:point] + "." + digits[point:]
}

// whole reads num x 10^exp as an integer. ok is false if it has a fraction or
// does not fit in 64 bits.
func whole(num string, exp int) (v uint64, ok bool) {
	before, after, _ := strings.Cut(num, ".")
	after = strings.TrimRight(after, "0")
	if len(after) > exp {
		return 0, false
	}
	v, err := strconv.ParseUint(before+after+strings.Repeat("0", exp-len(after)), 10, 64)
	return v, err == nil
}

// fixedPoint prints v / 10^exp exactly, without trailing zeros.
func fixedPoint(v uint64, exp int) string {
	s := strconv.FormatUint(v, 10)
	if pad := exp + 1 - len(s); pad > 0 {
		s = strings.Repeat("0", pad) + s
	}
	cut := len(s) - exp
	frac := strings.TrimRight(s[cut:], "0")
	if frac == "" {
		return s[:cut]
	}
	return s[:cut] + "." + frac
}
