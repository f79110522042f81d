package trial

import (
	"fmt"
	"strings"
	"testing"

	"linerate/internal/budget"
	"linerate/internal/engine"
	"linerate/internal/frame"
	"linerate/internal/meter"
	"linerate/internal/nic"
)

// codes are the codes of an outcome's remarks.
func codes(o *Outcome) []string {
	var out []string
	for _, r := range o.Remarks {
		out = append(out, r.Code)
	}
	return out
}

func TestRemarks(t *testing.T) {
	pps, n := 16e6, uint64(5)
	row := func(name string, k budget.Kind) budget.Row {
		return budget.Row{Row: name, Kind: k, Frames: &n, Exact: true}
	}
	for name, c := range map[string]struct {
		alone bool // the receiver has no sender with it
		do    func(o *Outcome)
		want  string
	}{
		"nothing to say": {do: func(*Outcome) {}},
		"clock":          {do: func(o *Outcome) { o.Rx.ClockTrouble = 1 }, want: "clock_trouble"},
		"two clocks":     {alone: true, do: func(o *Outcome) { o.Rx.ClockTrouble = 1 }},
		"own queue":      {do: func(o *Outcome) { o.Tx.Queues, o.Rx.Latency = []engine.TxQueue{{OwnQueue: 1}}, &meter.Summary{} }, want: "own_queue_latency"},
		"no latency":     {do: func(o *Outcome) { o.Tx.Queues = []engine.TxQueue{{OwnQueue: 1}} }},
		"foreign":        {do: func(o *Outcome) { o.Rx.Totals = frame.Totals{Untagged: 1} }, want: "foreign"},
		"over line rate": {do: func(o *Outcome) { o.Rate.TxPPS, o.Rate.TxMeanFrame = &pps, 64 }, want: "line_rate_exceeded"},
		"held": {do: func(o *Outcome) {
			o.Rows = []budget.Row{row("purged", budget.Held)}
			o.Events = []Event{{"a", "link down"}}
		}, want: "held_frames"},
		"the host's own":   {do: func(o *Outcome) { o.Rows = []budget.Row{row("stack_tx", budget.Gain)} }, want: "stack_traffic"},
		"inexact":          {do: func(o *Outcome) { o.Rows = []budget.Row{{Row: "over_buffer", Kind: budget.Loss}} }, want: "inexact_row"},
		"unknown":          {do: func(o *Outcome) { o.Closed.Unexplained = nil }, want: "stage_without_counter"},
		"unknown, one end": {alone: true, do: func(o *Outcome) { o.Closed.Unexplained = nil }},
	} {
		end := &End{Port: &nic.Port{Speed: 10e9}, Endpoint: "a"}
		r := &running{spec: Spec{Tx: end, Rx: end, Action: Verify}, out: &Outcome{}}
		r.out.Closed.Unexplained = new(uint64)
		r.tx = noSender{}
		if c.alone {
			r.spec.Tx = nil
		}
		c.do(r.out)
		r.remarkNumbers()
		r.remarkRows()
		if got := strings.Join(codes(r.out), " "); got != c.want {
			t.Errorf("%s: remarks %q, want %q", name, got, c.want)
		}
		if invalid := len(r.invalid()) > 0; invalid != (c.want == "clock_trouble" || c.want == "held_frames") && !c.alone {
			t.Errorf("%s: invalid %v: %v", name, invalid, r.invalid())
		}
	}
}

// --trace-drops says why the kernel discarded what the program left to it.
func TestKernelDropsAreNamed(t *testing.T) {
	eachEngine(t, func(t *testing.T, eng engine.Name, a, b string) {
		for _, asked := range []bool{true, false} {
			s := spec(t, eng, a, b)
			s.Steer.Run, s.TraceDrops, s.MaxLoss = 0x1111, asked, budget.AnyLoss() // the stack has no use for them
			o := run(t, s)
			expect(t, o, map[string]uint64{"sent": 2000, "lost": 2000, "unexplained": 0})
			var text string
			for _, r := range o.Remarks {
				if r.Code == "kernel_drops" && r.Args[1] == b {
					text = fmt.Sprint(r.Args...)
				}
			}
			if named := strings.Contains(text, fmt.Sprintf("NO_SOCKET %d", value(t, "lost", o.Frames.Lost))); named != asked {
				t.Errorf("trace drops %v: %q", asked, text)
			}
		}
	})
}

// noSender stands where only the presence of one counts.
type noSender struct{ engine.Sender }
