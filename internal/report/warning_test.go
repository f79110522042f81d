package report_test

import (
	"regexp"
	"strings"
	"testing"

	"linerate/internal/report"
)

func TestCodesAreSound(t *testing.T) {
	form := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	seen := map[report.Code]bool{}
	for _, d := range report.Codes() {
		if !form.MatchString(string(d.Code)) || seen[d.Code] {
			t.Errorf("code %q is malformed or there twice", d.Code)
		}
		seen[d.Code] = true
		if d.Text == "" || d.Remedy == "" {
			t.Errorf("%s: no text or no remedy", d.Code)
		}
		if strings.Contains(strings.ReplaceAll(d.Remedy, "%%", ""), "%") {
			t.Errorf("%s: a remedy has no arguments: %s", d.Code, d.Remedy)
		}
		if got, ok := report.DefinitionOf(d.Code); !ok || got != d {
			t.Errorf("DefinitionOf(%s) = %+v, %v", d.Code, got, ok)
		}
	}
	for _, code := range []report.Code{"loss_any", "tail_unknown", "link_event", "mode_fallback", "carrier_wait",
		"short_tag", "stalls", "rate_error", "own_queue_latency", "no_latency_clock", "stage_without_counter",
		"tracepoints_unavailable", "hugepage_fallback", "memlock", "tx_budget_unsupported", "clock_trouble",
		"held_frames", "cpu_shared_softirq"} {
		if !seen[code] {
			t.Errorf("no entry for %s", code)
		}
	}
}

func TestWarn(t *testing.T) {
	w := report.Warn(report.WarnTailUnknown, 12, 1, 4)
	if w.Code != "tail_unknown" || w.Text != "lost at least 12, tail unknown: no END frame from 1 of 4 sequence spaces" || w.Remedy == "" {
		t.Errorf("%+v", w)
	}
	if w := report.Warn("unheard_of", "what", 7); w.Code != "unheard_of" || w.Text != "what 7" {
		t.Errorf("%+v", w)
	}
	if _, ok := report.DefinitionOf("unheard_of"); ok {
		t.Error("unheard_of has an entry")
	}
}

func TestInvalidating(t *testing.T) {
	held := report.Warn(report.WarnHeldFrames, 3, "link down")
	reasons := report.Invalidating([]report.Warning{report.Warn(report.WarnLossAny, "demo"), held, {Code: "unheard_of"}})
	if len(reasons) != 1 || reasons[0].Code != "held_frames" || reasons[0].Text != held.Text {
		t.Errorf("%+v", reasons)
	}
}
