package wire

import (
	"math/bits"
	"strconv"
	"strings"
)

const bytesRemedy = "an amount is a whole number of bytes, or a number with " +
	"kB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (powers of 1024)"

// decimalBytes and binaryBytes are the units of ParseBytes.
var (
	decimalBytes = [...]unit{{"B", 0}, {"kB", 3}, {"MB", 6}, {"GB", 9}, {"TB", 12}}
	binaryBytes  = [...]string{"KiB", "MiB", "GiB", "TiB"}
)

// ParseBytes reads an amount of bytes: "1448", "128KiB", "1.5MB". A lone K, M
// or G is refused, for tools disagree by up to 10 % about it. The error is a
// *ParseError.
func ParseBytes(s string) (uint64, error) {
	fail := func(what string) (uint64, error) {
		return 0, &ParseError{Input: s, What: what, Remedy: bytesRemedy}
	}
	num, suffix, ok := splitNumber(strings.TrimSpace(s))
	if !ok {
		return fail("not an amount of bytes")
	}
	for i, name := range binaryBytes {
		if strings.EqualFold(suffix, name) {
			n, err := strconv.ParseUint(num, 10, 64)
			hi, v := bits.Mul64(n, 1<<(10*(i+1)))
			if err != nil || hi != 0 {
				return fail("not a whole number, or too large")
			}
			return v, nil
		}
	}
	for _, u := range decimalBytes {
		if strings.EqualFold(suffix, u.name) || suffix == "" {
			v, ok := whole(num, u.exp)
			if !ok {
				return fail("not a whole number of bytes, or too large")
			}
			return v, nil
		}
	}
	return fail("unknown or ambiguous unit")
}
