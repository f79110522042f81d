package main

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"linerate/internal/engine"
	"linerate/internal/frame"
	"linerate/internal/report"
)

// measureBidir runs a trial each way between two ports, from a common start, and
// writes both as one set. Each way has queues of its own at both ends: a queue
// has one socket, and a socket here sends or receives.
func measureBidir(ctx context.Context, fs *pflag.FlagSet, f *trialFlags, out *output, a, b string) error {
	if err := f.checkBidir(fs); err != nil {
		return err
	}
	queues, err := parseQueues(either(f.queues, "0"), 0)
	if err != nil {
		return err
	}
	f.plan = &corePlan{free: allowedCPUs()}
	there := *f
	there.txQueues, there.rxQueues = joinInts(queues), joinInts(queues)
	one, err := openPair(fs, &there, a, b)
	if err != nil {
		return err
	}
	defer one.close()
	back := *f
	back.seed = there.seed
	back.txQueues = joinInts(others(queues))
	back.rxQueues = back.txQueues
	back.stack = f.stack.reversed(one.spec.Stream)
	two, err := openPair(fs, &back, b, a)
	if err != nil {
		return err
	}
	defer two.close()
	two.spec = reseeded(two.spec, 1)
	pairs := []*pair{one, two}
	for _, p := range pairs {
		p.shared = true
		viaHop(ctx, &p.spec, out)
		if err := p.spec.Validate(); err != nil {
			return explain(fmt.Errorf("%s: both ways take %d queues of each end: %w", p, 2*len(queues), err), p.tx, p.rx)
		}
	}
	runs, interrupted, err := runTogether(ctx, pairs, out)
	if err != nil {
		return err
	}
	table := report.RunsTable("bidir", []string{"direction"}, runs, func(i int) []any { return []any{pairs[i].String()} })
	table.AddSum("sum")
	return out.finishSet(report.Set{Version: version, Runs: runs, Tables: []report.Table{table}, Verdict: report.Worst(runs)}, interrupted)
}

// checkBidir refuses what two ways at once cannot have.
func (f *trialFlags) checkBidir(fs *pflag.FlagSet) error {
	for _, name := range []string{"src-mac", "dst-mac", "tx-queues", "rx-queues"} {
		if fs.Changed(name) {
			return &usageError{fmt.Sprintf("--%s does not go with --bidir: each end sends and receives", name), "--queues for one way; the other takes as many after them"}
		}
	}
	if f.queues == "all" {
		return &usageError{"--queues all leaves no queue for the other way of --bidir", "--queues 0"}
	}
	for _, e := range []string{f.engine, f.txEngine, f.rxEngine} {
		if e != "" && engine.Name(e) != engine.XSK {
			return &usageError{fmt.Sprintf("--bidir needs one program for both ways, and engine %s has its own for each", e), "--engine xsk"}
		}
	}
	return nil
}

// others are as many queues again, the lowest that are free.
func others(taken []int) (out []int) {
	for q := 0; len(out) < len(taken); q++ {
		if !slices.Contains(taken, q) {
			out = append(out, q)
		}
	}
	return out
}

func joinInts(list []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")
}

// reversed are the headers of the frames that go back: to where the others come
// from.
func (f stackFlags) reversed(s frame.Stream) stackFlags {
	addrs := func(r frame.AddrRange, one netip.Addr) string {
		if !r.Lo.IsValid() {
			return one.String()
		}
		if r.Lo == r.Hi {
			return r.Lo.String()
		}
		return r.Lo.String() + "-" + r.Hi.String()
	}
	f.srcIP, f.dstIP = addrs(s.Flows.DstAddrs, s.Stack.Dst), addrs(s.Flows.SrcAddrs, s.Stack.Src)
	f.srcPort, f.dstPort = f.dstPort, f.srcPort
	given := f.given
	f.given = func(name string) bool { return given(name) || name == "src-ip" && given("dst-ip") }
	return f
}
