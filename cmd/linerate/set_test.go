package main

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"linerate/internal/lab/veth"
	"linerate/internal/nettest"
	"linerate/internal/report"
)

// setDoc runs one command line with --json and reads its set.
func setDoc(t *testing.T, args ...string) (int, report.Set) {
	t.Helper()
	code, stdout, stderr := invoke(t, append(args, "--json")...)
	valid(t, report.SetSchema, stdout)
	var set report.Set
	if err := json.Unmarshal([]byte(stdout), &set); err != nil {
		t.Fatalf("exit %d: %v: %s", code, err, stderr)
	}
	return code, set
}

// column is the values of one column of the first table.
func column(t *testing.T, set report.Set, name string) (out []any) {
	t.Helper()
	for c, n := range set.Tables[0].Columns {
		if n == name {
			for _, row := range set.Tables[0].Rows {
				out = append(out, row[c])
			}
			return out
		}
	}
	t.Fatalf("no column %s in %v", name, set.Tables[0].Columns)
	return nil
}

// A ramp is one run for each step, each by itself: what the second loses fails
// the whole, and the third is none the worse for it.
func TestRamp(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	box := nettest.FaultBox(t, nettest.BoxConfig{Rules: []nettest.Rule{{Fault: nettest.Drop, Frames: []uint64{320}}}})
	args := []string{"run", "--tx", box.A(), "--rx", box.B(), "--rate", "1..3kpps/1kpps/300ms", "--settle", "300ms", "--max-rate-error", "100"}
	code, set := setDoc(t, args...)
	if code != exitFailed || set.Verdict != "fail" || len(set.Runs) != 3 {
		t.Fatalf("exit %d, verdict %s, %d runs", code, set.Verdict, len(set.Runs))
	}
	for i, want := range []string{"pass", "fail", "pass"} {
		r := set.Runs[i]
		if column(t, set, "verdict")[i] != want || string(r.Verdict) != want || column(t, set, "offered_pps")[i] != float64(1000*(i+1)) ||
			column(t, set, "offered")[i] != float64(300*(i+1)) || column(t, set, "rate")[i] != []string{"1kpps", "2kpps", "3kpps"}[i] {
			t.Errorf("step %d: %v, rates %v, offered %v, run %s", i+1, column(t, set, "verdict"), column(t, set, "rate"), column(t, set, "offered"), r.RunID)
		}
	}
	if lost := column(t, set, "lost"); lost[0] != 0.0 || lost[1] != 1.0 || lost[2] != 0.0 {
		t.Errorf("lost %v", lost)
	}
	code, stdout, _ := invoke(t, args...) // the box has lost its frame already
	if code != exitPassed || strings.Count(stdout, "pass") != 4 || !strings.Contains(stdout, "loss ratio") {
		t.Errorf("exit %d: %s", code, stdout)
	}
}

// Pairs of ports start together, each has its own account, and the sum is there.
func TestPairs(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	one, two := nettest.Lab(t, veth.Config{}), nettest.Lab(t, veth.Config{})
	args := []string{"run", "--pair", one.A() + "," + one.B(), "--pair", two.A() + "," + two.B(), "--rate", "5kpps", "-n", "2000", "--max-rate-error", "100"}
	code, set := setDoc(t, args...)
	if code != exitPassed || len(set.Runs) != 2 {
		t.Fatalf("exit %d, %d runs", code, len(set.Runs))
	}
	if received := column(t, set, "received"); received[0] != 2000.0 || received[1] != 2000.0 || received[2] != 4000.0 {
		t.Errorf("received %v", received)
	}
	if names := column(t, set, "pair"); names[0] != one.A()+" -> "+one.B() || names[2] != "sum" {
		t.Errorf("pairs %v", names)
	}
	cpus := map[any]int{}
	for _, r := range set.Runs {
		for _, e := range []*report.End{r.Tx, r.Rx} {
			cpus[*e.Queues[0].CPU]++
		}
	}
	for cpu, n := range cpus {
		if free := len(allowedCPUs()); n > int(math.Ceil(4/float64(min(free, 4)))) {
			t.Errorf("%d workers on CPU %v of %d", n, cpu, free)
		}
	}
	if set.Runs[0].RunID[len(set.Runs[0].RunID)-4:] == set.Runs[1].RunID[len(set.Runs[1].RunID)-4:] {
		t.Errorf("both runs have one id in their frames: %s", set.Runs[0].RunID)
	}
	// One that cannot start: no result of the other, and why.
	code, _, stderr := invoke(t, "run", "--pair", one.A()+","+one.B(), "--pair", two.A()+","+two.B(), "--mode", "zerocopy", "-n", "10")
	if code != exitCannotRun || !strings.Contains(stderr, "zero-copy") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestSetUsage(t *testing.T) {
	for args, says := range map[string]string{
		"run --pair a":                                     "two interfaces",
		"run --pair a,b --pair b,c":                        "b stands twice",
		"run --pair a,a":                                   "a stands twice",
		"run --pair a,b --tx c":                            "do not go with it",
		"run --pair a,b --rate 1..2kpps/1kpps/1s":          "takes one pair",
		"run --tx a --rx b --rate 1..2kpps/1kpps/1s -t 3s": "a time of their own",
		"run --tx a --rx b --rate 1..2kpps/1kpps":          "three parts",
		"run --tx a --rx b --rate 1..2kpps/1Gbps-l1/1s":    "one kind",
	} {
		code, _, stderr := invoke(t, strings.Fields(args)...)
		if code != exitUsage || !strings.Contains(stderr, says) {
			t.Errorf("%s: exit %d, says %q, want %q", args, code, stderr, says)
		}
	}
}

// The common start is not before any of the trials is ready; one that is gone
// keeps the others from starting, and so does the end of the context.
func TestStart(t *testing.T) {
	s := newStart(2)
	got := make(chan int64)
	go func() {
		ns, err := s.begin(context.Background(), 5)
		if err != nil {
			t.Error(err)
		}
		got <- ns
	}()
	ns, err := s.begin(context.Background(), 9)
	if other := <-got; err != nil || ns != 9+int64(startMargin) || other != ns {
		t.Errorf("%d and %d, %v", ns, other, err)
	}
	s.leave()
	s = newStart(2)
	s.leave()
	if _, err := s.begin(context.Background(), 1); !errors.Is(err, errNotTogether) {
		t.Errorf("one is gone: %v", err)
	}
	s = newStart(2)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.begin(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
}
