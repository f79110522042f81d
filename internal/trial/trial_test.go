package trial

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"linerate/bpf"
	"linerate/internal/budget"
	"linerate/internal/engine"
	"linerate/internal/frame"
	"linerate/internal/lab/veth"
	"linerate/internal/netns"
	"linerate/internal/nettest"
	"linerate/internal/nic"
	"linerate/internal/wire"
)

// engines are the ways of sending and receiving that must all pass: xdp is xsk
// into it, live is live into xdp.
var engines = []engine.Name{engine.XSK, engine.Asavie, engine.XDP, engine.Live}

// pair is the engines of both ends.
func pair(eng engine.Name) (tx, rx engine.Name) {
	switch eng {
	case engine.XDP:
		return engine.XSK, engine.XDP
	case engine.Live:
		return engine.Live, engine.XDP
	}
	return eng, eng
}

// losesAt tells whether an engine has the place where a fault loses frames.
func losesAt(eng engine.Name, at budget.Boundary) bool {
	return at != budget.RxSocket || eng == engine.XSK || eng == engine.Asavie
}

// openPort opens an endpoint "NETNS/IFACE" for one test.
func openPort(t testing.TB, endpoint string) *nic.Port {
	t.Helper()
	space, name, _ := strings.Cut(endpoint, "/")
	ns, err := netns.Open(space)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	p, err := nic.Open(ns, name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// spec is a small trial from one endpoint to another: 2,000 frames at a rate
// that no machine fails at.
func spec(t testing.TB, eng engine.Name, a, b string) Spec {
	t.Helper()
	tx, rx := openPort(t, a), openPort(t, b)
	sizes, err := wire.ParseSizes("64")
	if err != nil {
		t.Fatal(err)
	}
	rate, err := wire.ParseRate("20kpps")
	if err != nil {
		t.Fatal(err)
	}
	txEngine, rxEngine := pair(eng)
	end := func(p *nic.Port, name string, eng engine.Name) *End {
		return &End{Port: p, Endpoint: name, Engine: eng, Queues: []engine.Queue{{ID: 0, CPU: -1}}, Chunk: 2048}
	}
	// The run id: fixed per test, so that a failure can be looked at again.
	st := frame.Stack{SrcMAC: tx.MAC, DstMAC: rx.MAC, Src: addr("198.18.0.1"), Dst: addr("198.18.0.2"),
		SrcPort: 49184, DstPort: 7777, TTL: 64}
	return Spec{
		Tx: end(tx, a, txEngine), Rx: end(rx, b, rxEngine), Run: 0xBEEF, Rate: rate, Count: 2000,
		Stream: frame.Stream{Stack: st, Sizes: sizes, Flows: frame.Flows{Count: 1}},
		Settle: 100 * time.Millisecond, Interval: time.Second, Batch: 64, Budget: engine.DefaultBudget, RingSize: 4096,
		Action: Verify, Steer: bpf.SteerConfig{Match: bpf.MatchTag, Run: 0xBEEF, Stamp: true, Queues: rx.RxQueues},
		MaxRateError: 10, // a busy machine is late; what is lost is what counts here
	}
}

// run carries out a trial that must produce an outcome.
func run(t *testing.T, s Spec) *Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	o, err := Run(ctx, s, nil)
	if err != nil {
		t.Fatalf("trial: %v", err)
	}
	return o
}

// eachEngine runs f on a lab of its own for every engine.
func eachEngine(t *testing.T, f func(t *testing.T, eng engine.Name, a, b string)) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	for _, eng := range engines {
		t.Run(string(eng), func(t *testing.T) {
			lab := nettest.Lab(t, veth.Config{})
			f(t, eng, lab.A(), lab.B())
		})
	}
}

// value is a frame count that must be known.
func value(t *testing.T, name string, n *uint64) uint64 {
	t.Helper()
	if n == nil {
		t.Fatalf("%s is unknown", name)
	}
	return *n
}

// expect compares the summary with what was to come out.
func expect(t *testing.T, o *Outcome, want map[string]uint64) {
	t.Helper()
	f := o.Frames
	have := map[string]*uint64{
		"offered": f.Offered, "unsent": f.Unsent, "refused": f.Refused, "sent": f.Sent, "received": f.Received,
		"lost": f.Lost, "duplicate": f.Duplicate, "reordered": f.Reordered, "corrupt": f.Corrupt,
		"untagged": f.Foreign.Untagged, "unexplained": f.Unexplained,
	}
	late := uint64(0)
	if o.Spec.Tx != nil && o.Spec.Tx.Engine == engine.Live {
		late = value(t, "unsent", f.Unsent) // it spins, so that a busy machine takes its core away
	}
	for name, n := range want {
		if n == o.Spec.Count {
			n -= min(late, n)
		}
		if got := value(t, name, have[name]); got != n {
			t.Errorf("%s %d, want %d\n%s", name, got, n, rowsText(o))
		}
	}
	if err := f.Check(); err != nil {
		t.Error(err)
	}
}

// rowsText prints the rows of a trial for a failure.
func rowsText(o *Outcome) string {
	var b strings.Builder
	for _, r := range o.Rows {
		n := "unknown"
		if r.Frames != nil {
			n = fmt.Sprint(*r.Frames)
		}
		fmt.Fprintf(&b, "  %-9s %-10s %-18s %8s %s %s\n", r.Boundary, r.Kind, r.Row, n, r.Counter, r.Note)
	}
	return b.String()
}

func TestEveryFrameIsAccountedFor(t *testing.T) {
	eachEngine(t, func(t *testing.T, eng engine.Name, a, b string) {
		o := run(t, spec(t, eng, a, b))
		expect(t, o, map[string]uint64{"sent": 2000, "received": 2000, "lost": 0, "duplicate": 0, "corrupt": 0, "unexplained": 0})
		if o.Verdict != budget.Pass {
			t.Errorf("verdict %s: %v", o.Verdict, o.Reasons)
		}
		if o.Rx.Latency == nil || o.Rx.NoStamp != 0 {
			t.Errorf("latency %v, %d frames without a stamp", o.Rx.Latency, o.Rx.NoStamp)
		}
	})
}

// Each counter in turn is falsified by 7, then frozen: the budget must notice
// by exactly that much, and the run must fail.
func TestBudgetNoticesEveryCounter(t *testing.T) {
	eachEngine(t, func(t *testing.T, eng engine.Name, a, b string) {
		base := spec(t, eng, a, b)
		base.Count = 500
		honest := run(t, base)
		tried := map[string]bool{}
		for _, r := range honest.Rows {
			if tried[r.Row] {
				continue
			}
			tried[r.Row] = true
			s := base
			s.Tamper = Tamper{Row: r.Row, Offset: 7}
			noticed(t, run(t, s), r.Row, 7)
			if n := value(t, r.Row, r.Frames); n > 0 {
				s.Tamper = Tamper{Row: r.Row, Frozen: true}
				o := run(t, s)
				if n = lateness(o, honest, r.Row, n); n > 0 {
					noticed(t, o, r.Row, n)
				}
			}
		}
		if least := map[engine.Name]int{engine.XDP: 15, engine.Live: 13}[eng]; len(tried) < max(least, 13) {
			t.Errorf("only %d rows to falsify: %v", len(tried), tried)
		}
	})
}

// lateness is n, or, where a busy machine decides on it, what the row was in
// this very trial: rows that are all of what was submitted, too.
func lateness(o, honest *Outcome, row string, n uint64) uint64 {
	offered, unsent, submitted := sums(o)
	_, _, all := sums(honest)
	switch {
	case row == budget.RowOffered:
		return offered
	case row == budget.RowUnsent:
		return unsent
	case n == all:
		return submitted
	}
	return n
}

// sums adds up the sending queues.
func sums(o *Outcome) (offered, unsent, submitted uint64) {
	for _, q := range o.Tx.Queues {
		offered += q.Offered
		unsent += q.Unsent
		submitted += q.Submitted
	}
	return
}

// noticed checks that a falsified counter shows as itself.
func noticed(t *testing.T, o *Outcome, row string, n uint64) {
	t.Helper()
	if got := value(t, "unexplained", o.Frames.Unexplained); got != n {
		t.Errorf("%s falsified by %d: unexplained %d\n%s", row, n, got, rowsText(o))
	}
	if o.Verdict == budget.Pass {
		t.Errorf("%s falsified by %d: the run passed", row, n)
	}
}

// N frames are lost at each stage without a counter: lost N, unexplained N, at
// that boundary.
func TestBudgetNoticesEveryLoss(t *testing.T) {
	const n = 11
	faults := map[budget.Boundary]engine.Fault{
		budget.BoundaryOffer: {LoseOffered: n},
		budget.TxKernel:      {LoseSubmitted: n},
		budget.RxDriver:      {LoseBeforeSeen: n},
		budget.RxXDP:         {LoseAfterSeen: n},
		budget.RxSocket:      {LoseRedirected: n},
		budget.Verify:        {LoseTaken: n},
	}
	eachEngine(t, func(t *testing.T, eng engine.Name, a, b string) {
		for at, fault := range faults {
			s := spec(t, eng, a, b)
			s.Count, s.Fault = 500, fault
			if !losesAt(eng, at) {
				continue
			}
			o := run(t, s)
			noticed(t, o, string(at), n)
			if at != budget.BoundaryOffer && value(t, "lost", o.Frames.Lost) != n {
				t.Errorf("%d frames lost at %s: lost %d", n, at, *o.Frames.Lost)
			}
			for _, r := range o.Closed.Residuals {
				if r.Frames != 0 && r.Boundary != at {
					t.Errorf("%d frames lost at %s show at %s (%s to %s)", n, at, r.Boundary, r.From, r.To)
				}
			}
		}
	})
}
