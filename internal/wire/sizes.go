package wire

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Size is a frame length and how often it comes in relation to the others.
type Size struct {
	Frame  FrameLen
	Weight int
}

type sizesKind int

const (
	sizesNone sizesKind = iota
	sizesList
	sizesRange
	sizesIMIX
)

// Sizes is which frame lengths a stream sends, and in which order: one length,
// a list of them, a range or the IMIX. The zero Sizes holds none.
type Sizes struct {
	kind   sizesKind
	list   []FrameLen // of a list, in order
	lo, hi FrameLen   // of a range
}

// maxList bounds a list; its cycle is laid out in memory.
const maxList = 1024

var sizesRemedy = fmt.Sprintf("sizes are frame lengths with FCS from %d to %d bytes: "+
	"one (64), a list (64,128,1518), a range (64-1518) or imix", MinFrame, MaxFrame)

// imix is the simple IMIX: 64, 594, 1518 bytes in 7:4:1.
var imix = [...]Size{{64, 7}, {594, 4}, {1518, 1}}

// FixedSize returns the Sizes of one length, or a *ParseError if it is out of
// range.
func FixedSize(f FrameLen) (Sizes, error) { return ParseSizes(strconv.Itoa(int(f))) }

// ParseSizes reads "64", "64,128,1518", "64-1518" or "imix". The error is a
// *ParseError.
func ParseSizes(s string) (Sizes, error) {
	fail := func(what string) (Sizes, error) {
		return Sizes{}, &ParseError{Input: s, What: what, Remedy: sizesRemedy}
	}
	text := strings.TrimSpace(s)
	if strings.EqualFold(text, "imix") {
		return Sizes{kind: sizesIMIX}, nil
	}
	if lo, hi, isRange := strings.Cut(text, "-"); isRange && lo != "" {
		return parseRange(lo, hi, fail)
	}
	if strings.Count(text, ",") >= maxList {
		return fail(fmt.Sprintf("more than %d sizes", maxList))
	}
	var list []FrameLen
	for item := range strings.SplitSeq(text, ",") {
		f, what := parseFrameLen(item)
		if what != "" {
			return fail(what)
		}
		list = append(list, f)
	}
	return Sizes{kind: sizesList, list: list}, nil
}

func parseRange(lo, hi string, fail func(string) (Sizes, error)) (Sizes, error) {
	from, what := parseFrameLen(lo)
	if what != "" {
		return fail(what)
	}
	to, what := parseFrameLen(hi)
	if what != "" {
		return fail(what)
	}
	switch {
	case from > to:
		return fail("a range goes upwards")
	case from == to:
		return Sizes{kind: sizesList, list: []FrameLen{from}}, nil
	}
	return Sizes{kind: sizesRange, lo: from, hi: to}, nil
}

// parseFrameLen reads one length; what is the fault, or empty.
func parseFrameLen(s string) (f FrameLen, what string) {
	s = strings.TrimSpace(s)
	if s == "" || digits(s) != len(s) {
		return 0, "not a frame length"
	}
	n, err := strconv.ParseUint(s, 10, 31)
	switch {
	case err != nil || n > uint64(MaxFrame):
		return 0, "a frame is too long"
	case n < uint64(MinFrame):
		return 0, "a frame is too short"
	}
	return FrameLen(n), ""
}

// String prints the sizes so that ParseSizes reads back the same ones.
func (s Sizes) String() string {
	switch s.kind {
	case sizesIMIX:
		return "imix"
	case sizesRange:
		return fmt.Sprintf("%d-%d", s.lo, s.hi)
	case sizesList:
		items := make([]string, len(s.list))
		for i, f := range s.list {
			items[i] = strconv.Itoa(int(f))
		}
		return strings.Join(items, ",")
	}
	return ""
}

// Min returns the least frame length, 0 if there is none.
func (s Sizes) Min() FrameLen {
	switch s.kind {
	case sizesRange:
		return s.lo
	case sizesList:
		return slices.Min(s.list)
	case sizesIMIX:
		return imix[0].Frame
	}
	return 0
}

// Max returns the greatest frame length, 0 if there is none.
func (s Sizes) Max() FrameLen {
	switch s.kind {
	case sizesRange:
		return s.hi
	case sizesList:
		return slices.Max(s.list)
	case sizesIMIX:
		return imix[len(imix)-1].Frame
	}
	return 0
}

// Mean returns the mean frame length in bytes over one cycle, 0 if there is
// none. Line rate of a mix is the line rate of its mean.
func (s Sizes) Mean() float64 {
	sum, n := 0, 0
	for _, size := range s.Weights() {
		sum += int(size.Frame) * size.Weight
		n += size.Weight
	}
	if n == 0 {
		return 0
	}
	return float64(sum) / float64(n)
}

// Weights returns the distinct lengths in rising order, each with the number of
// times it comes in one cycle.
func (s Sizes) Weights() []Size {
	switch s.kind {
	case sizesIMIX:
		return slices.Clone(imix[:])
	case sizesNone:
		return nil
	}
	var out []Size
	for _, f := range slices.Sorted(slices.Values(s.Cycle())) {
		if n := len(out); n > 0 && out[n-1].Frame == f {
			out[n-1].Weight++
			continue
		}
		out = append(out, Size{Frame: f, Weight: 1})
	}
	return out
}

// Cycle returns the sequence of frame lengths that repeats: a list as given,
// every integer of a range in turn, the IMIX interleaved. It is the same at
// every call, and the caller's to keep.
func (s Sizes) Cycle() []FrameLen {
	switch s.kind {
	case sizesList:
		return slices.Clone(s.list)
	case sizesRange:
		out := make([]FrameLen, 0, s.hi-s.lo+1)
		for f := s.lo; f <= s.hi; f++ {
			out = append(out, f)
		}
		return out
	case sizesIMIX:
		return Interleave(imix[:])
	}
	return nil
}

// Interleave lays weights out as evenly as they go: at each place the length
// that is furthest behind its share comes next, the first listed on a tie
// (smooth weighted round robin).
func Interleave(sizes []Size) []FrameLen {
	total := 0
	for _, s := range sizes {
		total += s.Weight
	}
	credit := make([]int, len(sizes))
	out := make([]FrameLen, 0, total)
	for range total {
		best := 0
		for i := range sizes {
			credit[i] += sizes[i].Weight
			if credit[i] > credit[best] {
				best = i
			}
		}
		credit[best] -= total
		out = append(out, sizes[best].Frame)
	}
	return out
}

// MarshalText prints the sizes as String does.
func (s Sizes) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the sizes as ParseSizes does.
func (s *Sizes) UnmarshalText(text []byte) error {
	v, err := ParseSizes(string(text))
	if err != nil {
		return err
	}
	*s = v
	return nil
}
