package budget

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
)

func clean() Frames {
	return Frames{Offered: Count(1000), Unsent: Count(0), Refused: Count(0), Sent: Count(1000),
		Received: Count(1000), Lost: Count(0), Duplicate: Count(0), Corrupt: Count(0), Unexplained: Count(0)}
}

type judgeCase struct {
	name   string
	change func(*Judgement)
	want   Verdict
	codes  string
}

func off(r float64) *float64 { return &r }

// limit reads a limit that is known to be good.
func limit(s string) MaxLoss {
	m, err := ParseMaxLoss(s)
	if err != nil {
		panic(err)
	}
	return m
}

func judgeCases() []judgeCase {
	return []judgeCase{
		{"clean", func(*Judgement) {}, Pass, ""},
		{"one lost", func(j *Judgement) { j.Frames.Lost = Count(1) }, Fail, "lost"},
		{"lost within frames", func(j *Judgement) { j.Frames.Lost, j.MaxLoss = Count(5), limit("5") }, Pass, ""},
		{"lost over frames", func(j *Judgement) { j.Frames.Lost, j.MaxLoss = Count(6), limit("5") }, Fail, "lost"},
		{"lost within ratio", func(j *Judgement) { j.Frames.Lost, j.MaxLoss = Count(5), limit("0.5%") }, Pass, ""},
		{"lost over ratio", func(j *Judgement) { j.Frames.Lost, j.MaxLoss = Count(6), limit("0.5%") }, Fail, "lost"},
		{"any", func(j *Judgement) { j.Frames.Lost, j.MaxLoss = Count(999), AnyLoss() }, Pass, ""},
		{"unexplained under any", func(j *Judgement) { j.Frames.Unexplained, j.MaxLoss = Count(1), AnyLoss() }, Fail, "unexplained"},
		{"duplicate", func(j *Judgement) { j.Frames.Duplicate = Count(1) }, Fail, "duplicate"},
		{"corrupt", func(j *Judgement) { j.Frames.Corrupt = Count(1) }, Fail, "corrupt"},
		{"rate kept", func(j *Judgement) { j.RateError, j.MaxRateError = off(-0.01), 0.01 }, Pass, ""},
		{"rate missed", func(j *Judgement) { j.RateError, j.MaxRateError = off(-0.011), 0.01 }, Fail, "rate_error"},
		{"rate is no number", func(j *Judgement) { j.RateError, j.MaxRateError = off(math.NaN()), 0.01 }, Fail, "rate_error"},
		{"no rate asked", func(j *Judgement) { j.MaxRateError = 0 }, Pass, ""},
		{"event", func(j *Judgement) { j.Invalid = []Reason{{"link_event", "down"}} }, Invalid, "link_event"},
		{"event and loss", func(j *Judgement) {
			j.Frames.Lost, j.Invalid = Count(1), []Reason{{"link_event", "down"}}
		}, Invalid, "link_event lost"},
		{"unexplained unknown", func(j *Judgement) { j.Frames.Unexplained = nil }, Invalid, "unknown"},
		{"lost unknown", func(j *Judgement) { j.Frames.Lost = nil }, Invalid, "unknown"},
		{"lost unknown and of no interest", func(j *Judgement) { j.Frames.Lost, j.MaxLoss = nil, AnyLoss() }, Pass, ""},
		{"sender alone", func(j *Judgement) {
			j.OneEnd, j.Frames.Lost, j.Frames.Received, j.Frames.Unexplained = true, nil, nil, nil
		}, Pass, ""},
		{"sender alone, its half open", func(j *Judgement) {
			j.OneEnd, j.Frames.Unexplained, j.Known = true, nil, 2
		}, Fail, "unexplained"},
	}
}

func TestJudge(t *testing.T) {
	for _, tt := range judgeCases() {
		j := Judgement{Frames: clean()}
		tt.change(&j)
		got, reasons := Judge(j)
		var codes []string
		for _, r := range reasons {
			codes = append(codes, r.Code)
			if r.Text == "" {
				t.Errorf("%s: %s says nothing", tt.name, r.Code)
			}
		}
		if got != tt.want || strings.Join(codes, " ") != tt.codes {
			t.Errorf("%s: %s for %v, want %s for %q", tt.name, got, reasons, tt.want, tt.codes)
		}
	}
}

func TestParseMaxLoss(t *testing.T) {
	good := map[string]string{"0": "0", "100": "100", "0.5%": "0.5%", "any": "any", "0%": "0%", "100%": "100%",
		".5%": "0.5%", "007": "7", "18446744073709551615": "18446744073709551615"}
	for in, want := range good {
		m, err := ParseMaxLoss(in)
		if err != nil || m.String() != want {
			t.Errorf("%q: %v, %v; want %s", in, m, err, want)
		}
	}
	for _, in := range []string{"", "-1", "-1%", "0.5", "1e3", "101%", "NaN%", "Inf%", "0x1p3%", "1_0%", "1 ", " 1",
		"Any", "%", ".%", "1%%", "ten", "18446744073709551616"} {
		m, err := ParseMaxLoss(in)
		var bad *MaxLossError
		if !errors.As(err, &bad) || bad.Input != in || !strings.Contains(err.Error(), "0.5%") {
			t.Errorf("%q: %v, %v", in, m, err)
		}
	}
}

func TestMaxLossInJSON(t *testing.T) {
	type spec struct {
		MaxLoss MaxLoss `json:"max_loss"`
	}
	var s spec
	if err := json.Unmarshal([]byte(`{"max_loss":"0.5%"}`), &s); err != nil {
		t.Fatal(err)
	}
	if out, err := json.Marshal(s); err != nil || string(out) != `{"max_loss":"0.5%"}` {
		t.Errorf("%s, %v", out, err)
	}
	if err := json.Unmarshal([]byte(`{"max_loss":"lots"}`), &s); err == nil {
		t.Error("lots is a limit")
	}
}

func FuzzParseMaxLoss(f *testing.F) {
	for _, s := range []string{"0", "100", "0.5%", "any", "", "-1", "1e3%", "99.999999999999999%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := ParseMaxLoss(s)
		if err != nil {
			var bad *MaxLossError
			if !errors.As(err, &bad) {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		again, err := ParseMaxLoss(m.String())
		if err != nil || again != m {
			t.Fatalf("%q reads as %v, which reads as %v, %v", s, m, again, err)
		}
		if !m.Allows(0, 1000) {
			t.Fatalf("%q does not allow no loss", s)
		}
	})
}
