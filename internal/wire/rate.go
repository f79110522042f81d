package wire

import (
	"math"
	"strings"
)

// PPS is a rate in frames per second.
type PPS float64

// BitsPerSec is a rate in bits per second; the layer stands in the name of what
// holds it.
type BitsPerSec float64

// RateKind says what the number of a Rate counts.
type RateKind int

// The kinds of a Rate.
const (
	RatePPS     RateKind = iota // frames per second
	RateL1                      // bits per second on the wire, 20 bytes of overhead per frame included
	RateL2                      // bits per second of frames, FCS included
	RatePercent                 // percent of line rate at layer 1
	RateMax                     // as fast as it goes; Value is 0
)

// Rate is an offered load as a user asks for it. The zero Rate is no rate.
type Rate struct {
	Kind  RateKind
	Value float64
}

const rateRemedy = "a rate is a number with pps, kpps, Mpps, Gpps, or bps, kbps, Mbps, Gbps " +
	"followed by -l1 (wire) or -l2 (frames), or % of line rate, or max; as in 1Mpps, 5Gbps-l1, 50%"

// rateForm is the text of one kind: its prefixes are put before its suffix.
type rateForm struct {
	kind     RateKind
	suffix   string
	prefixes []unit // largest first
	least    float64
	most     float64
}

var (
	siPrefixes = []unit{{"G", 9}, {"M", 6}, {"k", 3}, {"", 0}}
	rateForms  = []rateForm{
		{RatePPS, "pps", siPrefixes, 0.001, 1e12},
		{RateL1, "bps-l1", siPrefixes, 1, 1e15},
		{RateL2, "bps-l2", siPrefixes, 1, 1e15},
		{RatePercent, "%", []unit{{"", 0}}, 1e-6, 1000},
	}
)

// String prints the rate so that ParseRate reads back the very same value.
func (r Rate) String() string {
	if r.Kind == RateMax {
		return "max"
	}
	for _, form := range rateForms {
		if form.kind != r.Kind {
			continue
		}
		if r.Value <= 0 {
			return "0" + form.suffix
		}
		for _, p := range form.prefixes {
			if p.exp == 0 || r.Value >= float64(pow10(p.exp)) {
				return plain(r.Value, p.exp) + p.name + form.suffix
			}
		}
	}
	return "unknown"
}

// ParseRate reads "1Mpps", "100kpps", "5Gbps-l1", "5Gbps-l2", "50%" or "max".
// Upper and lower case are the same. A bare number, zero, a negative number and
// an unknown unit are a *ParseError, whose text lists the units.
func ParseRate(s string) (Rate, error) {
	fail := func(what string) (Rate, error) {
		return Rate{}, &ParseError{Input: s, What: what, Remedy: rateRemedy}
	}
	text := strings.TrimSpace(s)
	if strings.EqualFold(text, "max") {
		return Rate{Kind: RateMax}, nil
	}
	num, suffix, ok := splitNumber(text)
	suffix = strings.TrimSpace(suffix)
	switch {
	case strings.HasPrefix(text, "-"):
		return fail("a rate is not negative")
	case !ok:
		return fail("not a rate")
	case suffix == "":
		return fail("a rate needs a unit")
	}
	form, exp, ok := findForm(suffix)
	if !ok {
		if _, _, bits := findForm(suffix + "-l1"); bits {
			return fail("bits per second of which layer")
		}
		return fail("unknown unit of rate")
	}
	v := scaled(num, exp)
	if v < form.least || v > form.most {
		return fail("a rate is above zero and within reason")
	}
	return Rate{Kind: form.kind, Value: v}, nil
}

// findForm looks a suffix such as "kpps" up.
func findForm(suffix string) (rateForm, int, bool) {
	for _, form := range rateForms {
		for _, p := range form.prefixes {
			if strings.EqualFold(suffix, p.name+form.suffix) {
				return form, p.exp, true
			}
		}
	}
	return rateForm{}, 0, false
}

// lineRateSlack forgives the rounding of a rate that was computed from line
// rate itself, and no more.
const lineRateSlack = 1 + 1e-9

// PPS turns the rate into frames per second on a link of this speed, for frames
// of this mean length in bytes, FCS included. "max" gives unlimited and 0. The
// error is an *AboveLineRateError if the link cannot carry the rate, or a
// *RangeError for a length or speed without meaning. An unknown speed (0) is an
// error only for a percentage; otherwise the rate is then taken as it is.
func (r Rate) PPS(speed Speed, meanWire float64) (pps PPS, unlimited bool, err error) {
	if r.Kind == RateMax {
		return 0, true, nil
	}
	if !(meanWire > 0) || math.IsInf(meanWire, 0) {
		return 0, false, &RangeError{What: "mean frame length in bytes", Value: meanWire}
	}
	if !(r.Value > 0) || math.IsInf(r.Value, 0) {
		return 0, false, &RangeError{What: "rate", Value: r.Value}
	}
	line := speed.LineRateOf(meanWire)
	switch r.Kind {
	case RatePPS:
		pps = PPS(r.Value)
	case RateL1:
		pps = PPS(r.Value / (8 * (meanWire + L1OverheadBytes)))
	case RateL2:
		pps = PPS(r.Value / (8 * meanWire))
	case RatePercent:
		if speed == 0 {
			return 0, false, &RangeError{What: "link speed in bit/s", Value: 0}
		}
		pps = line * PPS(r.Value/100)
	default:
		return 0, false, &RangeError{What: "kind of rate", Value: float64(r.Kind)}
	}
	if speed != 0 && pps > line*lineRateSlack {
		return 0, false, &AboveLineRateError{Asked: pps, Line: line, Speed: speed}
	}
	return pps, false, nil
}

// MarshalText prints the rate as String does.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the rate as ParseRate does.
func (r *Rate) UnmarshalText(text []byte) error {
	v, err := ParseRate(string(text))
	if err != nil {
		return err
	}
	*r = v
	return nil
}
