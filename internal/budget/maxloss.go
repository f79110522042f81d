package budget

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MaxLoss is how many frames a run may lose and still pass: a number of
// frames, a share of the frames sent, or any number. The zero value allows none.
type MaxLoss struct {
	kind    lossKind
	frames  uint64
	percent float64
}

type lossKind uint8

const (
	lossFrames lossKind = iota
	lossRatio
	lossAny
)

// MaxLossError is a loss limit that cannot be read.
type MaxLossError struct {
	Input  string // what was given
	What   string // what is wrong with it
	Remedy string // what to write instead
}

// Error implements error.
func (e *MaxLossError) Error() string {
	return fmt.Sprintf("max-loss %q: %s; %s", e.Input, e.What, e.Remedy)
}

const maxLossForms = "write a number of frames (0, 100), a share of the frames sent (0.5%) or any"

// AnyLoss is the limit that every loss keeps.
func AnyLoss() MaxLoss { return MaxLoss{kind: lossAny} }

// ParseMaxLoss reads "0", "100", "0.5%" or "any". The error is a *MaxLossError.
func ParseMaxLoss(s string) (MaxLoss, error) {
	if s == "any" {
		return AnyLoss(), nil
	}
	fail := func(what string) (MaxLoss, error) {
		return MaxLoss{}, &MaxLossError{Input: s, What: what, Remedy: maxLossForms}
	}
	if s == "" {
		return fail("empty")
	}
	if strings.HasPrefix(s, "-") {
		return fail("negative")
	}
	if !strings.ContainsAny(s[:1], "0123456789.") {
		return fail("not a number")
	}
	number, ratio := strings.CutSuffix(s, "%")
	if !ratio {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return fail("not a whole number of frames")
		}
		return MaxLoss{frames: n}, nil
	}
	// ParseFloat also knows hexadecimal and underscores; a percentage does not.
	if strings.Trim(number, "0123456789.") != "" {
		return fail("not a percentage")
	}
	p, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(p) {
		return fail("not a percentage")
	}
	if p > 100 {
		return fail("over 100%")
	}
	return MaxLoss{kind: lossRatio, percent: p}, nil
}

// String is the form that ParseMaxLoss reads back to the same limit.
func (m MaxLoss) String() string {
	switch m.kind {
	case lossAny:
		return "any"
	case lossRatio:
		return strconv.FormatFloat(m.percent, 'f', -1, 64) + "%"
	default:
		return strconv.FormatUint(m.frames, 10)
	}
}

// Any reports whether m allows every loss.
func (m MaxLoss) Any() bool { return m.kind == lossAny }

// Allows reports whether lost of sent frames keep the limit.
func (m MaxLoss) Allows(lost, sent uint64) bool {
	switch m.kind {
	case lossAny:
		return true
	case lossRatio:
		return float64(lost)*100 <= m.percent*float64(sent)
	default:
		return lost <= m.frames
	}
}

// MarshalText implements encoding.TextMarshaler.
func (m MaxLoss) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *MaxLoss) UnmarshalText(text []byte) error {
	parsed, err := ParseMaxLoss(string(text))
	if err != nil {
		return err
	}
	*m = parsed
	return nil
}

// Set implements the flag value of --max-loss.
func (m *MaxLoss) Set(s string) error { return m.UnmarshalText([]byte(s)) }

// Type names the flag value of --max-loss.
func (m *MaxLoss) Type() string { return "frames|ratio|any" }
