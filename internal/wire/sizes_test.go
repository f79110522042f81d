package wire

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestParseSizes(t *testing.T) {
	for _, c := range []struct {
		in, text string
		min, max FrameLen
		mean     float64
		cycle    int
	}{
		{"64", "64", 64, 64, 64, 1},
		{" 1518 ", "1518", 1518, 1518, 1518, 1},
		{"9728", "9728", 9728, 9728, 9728, 1},
		{"1518,64,128", "1518,64,128", 64, 1518, 570, 3},
		{"64, 64,1518", "64,64,1518", 64, 1518, 1646.0 / 3, 3},
		{"64-1518", "64-1518", 64, 1518, 791, 1455},
		{"64-65", "64-65", 64, 65, 64.5, 2},
		{"100-100", "100", 100, 100, 100, 1},
		{"imix", "imix", 64, 1518, 4342.0 / 12, 12},
		{"IMIX", "imix", 64, 1518, 4342.0 / 12, 12},
	} {
		s, err := ParseSizes(c.in)
		if err != nil {
			t.Errorf("ParseSizes(%q): %v", c.in, err)
			continue
		}
		if s.String() != c.text || s.Min() != c.min || s.Max() != c.max ||
			math.Abs(s.Mean()-c.mean) > 1e-12 || len(s.Cycle()) != c.cycle {
			t.Errorf("ParseSizes(%q) = %q min %d max %d mean %v cycle of %d; want %+v",
				c.in, s, s.Min(), s.Max(), s.Mean(), len(s.Cycle()), c)
		}
	}
}

func TestParseSizesRefuses(t *testing.T) {
	for in, what := range map[string]string{
		"":                                 "not a frame length",
		"sixty":                            "not a frame length",
		"64,":                              "not a frame length",
		",64":                              "not a frame length",
		"64B":                              "not a frame length",
		"+64":                              "not a frame length",
		"-64":                              "not a frame length",
		"64.0":                             "not a frame length",
		"64-":                              "not a frame length",
		"64-128-256":                       "not a frame length",
		"64-128,256":                       "not a frame length",
		"63":                               "too short",
		"0":                                "too short",
		"0-64":                             "too short",
		"9729":                             "too long",
		"64-9729":                          "too long",
		"18446744073709551680":             "too long",
		"1518-64":                          "upwards",
		strings.Repeat("64,", 1024) + "64": "more than 1024",
	} {
		_, err := ParseSizes(in)
		var parse *ParseError
		if !errors.As(err, &parse) || !strings.Contains(parse.What, what) || !strings.Contains(parse.Remedy, "imix") {
			t.Errorf("ParseSizes(%.30q): error %v, want %q and the forms", in, err, what)
		}
	}
}

func TestSizesCycle(t *testing.T) {
	cycle := func(in string) []FrameLen {
		s, err := ParseSizes(in)
		if err != nil {
			t.Fatal(err)
		}
		return s.Cycle()
	}
	if got, want := cycle("1518,64"), []FrameLen{1518, 64}; !slices.Equal(got, want) {
		t.Errorf("list cycles as %v, want the order given", got)
	}
	if got, want := cycle("64-67"), []FrameLen{64, 65, 66, 67}; !slices.Equal(got, want) {
		t.Errorf("range cycles as %v, want %v", got, want)
	}
	got := cycle("imix")
	count := map[FrameLen]int{}
	for _, f := range got {
		count[f]++
	}
	if count[64] != 7 || count[594] != 4 || count[1518] != 1 || len(got) != 12 {
		t.Fatalf("imix cycles as %v, want 7:4:1", got)
	}
	// Interleaved: never more than two short frames, nor two long ones, in a row.
	for i := range got {
		a, b, c := got[i], got[(i+1)%12], got[(i+2)%12]
		if a == b && b == c || a != 64 && b != 64 && c != 64 {
			t.Errorf("imix bunches at %d: %v", i, got)
		}
	}
}

func TestSizesWeights(t *testing.T) {
	for in, want := range map[string][]Size{
		"imix":       {{64, 7}, {594, 4}, {1518, 1}},
		"1518,64,64": {{64, 2}, {1518, 1}},
		"64-66":      {{64, 1}, {65, 1}, {66, 1}},
	} {
		s, err := ParseSizes(in)
		if err != nil || !slices.Equal(s.Weights(), want) {
			t.Errorf("%s weighs %v, %v; want %v", in, s.Weights(), err, want)
		}
	}
}

func TestSizesAreNotShared(t *testing.T) {
	s, err := ParseSizes("64,128")
	if err != nil {
		t.Fatal(err)
	}
	s.Cycle()[0] = 9
	if s.Cycle()[0] != 64 {
		t.Error("a caller can change the sizes through their cycle")
	}
	i, err := ParseSizes("imix")
	if err != nil {
		t.Fatal(err)
	}
	i.Weights()[0].Weight = 99
	if i.Weights()[0].Weight != 7 {
		t.Error("a caller can change the IMIX through its weights")
	}
}

func TestZeroSizes(t *testing.T) {
	var s Sizes
	if s.String() != "" || s.Min() != 0 || s.Max() != 0 || s.Mean() != 0 || s.Cycle() != nil {
		t.Errorf("the zero Sizes is %q %d %d %v %v", s, s.Min(), s.Max(), s.Mean(), s.Cycle())
	}
	if _, err := FixedSize(-64); err == nil {
		t.Error("a negative length was taken")
	}
	if one, err := FixedSize(64); err != nil || one.String() != "64" {
		t.Errorf("FixedSize(64) = %q, %v", one, err)
	}
}

func FuzzParseSizes(f *testing.F) {
	for _, s := range []string{"64", "64,128,1518", "64-1518", "imix", "1518-64", "64-", ",", "99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		s, err := ParseSizes(in)
		if err != nil {
			return
		}
		again, err := ParseSizes(s.String())
		if err != nil || again.String() != s.String() || !slices.Equal(again.Cycle(), s.Cycle()) {
			t.Fatalf("%q -> %q -> %q, %v", in, s, again, err)
		}
		if s.Min() < MinFrame || s.Max() > MaxFrame || s.Min() > s.Max() || len(s.Cycle()) == 0 {
			t.Fatalf("%q = %q from %d to %d", in, s, s.Min(), s.Max())
		}
		if m := s.Mean(); m < float64(s.Min()) || m > float64(s.Max()) {
			t.Fatalf("%q has mean %v", in, m)
		}
	})
}
