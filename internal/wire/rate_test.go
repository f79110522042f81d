package wire

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
)

func TestParseRate(t *testing.T) {
	for in, want := range map[string]Rate{
		"1Mpps":        {RatePPS, 1e6},
		"100kpps":      {RatePPS, 1e5},
		"500pps":       {RatePPS, 500},
		"14.88Mpps":    {RatePPS, 14_880_000},
		"0.1Gpps":      {RatePPS, 1e8},
		"1 mpps":       {RatePPS, 1e6},
		" 2KPPS ":      {RatePPS, 2000},
		"5Gbps-l1":     {RateL1, 5e9},
		"5Gbps-l2":     {RateL2, 5e9},
		"1500kbps-l2":  {RateL2, 1.5e6},
		"9600bps-L1":   {RateL1, 9600},
		"50%":          {RatePercent, 50},
		"0.5 %":        {RatePercent, 0.5},
		"max":          {RateMax, 0},
		"MAX":          {RateMax, 0},
		"0.001pps":     {RatePPS, 0.001},
		"1000000Mpps":  {RatePPS, 1e12},
		"14.880952381": {},
	} {
		got, err := ParseRate(in)
		if (err != nil) != (want == Rate{}) || got != want {
			t.Errorf("ParseRate(%q) = %+v, %v; want %+v", in, got, err, want)
		}
	}
}

func TestParseRateRefuses(t *testing.T) {
	for in, what := range map[string]string{
		"":                              "not a rate",
		"fast":                          "not a rate",
		".5Mpps":                        "not a rate",
		"1.Mpps":                        "not a rate",
		"NaNpps":                        "not a rate",
		"infpps":                        "not a rate",
		"0x10pps":                       "unknown unit",
		"1e6pps":                        "unknown unit",
		"1_000pps":                      "unknown unit",
		"1000":                          "needs a unit",
		"5 ":                            "needs a unit",
		"0pps":                          "above zero",
		"0%":                            "above zero",
		"0.0Mpps":                       "above zero",
		"-1Mpps":                        "not negative",
		"-0pps":                         "not negative",
		"1Tpps":                         "unknown unit",
		"5Gbps":                         "which layer",
		"5Gbps-l3":                      "unknown unit",
		"5G":                            "unknown unit",
		"1MppsX":                        "unknown unit",
		"50%%":                          "unknown unit",
		"maximum":                       "not a rate",
		"2000Gpps":                      "within reason",
		"1001%":                         "within reason",
		"0.0001pps":                     "within reason",
		strings.Repeat("9", 41) + "pps": "not a rate",
	} {
		_, err := ParseRate(in)
		var parse *ParseError
		if !errors.As(err, &parse) {
			t.Errorf("ParseRate(%q): error %v, want a *ParseError", in, err)
			continue
		}
		if parse.Input != in || !strings.Contains(parse.What, what) {
			t.Errorf("ParseRate(%q): %+v, want what %q", in, parse, what)
		}
		for _, unit := range []string{"kpps", "Gbps", "-l1", "-l2", "%", "max"} {
			if !strings.Contains(err.Error(), unit) {
				t.Errorf("ParseRate(%q): error %q does not name the unit %s", in, err, unit)
			}
		}
	}
}

func TestRateString(t *testing.T) {
	for want, r := range map[string]Rate{
		"1Mpps":         {RatePPS, 1e6},
		"999pps":        {RatePPS, 999},
		"1.5kpps":       {RatePPS, 1500},
		"14.880952Mpps": {RatePPS, 14_880_952},
		"5Gbps-l1":      {RateL1, 5e9},
		"1000Gbps-l2":   {RateL2, 1e12},
		"33.3%":         {RatePercent, 33.3},
		"0.001pps":      {RatePPS, 0.001},
		"max":           {RateMax, 0},
		"0pps":          {},
		"unknown":       {RateKind(99), 1},
	} {
		if got := r.String(); got != want {
			t.Errorf("%+v prints %q, want %q", r, got, want)
		}
	}
}

func TestRatePPS(t *testing.T) {
	for _, c := range []struct {
		rate  string
		speed Speed
		mean  float64
		want  float64
	}{
		{"1Mpps", Speed10G, 64, 1e6},
		{"1Mpps", 0, 64, 1e6}, // speed unknown: nothing to compare with
		{"50%", Speed10G, 64, 7440476.190476},
		{"100%", Speed10G, 64, 14880952.380952},
		{"10Gbps-l1", Speed10G, 64, 14880952.380952},
		{"5Gbps-l1", Speed10G, 1518, 406371.911573},
		{"5.12Gbps-l2", Speed10G, 64, 1e7},
		{"1Gbps-l2", 0, 1250, 100000},
		{"14.880952Mpps", Speed10G, 64, 14880952},
	} {
		r, err := ParseRate(c.rate)
		if err != nil {
			t.Fatal(err)
		}
		got, unlimited, err := r.PPS(c.speed, c.mean)
		if err != nil || unlimited || math.Abs(float64(got)-c.want) > 1e-5 {
			t.Errorf("%s at %v, mean %v = %v, %v, %v; want %v", c.rate, c.speed, c.mean, got, unlimited, err, c.want)
		}
	}
	got, unlimited, err := Rate{Kind: RateMax}.PPS(0, 0)
	if got != 0 || !unlimited || err != nil {
		t.Errorf("max = %v, %v, %v; want 0, unlimited, no error", got, unlimited, err)
	}
}

func TestRatePPSAboveLineRate(t *testing.T) {
	for _, in := range []string{"14.8810Mpps", "100.001%", "10.0001Gbps-l1", "7.62Gbps-l2"} {
		r, err := ParseRate(in)
		if err != nil {
			t.Fatal(err)
		}
		var above *AboveLineRateError
		if _, _, err := r.PPS(Speed10G, 64); !errors.As(err, &above) {
			t.Errorf("%s: error %v, want an *AboveLineRateError", in, err)
			continue
		}
		if above.Speed != Speed10G || above.Asked <= above.Line ||
			!strings.Contains(above.Error(), "line rate of 10G, which is 14.881 Mpps") {
			t.Errorf("%s: error %q does not say it", in, above)
		}
	}
}

func TestRatePPSRefusesNonsense(t *testing.T) {
	one := Rate{RatePPS, 1}
	for name, f := range map[string]func() error{
		"no length":    func() error { _, _, err := one.PPS(Speed10G, 0); return err },
		"NaN length":   func() error { _, _, err := one.PPS(Speed10G, math.NaN()); return err },
		"endless":      func() error { _, _, err := one.PPS(Speed10G, math.Inf(1)); return err },
		"no rate":      func() error { _, _, err := Rate{}.PPS(Speed10G, 64); return err },
		"NaN rate":     func() error { _, _, err := Rate{RatePPS, math.NaN()}.PPS(Speed10G, 64); return err },
		"Inf rate":     func() error { _, _, err := Rate{RatePPS, math.Inf(1)}.PPS(0, 64); return err },
		"no speed":     func() error { _, _, err := Rate{RatePercent, 50}.PPS(0, 64); return err },
		"kind unknown": func() error { _, _, err := Rate{RateKind(9), 1}.PPS(Speed10G, 64); return err },
	} {
		var rangeErr *RangeError
		if err := f(); !errors.As(err, &rangeErr) || rangeErr.Error() == "" {
			t.Errorf("%s: error %v, want a *RangeError", name, err)
		}
	}
}

func TestRateAndSizesInJSON(t *testing.T) {
	type spec struct {
		Rate  Rate
		Frame Sizes
	}
	in := `{"Rate":"1.5Mpps","Frame":"64-1518"}`
	var s spec
	if err := json.Unmarshal([]byte(in), &s); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(s)
	if err != nil || string(out) != in {
		t.Errorf("got %s, %v; want %s", out, err, in)
	}
	for _, bad := range []string{`{"Rate":"5"}`, `{"Frame":"5"}`} {
		if err := json.Unmarshal([]byte(bad), &s); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

func TestParseErrorIsBounded(t *testing.T) {
	_, err := ParseRate(strings.Repeat("x", 1<<16))
	if n := len(err.Error()); n > 400 {
		t.Errorf("the error for 64 KiB of input has %d bytes", n)
	}
}

func FuzzParseRate(f *testing.F) {
	for _, s := range []string{"1Mpps", "50%", "5Gbps-l1", "max", "0.1", "14.880952380952381Mpps", "-1pps"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		r, err := ParseRate(in)
		if err != nil {
			return
		}
		if r.Kind != RateMax && (!(r.Value > 0) || math.IsInf(r.Value, 0)) {
			t.Fatalf("ParseRate(%q) = %+v", in, r)
		}
		again, err := ParseRate(r.String())
		if err != nil || again != r {
			t.Fatalf("%q -> %+v -> %q -> %+v, %v", in, r, r.String(), again, err)
		}
		if pps, _, err := r.PPS(Speed10G, 64); err == nil && math.IsNaN(float64(pps)) {
			t.Fatalf("%q is NaN pps", in)
		}
	})
}

// Any value a program computes, not only what was typed, survives its text.
func FuzzRateString(f *testing.F) {
	f.Add(uint8(0), 14880952.380952381)
	f.Add(uint8(1), 5e9/3)
	f.Add(uint8(3), 100.0/3)
	f.Fuzz(func(t *testing.T, kind uint8, v float64) {
		form := rateForms[int(kind)%len(rateForms)]
		if !(v >= form.least && v <= form.most) {
			return
		}
		r := Rate{form.kind, v}
		got, err := ParseRate(r.String())
		if err != nil || got != r {
			t.Fatalf("%+v -> %q -> %+v, %v", r, r.String(), got, err)
		}
	})
}
