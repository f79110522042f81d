package wire

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestRamp(t *testing.T) {
	for text, want := range map[string]string{
		"1..14Mpps/1Mpps/10s":            "1Mpps 2Mpps 3Mpps 4Mpps 5Mpps 6Mpps 7Mpps 8Mpps 9Mpps 10Mpps 11Mpps 12Mpps 13Mpps 14Mpps",
		"100kpps..1Mpps/300kpps/1s":      "100kpps 400kpps 700kpps 1Mpps",
		"1..2.5Mpps/1Mpps/1s":            "1Mpps 2Mpps",
		"30..10%/10%/500ms":              "30% 20% 10%",
		"5Gbps-l1..5Gbps-l1/1Gbps-l1/1s": "5Gbps-l1",
		"10..50%/20%/1s":                 "10% 30% 50%",
	} {
		r, err := ParseRamp(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got []string
		for _, s := range r.Steps() {
			got = append(got, s.String())
		}
		if strings.Join(got, " ") != want || r.Each <= 0 {
			t.Errorf("%s: %v every %s, want %s", text, got, r.Each, want)
		}
	}
	if r, _ := ParseRamp("1..2Mpps/1Mpps/90s"); r.Each != 90*time.Second {
		t.Errorf("each %s", r.Each)
	}
	for text, says := range map[string]string{
		"1..2Mpps":                  "three parts",
		"1Mpps/1Mpps/1s":            "from..to",
		"1..2/1/1s":                 "needs a unit",
		"1Mpps..max/1Mpps/1s":       "one kind",
		"max..max/max/1s":           "one kind",
		"1..2Mpps/1Gbps-l1/1s":      "one kind",
		"1..2Mpps/0Mpps/1s":         "above zero",
		"1..2Mpps/1Mpps/10":         "no time",
		"1..2Mpps/1Mpps/-1s":        "no time",
		"1..2000Mpps/1Mpps/1s":      "at most 1000",
		"0.000001..14Mpps/1pps/10s": "at most 1000",
	} {
		_, err := ParseRamp(text)
		var parse *ParseError
		if !errors.As(err, &parse) || !strings.Contains(parse.What, says) || !strings.Contains(parse.Remedy, "/10s") {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
	if IsRamp("1Mpps") || !IsRamp("1..2Mpps/1Mpps/1s") {
		t.Error("a ramp is not told from a rate")
	}
}

func FuzzParseRamp(f *testing.F) {
	f.Add("1..14Mpps/1Mpps/10s")
	f.Add("30..10%/10%/500ms")
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRamp(s)
		if err != nil {
			return
		}
		steps := r.Steps()
		if len(steps) == 0 || len(steps) > MaxRampSteps || steps[0] != r.From {
			t.Fatalf("%q: %d steps", s, len(steps))
		}
		for _, x := range steps {
			if !(x.Value > 0) {
				t.Fatalf("%q: a step of %v", s, x)
			}
		}
	})
}
