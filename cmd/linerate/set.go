package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"linerate/internal/frame"
	"linerate/internal/report"
	"linerate/internal/trial"
	"linerate/internal/wire"
)

// runOf is the id of a run in its frames: consecutive seeds give ids that differ
// in their low bits too, which is all that a short tag has.
func runOf(seed uint64) frame.Run { return frame.Run(seed * 0x9E3779B97F4A7C15 >> 48) }

// reseeded is the spec as a run of its own: frames of the other runs of a set
// that come late are not its own.
func reseeded(s trial.Spec, n int) trial.Spec {
	s.Seed += uint64(n)
	s.Run = runOf(s.Seed)
	s.Steer.Run = uint16(s.Run)
	return s
}

// measureRamp runs one trial for each step of a ramp, one after the other, and
// writes them as one set.
func measureRamp(ctx context.Context, fs *pflag.FlagSet, f *trialFlags, out *output, txName, rxName string) error {
	ramp, err := wire.ParseRamp(f.rate)
	if err != nil {
		return flagError("rate", f.rate, err)
	}
	if fs.Changed("duration") || fs.Changed("count") {
		return &usageError{"the steps of a ramp have a time of their own: neither -t nor -n goes with it", "--rate 1..14Mpps/1Mpps/10s"}
	}
	f.rate, f.duration = ramp.From.String(), ramp.Each
	p, err := openPair(fs, f, txName, rxName)
	if err != nil {
		return err
	}
	defer p.close()
	steps := ramp.Steps()
	specs := make([]trial.Spec, len(steps))
	viaHop(ctx, &p.spec, out)
	for i, rate := range steps {
		specs[i] = reseeded(p.spec, i)
		specs[i].Rate = rate
		if err := specs[i].Validate(); err != nil {
			return explain(fmt.Errorf("step %d of the ramp, %s: %w", i+1, rate, err), p.tx, p.rx)
		}
	}
	var runs []report.Run
	interrupted := false
	for i := 0; i < len(specs) && !interrupted; i++ {
		id := newRunID(specs[i])
		result, err := trial.Run(ctx, specs[i], out.observe(id))
		if result == nil {
			return cutShort(out, rampSet(runs, steps), explain(err, p.tx, p.rx))
		}
		if err != nil && !result.Interrupted {
			fmt.Fprintf(out.stderr, "linerate: step %d: %v\n", i+1, explain(err, p.tx, p.rx))
		}
		runs = append(runs, runDocument(id, result))
		interrupted = result.Interrupted
	}
	return out.finishSet(rampSet(runs, steps), interrupted)
}

func rampSet(runs []report.Run, steps []wire.Rate) report.Set {
	table := report.RunsTable("ramp", []string{"step", "rate"}, runs, func(i int) []any { return []any{uint64(i + 1), steps[i].String()} })
	return report.Set{Version: version, Runs: runs, Tables: []report.Table{table}, Verdict: report.Worst(runs)}
}

// cutShort is a set whose next run could not be made: what there is is written,
// the error goes to stderr.
func cutShort(out *output, set report.Set, err error) error {
	if len(set.Runs) == 0 {
		return err
	}
	if werr := out.finishSet(set, false); errors.As(werr, new(*unwrittenError)) {
		return werr
	}
	fmt.Fprintln(out.stderr, "linerate:", err)
	return &verdictError{exitCannotRun}
}

// pair is two opened ends and the trial from one to the other.
type pair struct {
	tx, rx *endpoint
	spec   trial.Spec
	shared bool // another pair receives on tx and sends from rx
}

func openPair(fs *pflag.FlagSet, f *trialFlags, txName, rxName string) (*pair, error) {
	p := &pair{}
	var err error
	if p.tx, err = openGuarded(txName, f.ownLink); err != nil {
		return nil, explain(err)
	}
	if p.rx, err = openGuarded(rxName, f.ownLink); err != nil {
		p.close()
		return nil, explain(err)
	}
	if p.spec, err = f.spec(fs, p.tx, p.rx); err != nil {
		err = explain(err, p.tx, p.rx)
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *pair) close() {
	p.tx.close()
	p.rx.close()
}

// String is the pair as the tables have it.
func (p *pair) String() string { return p.tx.text + " -> " + p.rx.text }

// splitPairs reads the values of --pair. An interface may stand in one only.
func splitPairs(values []string) (out [][2]string, err error) {
	seen := map[string]bool{}
	for _, v := range values {
		tx, rx, ok := strings.Cut(v, ",")
		if !ok || tx == "" || rx == "" || strings.Contains(rx, ",") {
			return nil, &usageError{fmt.Sprintf("--pair %s: want two interfaces", v), "--pair eth1,eth2 --pair eth3,eth4"}
		}
		for _, name := range []string{tx, rx} {
			if seen[name] {
				return nil, &usageError{fmt.Sprintf("--pair %s: %s stands twice, and a port has one program and one socket a queue", v, name), "pairs of different interfaces"}
			}
			seen[name] = true
		}
		out = append(out, [2]string{tx, rx})
	}
	return out, nil
}

// measurePairs runs one trial for each pair, all from a common start, and writes
// them as one set, with their sum.
func measurePairs(ctx context.Context, fs *pflag.FlagSet, f *trialFlags, out *output, values []string) error {
	names, err := splitPairs(values)
	if err != nil {
		return err
	}
	f.plan = &corePlan{free: allowedCPUs()} // every pair has its share
	var pairs []*pair
	for i, n := range names {
		p, err := openPair(fs, f, n[0], n[1])
		if err != nil {
			return err
		}
		defer p.close()
		p.spec = reseeded(p.spec, i)
		viaHop(ctx, &p.spec, out)
		if err := p.spec.Validate(); err != nil {
			return explain(err, p.tx, p.rx)
		}
		pairs = append(pairs, p)
	}
	runs, interrupted, err := runTogether(ctx, pairs, out)
	if err != nil {
		return err
	}
	table := report.RunsTable("pairs", []string{"pair"}, runs, func(i int) []any { return []any{pairs[i].String()} })
	table.AddSum("sum")
	return out.finishSet(report.Set{Version: version, Runs: runs, Tables: []report.Table{table}, Verdict: report.Worst(runs)}, interrupted)
}

// runTogether runs the trials of the pairs from a common start. Where one cannot
// be made there is no result at all: the others had another load.
func runTogether(ctx context.Context, pairs []*pair, out *output) (runs []report.Run, interrupted bool, err error) {
	begun, listening, ready, measured := newStart(len(pairs)), newStart(len(pairs)), newStart(len(pairs)), newStart(len(pairs))
	meet := func(ctx context.Context, at trial.Step) error {
		if at == trial.Measured {
			_, _ = measured.begin(ctx, 0) // one that is gone has nothing left to disturb
			return nil
		}
		s := listening
		if at == trial.Ready {
			s = ready
		}
		_, err := s.begin(ctx, 0)
		return err
	}
	results, errs, ids := make([]*trial.Outcome, len(pairs)), make([]error, len(pairs)), make([]string, len(pairs))
	var workers sync.WaitGroup
	for i, p := range pairs {
		ids[i] = newRunID(p.spec)
		p.spec.Begin = begun.begin
		if p.shared {
			p.spec.Meet = meet
		}
		workers.Go(func() {
			results[i], errs[i] = trial.Run(ctx, p.spec, out.observe(ids[i]))
			for _, s := range []*start{listening, ready, begun, measured} {
				s.leave()
			}
		})
	}
	workers.Wait()
	for i, p := range pairs {
		switch {
		case results[i] == nil && !errors.Is(errs[i], errNotTogether):
			return nil, false, explain(fmt.Errorf("%s: %w", p, errs[i]), p.tx, p.rx)
		case results[i] == nil:
			err = errs[i]
			continue
		case errs[i] != nil && !results[i].Interrupted:
			fmt.Fprintf(out.stderr, "linerate: %s: %v\n", p, explain(errs[i], p.tx, p.rx))
		}
		runs = append(runs, runDocument(ids[i], results[i]))
		interrupted = interrupted || results[i].Interrupted
	}
	return runs, interrupted, err
}
