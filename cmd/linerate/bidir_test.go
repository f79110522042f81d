package main

import (
	"slices"
	"strings"
	"testing"

	"linerate/internal/budget"
	"linerate/internal/lab/veth"
	"linerate/internal/nettest"
	"linerate/internal/report"
)

// Both ways at once over one pair of ports: each way arrives whole, on queues of
// its own, with a budget of its own, and nothing stays behind.
func TestBidir(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	lab := nettest.Lab(t, veth.Config{Queues: 4})
	code, set := setDoc(t, "run", "--tx", lab.A(), "--rx", lab.B(), "--bidir", "--queues", "0,2", "--rate", "5kpps", "-n", "2000", "--max-rate-error", "100")
	if code != exitPassed || len(set.Runs) != 2 {
		for _, r := range set.Runs {
			t.Log(frames(r))
		}
		t.Fatalf("exit %d, %d runs", code, len(set.Runs))
	}
	if received := column(t, set, "received"); received[0] != 2000.0 || received[1] != 2000.0 || received[2] != 4000.0 {
		t.Errorf("received %v", received)
	}
	if u := column(t, set, "unexplained"); u[0] != 0.0 || u[1] != 0.0 {
		t.Errorf("unexplained %v", u)
	}
	if names := column(t, set, "direction"); names[1] != lab.B()+" -> "+lab.A() {
		t.Errorf("directions %v", names)
	}
	ids := func(e *report.End) (out []int) {
		for _, q := range e.Queues {
			out = append(out, q.ID)
		}
		return out
	}
	for i, want := range [][]int{{0, 2}, {1, 3}} {
		r := set.Runs[i]
		if !slices.Equal(ids(r.Tx), want) || !slices.Equal(ids(r.Rx), want) || r.Tx.XDPMode != "native" {
			t.Errorf("way %d: sends on %v in %s mode, receives on %v, want %v", i, ids(r.Tx), r.Tx.XDPMode, ids(r.Rx), want)
		}
	}
	spec, _ := set.Runs[1].Spec.(map[string]any)
	if spec["src_ip"] != "198.18.0.2" || spec["dst_ip"] != "198.18.0.1" || spec["src_port"] != 7777.0 {
		t.Errorf("the way back goes from %v port %v to %v", spec["src_ip"], spec["src_port"], spec["dst_ip"])
	}
	if code, _, stderr := invoke(t, "run", "--tx", lab.A(), "--rx", lab.B(), "-n", "100", "--rate", "5kpps", "--max-rate-error", "100"); code != exitPassed {
		t.Errorf("one way after both: exit %d: %s", code, stderr)
	}
}

// Both ways through a router, each to the next hop of its own side.
func TestBidirThroughRouter(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	l := nettest.Router(t, veth.Config{Queues: 2})
	code, set := setDoc(t, "run", "--tx", l.A(), "--rx", l.B(), "--bidir", "--dst-ip", nettest.RouterB4, "--rate", "2kpps", "-n", "1000", "--max-rate-error", "100")
	for i, via := range []string{nettest.RouterToA4, nettest.RouterToB4} {
		spec, _ := set.Runs[i].Spec.(map[string]any)
		hop, _ := spec["next_hop"].(map[string]any)
		if hop["gateway"] != via {
			t.Errorf("way %d goes by %v, want %s", i, hop, via)
		}
	}
	// The router sends everything on one queue, and the way back has its socket on
	// another: lost, and named.
	received, lost, unexplained := column(t, set, "received"), column(t, set, "lost"), column(t, set, "unexplained")
	if code != exitFailed || received[0] != 1000.0 || lost[0] != 0.0 || lost[1] != 1000.0 || unexplained[0] != 0.0 || unexplained[1] != 0.0 {
		t.Errorf("exit %d: received %v, lost %v, unexplained %v", code, received, lost, unexplained)
	}
	if n, _ := rowOf(set.Runs[1], budget.RxXDP, budget.RowPassedToStack); n < 1000 {
		t.Errorf("%d frames passed to the stack: %s", n, frames(set.Runs[1]))
	}
}

func TestBidirErrors(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	lab := nettest.Lab(t, veth.Config{})
	ends := "run --bidir --tx " + lab.A() + " --rx " + lab.B()
	for args, want := range map[string]struct {
		code int
		says string
	}{
		ends + " -n 10":                                 {exitCannotRun, "both ways take 2 queues"},
		ends + " --dst-mac 02:00:00:00:00:01":           {exitUsage, "--dst-mac does not go"},
		ends + " --queues all":                          {exitUsage, "leaves no queue"},
		ends + " --engine asavie":                       {exitUsage, "--engine xsk"},
		ends + " --rate 1..2kpps/1kpps/1s":              {exitUsage, "one pair and one rate"},
		"run --bidir --pair " + lab.A() + "," + lab.B(): {exitUsage, "one pair and one rate"},
	} {
		code, _, stderr := invoke(t, strings.Fields(args)...)
		if code != want.code || !strings.Contains(stderr, want.says) {
			t.Errorf("%s: exit %d, says %q, want %q", args, code, stderr, want.says)
		}
	}
}
