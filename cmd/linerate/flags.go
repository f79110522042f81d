package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spf13/pflag"

	"linerate/bpf"
	"linerate/internal/budget"
	"linerate/internal/engine"
	"linerate/internal/trial"
	"linerate/internal/wire"
	"linerate/xsk"
)

// trialFlags are the flags that demo, run, blast and sink share. The same
// word is the Spec's field.
type trialFlags struct {
	stack   stackFlags
	pcap    pcapFlags
	streams string
	reflect bool
	out     outputFlags

	frame, rate, queues, cores, engine, mode, chunk string
	txQueues, rxQueues, txCores, rxCores            string
	txEngine, rxEngine, txMode, rxMode              string
	action, steer                                   string
	duration, warmup, settle, interval              time.Duration
	count, seed                                     uint64
	flows, batch, budget, ring                      int
	maxLoss                                         budget.MaxLoss
	maxRateError                                    float64
	traceDrops, payloadCheck, ownLink, answer       bool
	plan                                            *corePlan    // that several trials share, nil: each has its own
	attached                                        func() error // what a command does once both ends are attached
	stop                                            func() error // an error once the command is interrupted
}

// sides says which ends a command has.
type sides struct{ tx, rx bool }

func (f *trialFlags) register(fs *pflag.FlagSet, s sides) {
	if s.tx {
		fs.StringVar(&f.frame, "frame", "64", "frame size with FCS: 64, 64,1518, 64-1518 or imix")
		fs.StringVar(&f.rate, "rate", "max", "offered load: 1Mpps, 5Gbps-l1, 5Gbps-l2, 50% or max; run: also 1..14Mpps/1Mpps/10s")
		fs.Uint64VarP(&f.count, "count", "n", 0, "stop after this many frames")
		fs.IntVar(&f.flows, "flows", 1, "distinct flows, by source port unless ranges are given")
		f.stack.register(fs)
		fs.BoolVar(&f.answer, "answer", false, "answer ARP, neighbour discovery and ping for the stream's addresses (default: where the next hop is a router)")
		f.pcap.registerTx(fs)
		fs.StringVar(&f.streams, "streams", "", "send the streams of this YAML file, each at its own rate (linerate help streams)")
	}
	fs.DurationVarP(&f.duration, "duration", "t", 10*time.Second, "how long to offer (sink: how long to wait for the END)")
	fs.StringVar(&f.queues, "queues", "", "device queues: 0,1 or 0-3 or all (default: send on 0, receive on all)")
	fs.StringVar(&f.cores, "cores", "auto", "CPUs of the workers, the sender's first, in queue order, or auto")
	fs.StringVar(&f.engine, "engine", string(engine.XSK), "xsk, asavie, or live: made and verified inside the kernel (sends as live, receives as xdp)")
	fs.StringVar(&f.mode, "mode", "auto", "auto, zerocopy (required), copy or generic")
	choices(fs, "engine", engines()...)
	choices(fs, "mode", modes()...)
	if s.tx && s.rx {
		f.registerEnds(fs)
	}
	fs.StringVar(&f.chunk, "chunk", "auto", "UMEM chunk: 2048, 4096 or auto")
	choices(fs, "chunk", "2048", "4096", "auto")
	fs.IntVar(&f.batch, "batch", 64, "frames per ring operation, 1-256")
	if s.tx {
		fs.IntVar(&f.budget, "budget", engine.DefaultBudget, "frames of a queue under way and per kick, a power of two")
	}
	fs.IntVar(&f.ring, "ring", 4096, "RX ring entries, a power of two")
	fs.Uint64Var(&f.seed, "seed", 0, "seed of the run id and of what is random (0: from the clock)")
	fs.DurationVar(&f.warmup, "warmup", 0, "leave this long at the start out of the rates")
	fs.DurationVar(&f.settle, "settle", 0, "wait this long for late counters (default 200ms, 2.5s on drivers that lag)")
	fs.DurationVar(&f.interval, "interval", time.Second, "length of one interval line")
	fs.Var(&f.maxLoss, "max-loss", "frames that may be lost: 0, 100, 0.5% or any (0; any with --rate max)")
	fs.Float64Var(&f.maxRateError, "max-rate-error", 1, "how far the rate may be off what was asked, percent, time off the CPU left out")
	fs.BoolVar(&f.traceDrops, "trace-drops", false, "name the kernel's drop reasons (costs per dropped frame)")
	if s.rx {
		fs.StringVar(&f.action, "action", string(trial.Verify), "verify, count (take every frame, look at none), drop (in XDP, no socket) or capture (keep some in a file)")
		choices(fs, "action", string(trial.Verify), string(trial.Count), string(trial.Drop), "capture")
		fs.StringVar(&f.steer, "steer", "tag", "what is taken: tag, all, port:N, vlan:N, mac:ADDR; the rest goes to the stack")
		f.pcap.registerRx(fs)
		if !s.tx {
			fs.StringVar(&f.pcap.foreign, "foreign", "", "verify the sequence numbers of the kernel's pktgen (clone_skb 0, burst 1, one thread) instead of linerate's")
		}
		if s.tx {
			fs.BoolVar(&f.reflect, "reflect", false, "have the receiver send every frame back (XDP_TX), and verify at the sender: latency is of the round trip")
		}
		fs.BoolVar(&f.payloadCheck, "payload-check", false, "compare every payload byte")
	}
	fs.BoolVar(&f.ownLink, "i-own-this-link", false, "allow the interface of the default route or of ssh")
	f.out.register(fs)
}

func engines() []string {
	return []string{string(engine.XSK), string(engine.Asavie), string(engine.Live)}
}

func modes() []string { return []string{"auto", "zerocopy", "copy", "generic"} }

// registerEnds adds the flags by which two ends differ.
func (f *trialFlags) registerEnds(fs *pflag.FlagSet) {
	for _, e := range []struct {
		to         *string
		name, what string
	}{
		{&f.txQueues, "tx-queues", "queues of the sender"}, {&f.rxQueues, "rx-queues", "queues of the receiver"},
		{&f.txCores, "tx-cores", "CPUs of the sender"}, {&f.rxCores, "rx-cores", "CPUs of the receiver"},
		{&f.txEngine, "tx-engine", "engine of the sender"}, {&f.rxEngine, "rx-engine", "engine of the receiver"},
		{&f.txMode, "tx-mode", "mode of the sender"}, {&f.rxMode, "rx-mode", "mode of the receiver"},
	} {
		fs.StringVar(e.to, e.name, "", e.what)
	}
	for _, end := range []string{"tx", "rx"} {
		choices(fs, end+"-engine", engines()...)
		choices(fs, end+"-mode", modes()...)
	}
}

// spec builds the trial from the flags and the opened ends; either may be nil.
func (f *trialFlags) spec(fs *pflag.FlagSet, tx, rx *endpoint) (trial.Spec, error) {
	s := trial.Spec{
		Count: f.count, Duration: f.duration, Warmup: f.warmup, Settle: f.settle, Interval: f.interval,
		Batch: f.batch, Budget: f.budget, RingSize: f.ring, Attached: f.attached, MaxLoss: f.maxLoss, MaxRateError: f.maxRateError / 100,
		TraceDrops: f.traceDrops, PayloadCheck: f.payloadCheck, Action: trial.Verify,
	}
	if f.count > 0 && !fs.Changed("duration") {
		s.Duration = 0
	}
	if f.seed == 0 {
		f.seed = uint64(rand.Uint32()) // every reader of JSON keeps 32 bits whole
	}
	s.Seed, s.Run = f.seed, runOf(f.seed)
	if err := f.checkRanges(tx != nil); err != nil {
		return s, err
	}
	if tx != nil {
		offer := f.offered
		if f.pcap.file != "" {
			offer = f.replayed
		}
		if f.streams != "" {
			offer = f.streamed
		}
		if err := offer(fs, &s, tx, rx); err != nil {
			return s, err
		}
	}
	if !fs.Changed("settle") {
		s.Settle = settleFor(tx, rx)
	}
	if err := f.ends(&s, tx, rx); err != nil {
		return s, err
	}
	if err := f.answers(fs, &s); err != nil || rx == nil {
		return s, err
	}
	if err := f.received(fs, &s, tx, rx); err != nil {
		return s, err
	}
	if err := checkCapture(&s); err != nil || !f.reflect {
		return s, err
	}
	return s, f.reflected(fs, &s)
}

// settleFor is how long the counters of the ends may lag: ixgbe reads its
// hardware about every two seconds.
func settleFor(ends ...*endpoint) time.Duration {
	for _, e := range ends {
		if e != nil && e.port.Driver != "veth" {
			return 2500 * time.Millisecond
		}
	}
	return 200 * time.Millisecond
}

// received fills in what the receiver takes and what it does with it.
func (f *trialFlags) received(fs *pflag.FlagSet, s *trial.Spec, tx, rx *endpoint) error {
	s.Action = trial.Action(f.action)
	err := f.captured(fs, s)
	if err == nil {
		err = f.foreign(fs, s)
	}
	if err != nil {
		return err
	}
	if s.Steer, err = parseSteer(f.steer); err != nil {
		return err
	}
	s.Steer.Stamp = s.Action == trial.Verify || s.Capture != nil
	s.Steer.Queues = min(rx.port.RxQueues, bpf.MaxQueues)
	if tx != nil {
		s.Steer.Run = uint16(s.Run)
	} else {
		s.AnyRun = true
	}
	switch s.Action {
	case trial.Verify, trial.Count, trial.Drop:
		return nil
	}
	return &usageError{fmt.Sprintf("no action %q", f.action), "--action verify, count, drop or capture"}
}

// Limits of numbers that would else overflow a clock, outlast everybody's
// patience or outrun the tag.
const (
	maxDuration = 365 * 24 * time.Hour
	maxSettle   = time.Minute
	maxCount    = 1 << 40
)

// checkRanges refuses numbers that no trial can have.
func (f *trialFlags) checkRanges(tx bool) error {
	switch {
	case f.batch < 1 || f.batch > 256:
		return &usageError{fmt.Sprintf("--batch %d: want 1 to 256", f.batch), "--batch 64"}
	case f.ring < 64 || f.ring > 1<<15 || f.ring&(f.ring-1) != 0:
		return &usageError{fmt.Sprintf("--ring %d: want a power of two from 64 to 32768", f.ring), "--ring 4096"}
	case tx && (f.budget < 64 || f.budget > 1<<12 || f.budget&(f.budget-1) != 0):
		return &usageError{fmt.Sprintf("--budget %d: want a power of two from 64 to 4096", f.budget), "--budget 256"}
	case f.interval < 10*time.Millisecond:
		return &usageError{fmt.Sprintf("--interval %s: want at least 10ms", f.interval), "--interval 1s"}
	case f.duration < 0 || f.warmup < 0 || f.settle < 0:
		return &usageError{"a time cannot be negative", "-t 10s"}
	case tx && f.duration == 0 && f.count == 0:
		return &usageError{"--duration 0 without --count would send for ever", "-n 1000000, or -t 24h"}
	case f.duration > 0 && f.warmup >= f.duration:
		return &usageError{fmt.Sprintf("--warmup %s leaves nothing of --duration %s", f.warmup, f.duration), "a longer -t"}
	case f.duration > maxDuration:
		return &usageError{fmt.Sprintf("--duration %s: want at most %s", f.duration, maxDuration), "-t 10s"}
	case f.settle > maxSettle:
		return &usageError{fmt.Sprintf("--settle %s: want at most %s", f.settle, maxSettle), "--settle 3s"}
	case f.count > maxCount:
		return &usageError{fmt.Sprintf("--count %d: want at most %d, where the sequence of the tag ends", f.count, uint64(maxCount)), "-t 10s"}
	case !(f.maxRateError >= 0 && f.maxRateError <= 100): // NaN is neither
		return &usageError{fmt.Sprintf("--max-rate-error %v: want 0 to 100 percent", f.maxRateError), "--max-rate-error 1"}
	}
	return nil
}

// offered fills in what is sent.
func (f *trialFlags) offered(fs *pflag.FlagSet, s *trial.Spec, tx, rx *endpoint) error {
	var err error
	if s.Rate, err = wire.ParseRate(f.rate); err != nil {
		return flagError("rate", f.rate, err)
	}
	if s.Rate.Kind == wire.RateMax && !fs.Changed("max-loss") {
		s.MaxLoss, s.LossAnyByRate = budget.AnyLoss(), true
	}
	if s.Stream.Sizes, err = wire.ParseSizes(f.frame); err != nil {
		return flagError("frame", f.frame, err)
	}
	s.Stream.PayloadCheck = f.payloadCheck
	if s.Stream.Stack, s.Stream.Flows, s.Via, err = f.stack.build(f.flows, tx, rx); err != nil {
		return err
	}
	return nil
}

// ends fills in how both ends are driven.
func (f *trialFlags) ends(s *trial.Spec, tx, rx *endpoint) error {
	var err error
	plan := f.plan
	if plan == nil {
		plan = &corePlan{free: allowedCPUs()}
	}
	if tx != nil {
		if s.Tx, err = f.end(s, tx, plan, endFlags{f.txQueues, f.txCores, f.txEngine, f.txMode, txEngines}, "0", tx.port.TxQueues); err != nil {
			return err
		}
	}
	if rx != nil {
		if s.Rx, err = f.end(s, rx, plan, endFlags{f.rxQueues, f.rxCores, f.rxEngine, f.rxMode, rxEngines}, "all", rx.port.RxQueues); err != nil {
			return err
		}
	}
	return nil
}

// endFlags are the flags of one end, empty where the common one holds.
type endFlags struct {
	queues, cores, engine, mode string
	engines                     endEngines
}

func (f *trialFlags) end(s *trial.Spec, ep *endpoint, plan *corePlan, own endFlags, queues string, have int) (*trial.End, error) {
	name, err := own.pick(f.engine)
	if err != nil {
		return nil, err
	}
	e := &trial.End{Port: ep.port, Endpoint: ep.text, Engine: name}
	ids, err := parseQueues(either(own.queues, either(f.queues, queues)), have)
	if err != nil {
		return nil, err
	}
	cpus, err := plan.take(own.cores, f.cores, len(ids))
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		e.Queues = append(e.Queues, engine.Queue{ID: id, CPU: cpus[i]})
	}
	switch m := either(own.mode, f.mode); m {
	case "auto":
		e.ZeroCopy = xsk.Prefer
	case "zerocopy":
		e.ZeroCopy = xsk.Require
	case "copy":
		e.ZeroCopy = xsk.Forbid
	case "generic":
		e.ZeroCopy, e.Generic = xsk.Forbid, true
	default:
		return nil, &usageError{fmt.Sprintf("no mode %q", m), "--mode auto, zerocopy, copy or generic"}
	}
	if err := inKernelMode(e, either(own.mode, f.mode)); err != nil {
		return nil, err
	}
	e.Chunk, err = f.chunkFor(s, ep)
	return e, err
}

// chunkFor picks the UMEM chunk: 2048 is half the memory and the cache, but
// on ixgbe zero-copy it makes every buffer over 1024 bytes vanish.
func (f *trialFlags) chunkFor(s *trial.Spec, ep *endpoint) (int, error) {
	switch f.chunk {
	case "2048":
		return 2048, nil
	case "4096":
		return 4096, nil
	case "auto":
		small := ep.port.Driver == "veth" && s.Largest() <= 1522 && ep.port.MTU <= 1500
		if small {
			return 2048, nil
		}
		return 4096, nil
	}
	return 0, &usageError{fmt.Sprintf("--chunk %s: want 2048, 4096 or auto", f.chunk), "--chunk auto"}
}

// flagError is a value that wire cannot read, in the words of the flag.
func flagError(name, value string, err error) error {
	var parse *wire.ParseError
	if errors.As(err, &parse) {
		return &usageError{fmt.Sprintf("--%s %s: %s", name, value, parse.What), parse.Remedy}
	}
	return &usageError{fmt.Sprintf("--%s %s: %v", name, value, err), "linerate help run"}
}

func either(own, common string) string {
	if own != "" {
		return own
	}
	return common
}

// setDefault gives a command a default of its own for a shared flag.
func setDefault(fs *pflag.FlagSet, name, value string) {
	f := fs.Lookup(name)
	if f == nil || f.Value.Set(value) != nil {
		panic("flag " + name + " cannot default to " + value) // a fault of the program, found by any test of the command
	}
	f.DefValue = value
}
