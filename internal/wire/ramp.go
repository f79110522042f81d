package wire

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// MaxRampSteps is how many steps a ramp may have.
const MaxRampSteps = 1000

const rampRemedy = "--rate 1..14Mpps/1Mpps/10s: from..to/step/time of each step"

// Ramp is a rate that goes in steps from one value to another, up or down.
type Ramp struct {
	From, To, Step Rate // of one kind
	Each           time.Duration
}

// IsRamp tells a ramp from a rate.
func IsRamp(s string) bool { return strings.Contains(s, "..") }

// ParseRamp reads "1..14Mpps/1Mpps/10s": from..to/step/time. The unit may stand
// at the end of the range only. The error is a *ParseError.
func ParseRamp(s string) (Ramp, error) {
	fail := func(format string, args ...any) (Ramp, error) {
		return Ramp{}, &ParseError{Input: s, What: fmt.Sprintf(format, args...), Remedy: rampRemedy}
	}
	parts := strings.Split(s, "/")
	if len(parts) != 3 {
		return fail("a ramp has three parts")
	}
	from, to, ok := strings.Cut(parts[0], "..")
	if !ok {
		return fail("a ramp goes from..to")
	}
	if _, unit, ok := splitNumber(strings.TrimSpace(from)); ok && strings.TrimSpace(unit) == "" {
		if _, unit, ok := splitNumber(strings.TrimSpace(to)); ok {
			from += unit
		}
	}
	var r Ramp
	for _, p := range []struct {
		text string
		to   *Rate
	}{{from, &r.From}, {to, &r.To}, {parts[1], &r.Step}} {
		v, err := ParseRate(p.text)
		if parse := (*ParseError)(nil); errors.As(err, &parse) {
			return fail("%q: %s", p.text, parse.What)
		}
		*p.to = v
	}
	if r.From.Kind != r.To.Kind || r.From.Kind != r.Step.Kind || r.From.Kind == RateMax {
		return fail("from, to and step need units of one kind, and max is none")
	}
	each, err := time.ParseDuration(parts[2])
	if err != nil || each <= 0 {
		return fail("%q is no time of a step", parts[2])
	}
	r.Each = each
	if n := r.count(); n > MaxRampSteps {
		return fail("%.0f steps, at most %d", n, MaxRampSteps)
	}
	return r, nil
}

// rampSlack forgives the rounding of a quotient that should be whole.
const rampSlack = 1e-9

// count is the number of steps, both ends included where the step divides.
func (r Ramp) count() float64 {
	return math.Floor(math.Abs(r.To.Value-r.From.Value)/r.Step.Value+rampSlack) + 1
}

// Steps lists the rates from From on; the last is the nearest to To that the
// step reaches.
func (r Ramp) Steps() []Rate {
	step := r.Step.Value
	if r.To.Value < r.From.Value {
		step = -step
	}
	steps := make([]Rate, 0, int(min(r.count(), MaxRampSteps)))
	for i := range cap(steps) {
		steps = append(steps, Rate{Kind: r.From.Kind, Value: r.From.Value + float64(i)*step})
	}
	return steps
}
