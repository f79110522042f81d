package report_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"linerate/internal/budget"
	"linerate/internal/report"
)

// someSet is two runs: one that passed and one of which little is known.
func someSet() report.Set {
	runs := []report.Run{demo(), unknown()}
	t := report.RunsTable("ramp", []string{"step", "rate"}, runs, func(i int) []any { return []any{uint64(i + 1), "1Mpps"} })
	return report.Set{Version: "0.1.0", Runs: runs, Tables: []report.Table{t}, Verdict: report.Worst(runs)}
}

func TestWorst(t *testing.T) {
	run := func(v budget.Verdict) report.Run { return report.Run{Verdict: v} }
	for _, c := range []struct {
		want budget.Verdict
		runs []report.Run
	}{
		{budget.Pass, []report.Run{run(budget.Pass), run(budget.Pass)}},
		{budget.Fail, []report.Run{run(budget.Pass), run(budget.Fail)}},
		{budget.Invalid, []report.Run{run(budget.Invalid), run(budget.Fail)}},
		{budget.Invalid, []report.Run{run(budget.Fail), run(budget.Invalid), run(budget.Pass)}},
	} {
		if got := report.Worst(c.runs); got != c.want {
			t.Errorf("%v: %s, want %s", c.runs, got, c.want)
		}
	}
}

func TestRunsTable(t *testing.T) {
	runs := []report.Run{{Verdict: budget.Pass}, {Verdict: budget.Fail}}
	for i := range runs {
		runs[i].Frames = budget.Frames{Sent: budget.Count(100), Received: budget.Count(100 - 50*uint64(i)), Lost: budget.Count(50 * uint64(i))}
		runs[i].Rate.TxPPS, runs[i].Rate.RxPPS = report.Ptr(1e6), report.Ptr(math.NaN())
	}
	table := report.RunsTable("pairs", []string{"pair"}, runs, func(i int) []any { return []any{"ab"[i : i+1]} })
	table.AddSum("sum")
	at := func(row int, column string) any {
		for c, name := range table.Columns {
			if name == column {
				return table.Rows[row][c]
			}
		}
		t.Fatalf("no column %s", column)
		return nil
	}
	for _, c := range []struct {
		row    int
		column string
		want   any
	}{
		{0, "pair", "a"}, {1, "loss_ratio", 0.5}, {1, "verdict", "fail"}, {0, "rx_pps", nil}, {0, "offered", nil},
		{2, "pair", "sum"}, {2, "sent", uint64(200)}, {2, "lost", uint64(50)}, {2, "loss_ratio", 0.25}, {2, "tx_pps", 2e6},
		{2, "rx_pps", nil}, {2, "offered", nil}, {2, "verdict", nil},
	} {
		if got := at(c.row, c.column); got != c.want {
			t.Errorf("row %d, %s: %v, want %v", c.row, c.column, got, c.want)
		}
	}
}

func TestSetText(t *testing.T) {
	var text, line bytes.Buffer
	set := someSet()
	set.Runs[1].Reasons = []budget.Reason{{Code: "lost", Text: "lost is \x1bunknown"}}
	if err := report.WriteSetText(&text, set, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"step", "loss ratio", "0.0000 %", "run 2     lost is ?unknown", "verdict   invalid"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if err := report.WriteSetLine(&line, set); err != nil || bytes.Count(line.Bytes(), []byte("\n")) != 1 || !json.Valid(line.Bytes()) {
		t.Errorf("%v, %d lines", err, bytes.Count(line.Bytes(), []byte("\n")))
	}
	for _, bad := range []func() error{
		func() error { return report.WriteSetJSON(failing{}, set) }, func() error { return report.WriteSetText(failing{}, set, true) },
	} {
		if bad() == nil {
			t.Error("a writer that fails is no error")
		}
	}
}

// failing is a writer that takes nothing.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, bytes.ErrTooLarge }
