package report_test

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"

	"linerate/internal/budget"
	"linerate/internal/report"
)

var sgr = regexp.MustCompile(`\x1b\[[0-9]+m`)

func text(t *testing.T, run report.Run, colours bool) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.WriteText(&b, run, colours); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// contains looks for parts wherever the lines are broken.
func contains(t *testing.T, got string, parts ...string) {
	t.Helper()
	flat := strings.Join(strings.Fields(got), " ")
	for _, part := range parts {
		if !strings.Contains(flat, part) {
			t.Errorf("no %q in\n%s", part, got)
		}
	}
}

func TestTextColoursTheVerdict(t *testing.T) {
	contains(t, text(t, demo(), true), "\x1b[32munexplained 0\x1b[0m", "\x1b[32mpass\x1b[0m")
	contains(t, text(t, lostOne(), true), "\x1b[31munexplained 1\x1b[0m", "\x1b[31mlost 1\x1b[0m",
		"\x1b[31mwire: 1 vanished between device_tx (tx_packets) and device_rx (rx_packets)\x1b[0m", "\x1b[31mfail")
	contains(t, text(t, linkDown(), true), "\x1b[33minvalid")
	contains(t, text(t, overload(), true), "\x1b[33mlost 1,203\x1b[0m") // allowed
}

func TestTextOfOneEndSaysWhatIsUnknown(t *testing.T) {
	for _, c := range []struct {
		run  report.Run
		want string
	}{{blast(), "unexplained unknown: no receiver in hand"}, {sink(), "unexplained unknown: no sender in hand"}} {
		got := text(t, c.run, false)
		contains(t, got, c.want)
		if strings.Contains(got, "unexplained 0") {
			t.Errorf("one end claims that all is explained:\n%s", got)
		}
	}
	run := blast()
	run.Budget[8].Frames = budget.Count(*run.Budget[8].Frames - 2) // device_tx
	run.Closed = budget.Close(run.Budget)
	contains(t, text(t, run, false), "tx_kernel: 2 vanished between completed (completion consumer) and device_tx (tx_packets)")
}

func TestTextNamesTheFaultyCounter(t *testing.T) {
	for off, how := range map[int64]string{7: "7 too high", -7: "7 too low"} {
		run := demo()
		for i, r := range run.Budget {
			if r.Row == budget.RowXDPSeen {
				run.Budget[i].Frames = budget.Count(uint64(int64(*r.Frames) + off))
			}
		}
		got := text(t, finish(run, verified(), budget.Judgement{}), false)
		contains(t, got, "unexplained 7 rx_driver",
			"rx_driver: counter xdp_seen (seen) of queue 0 is "+how+", its neighbours agree without it")
		if strings.Contains(got, "vanished") || strings.Contains(got, "appeared") {
			t.Errorf("a fault is told twice:\n%s", got)
		}
	}
}

// The walk that came with the run knows the events; it is not made anew.
func TestTextBelievesTheClosedBudget(t *testing.T) {
	run := linkDown()
	run = finish(run, verified(), budget.Judgement{}, budget.Event{Kind: "link_down", Limit: 100})
	contains(t, text(t, run, false), "unexplained 87",
		"rx_driver: 87 vanished between device_rx (rx_packets) and xdp_seen (seen)")
}

func TestTextNamesTheStageWithoutCounter(t *testing.T) {
	run := demo()
	for i, r := range run.Budget {
		if r.Row == budget.RowXDPSeen {
			run.Budget[i].Frames = nil
		}
	}
	run = finish(run, verified(), budget.Judgement{})
	contains(t, text(t, run, false), "unexplained unknown: no value for rx_driver/xdp_seen queue 0", "verdict invalid")
}

func TestTextCountsWhatItDoesNotName(t *testing.T) {
	run := demo()
	for i, r := range run.Budget {
		if r.Kind == budget.Loss {
			run.Budget[i].Frames = budget.Count(*r.Frames + 1)
		}
	}
	run = finish(run, verified(), budget.Judgement{})
	got := text(t, run, false)
	contains(t, got, "and 2 more, in the JSON", "offer: 1 appeared between offered (granted) and submitted")
	if n := strings.Count(got, "appeared"); n != 4 {
		t.Errorf("%d places named, want 4:\n%s", n, got)
	}
}

func TestTextKeepsDirectionsApart(t *testing.T) {
	run := demo()
	for _, r := range demo().Budget {
		r.Direction = "b-a"
		run.Budget = append(run.Budget, r)
	}
	got := text(t, finish(run, verified(), budget.Judgement{}), false)
	for _, direction := range []string{"\n  a-b\n", "\n  b-a\n"} {
		if strings.Count(got, direction) != 1 {
			t.Errorf("no heading %q in\n%s", direction, got)
		}
	}
}

// A run that was read from a document has no events; its held rows are believed.
func TestTextOfADecodedRun(t *testing.T) {
	for name, run := range examples() {
		var b bytes.Buffer
		if err := report.WriteJSON(&b, run); err != nil {
			t.Fatal(err)
		}
		again, err := report.DecodeRun(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		run.Reasons = nil // not in the document
		if got, want := text(t, again, false), text(t, run, false); got != want {
			t.Errorf("%s: decoded\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestTextObeysNoControlCharacters(t *testing.T) {
	run := demo()
	run.Tx.Endpoint = "evil\x1b[2J/lr0"
	run.RunID = "a\nb"
	run.Budget[0].Row = "x\x07"
	run.Warnings = []report.Warning{{Code: "c\x1b", Text: "t\x1b[1m", Remedy: "r\x00"}}
	run.Reasons = []budget.Reason{{Text: "\u009b31m"}}
	run.Host.Driver = "d\x1b"
	got := text(t, run, false)
	for _, r := range got {
		if r != '\n' && (r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0) {
			t.Fatalf("control character %#x in\n%q", r, got)
		}
	}
}

// full is a writer without room.
type full struct{}

var errFull = errors.New("full")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWritersReportErrors(t *testing.T) {
	for name, err := range map[string]error{
		"text":     report.WriteText(full{}, demo(), false),
		"json":     report.WriteJSON(full{}, demo()),
		"line":     report.WriteRunLine(full{}, demo()),
		"interval": report.WriteInterval(full{}, report.Interval{}),
		"error":    report.WriteFailure(full{}, report.Failure{}),
	} {
		if !errors.Is(err, errFull) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestProgress(t *testing.T) {
	i := report.Interval{EndNs: 1e9,
		Tx: &report.TxInterval{Refused: budget.Count(1234), PPS: report.Ptr(1e6), L1BitsPerSec: report.Ptr(672e6)},
		Rx: &report.RxInterval{PPS: report.Ptr(998_766.0), L1BitsPerSec: report.Ptr(671e6)}}
	want := "   1.0 s   tx 1.000 Mpps   rx 998.766 kpps   671.000 Mbit/s L1   refused 1,234"
	if got := report.Progress(i); got != want || len(got) > 79 {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	i.Rx, i.Tx.Refused = nil, budget.Count(0)
	if got, want := report.Progress(i), "   1.0 s   tx 1.000 Mpps   672.000 Mbit/s L1"; got != want {
		t.Errorf("sender alone: %q, want %q", got, want)
	}
	if got, want := report.Progress(report.Interval{Rx: &report.RxInterval{}}), "   0.0 s   rx unknown"; got != want {
		t.Errorf("nothing known: %q, want %q", got, want)
	}
}

func TestTextOfNothingKnown(t *testing.T) {
	got := text(t, unknown(), false)
	if !strings.Contains(got, "  eth1 xsk -> (no receiver in hand)  run 0000\n") {
		t.Errorf("head:\n%s", got)
	}
	contains(t, got, "sent unknown received unknown lost unknown", "offer offered unknown", "latency 0 stamps", "verdict invalid")
	if strings.Contains(got, "\n  cpu") || strings.Contains(got, "\n  gap") || strings.Contains(got, "\n  rate") {
		t.Errorf("a line that says nothing:\n%s", got)
	}
}
