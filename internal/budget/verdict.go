package budget

import (
	"fmt"
	"math"
)

// Verdict is the judgement of a run.
type Verdict string

// The verdicts.
const (
	Pass    Verdict = "pass"    // every limit was kept
	Fail    Verdict = "fail"    // a limit was broken
	Invalid Verdict = "invalid" // the measurement is worth nothing
)

// DefaultMaxRateError is the rate error allowed when a rate was asked for.
const DefaultMaxRateError = 0.01

// Reason says why a verdict is not pass.
type Reason struct {
	Code string // as in the table of warnings, or one of the Reason constants
	Text string
}

// The codes of the reasons that Judge itself finds.
const (
	ReasonLost        = "lost"
	ReasonUnexplained = "unexplained"
	ReasonUnknown     = "unknown"
	ReasonDuplicate   = "duplicate"
	ReasonCorrupt     = "corrupt"
	ReasonRateError   = "rate_error"
)

// Judgement is what a verdict is formed on.
type Judgement struct {
	Frames  Frames
	MaxLoss MaxLoss
	// RateError is the relative error of the offered rate, nil if none was asked.
	RateError *float64
	// MaxRateError is the largest |RateError| that passes.
	MaxRateError float64
	// OneEnd says that only one end was in hand: what the other would know is
	// then not held against the run.
	OneEnd bool
	// Known is Result.Known: with one end it must be 0 as unexplained must be
	// with two.
	Known uint64
	// Invalid lists what made the measurement worthless.
	Invalid []Reason
}

// Judge forms the verdict. The reasons that made it stand first; a run that
// passes has none.
func Judge(j Judgement) (Verdict, []Reason) {
	invalid := append([]Reason(nil), j.Invalid...)
	invalid = append(invalid, j.unknowns()...)
	failed := j.failures()
	switch {
	case len(invalid) > 0:
		return Invalid, append(invalid, failed...)
	case len(failed) > 0:
		return Fail, failed
	default:
		return Pass, nil
	}
}

// unknowns lists the numbers that a run with both ends in hand cannot do
// without.
func (j Judgement) unknowns() []Reason {
	if j.OneEnd {
		return nil
	}
	var reasons []Reason
	if j.Frames.Unexplained == nil {
		reasons = append(reasons, Reason{ReasonUnknown, "unexplained is unknown: a stage has no counter"})
	}
	if j.Frames.Lost == nil && !j.MaxLoss.Any() {
		reasons = append(reasons, Reason{ReasonUnknown, "lost is unknown"})
	}
	return reasons
}

func (j Judgement) failures() []Reason {
	var reasons []Reason
	add := func(code, format string, args ...any) {
		reasons = append(reasons, Reason{code, fmt.Sprintf(format, args...)})
	}
	f := j.Frames
	unexplained := orZero(f.Unexplained)
	if f.Unexplained == nil {
		unexplained = j.Known
	}
	if unexplained > 0 {
		add(ReasonUnexplained, "unexplained %d", unexplained)
	}
	if f.Lost != nil && !j.MaxLoss.Allows(*f.Lost, orZero(f.Sent)) {
		add(ReasonLost, "lost %d, allowed %s", *f.Lost, j.MaxLoss)
	}
	if n := orZero(f.Duplicate); n > 0 {
		add(ReasonDuplicate, "duplicate %d", n)
	}
	if n := orZero(f.Corrupt); n > 0 {
		add(ReasonCorrupt, "corrupt %d", n)
	}
	// Written so that NaN does not pass.
	if j.RateError != nil && !(math.Abs(*j.RateError) <= j.MaxRateError) {
		add(ReasonRateError, "offered rate off by %.2f %%, allowed %.2f %%",
			*j.RateError*100, j.MaxRateError*100)
	}
	return reasons
}
