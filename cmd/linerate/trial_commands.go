package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"linerate/internal/trial"
	"linerate/internal/wire"
)

func runCommand() command {
	return command{
		name: "run", job: "one trial with both ends in hand: the whole budget", synopsis: "run --tx EP --rx EP",
		about: `One trial with both ends in hand: send, receive, verify, account.
An endpoint EP is IFACE, or NETNS/IFACE for an interface in a network namespace.`,
		examples: []example{
			{"linerate run --tx eth1 --rx eth2 --frame 64 --rate 1Mpps -t 10s", ""},
			{"linerate run --tx lr-x-a/lr0 --rx lr-x-b/lr0 --frame imix --rate 50% --json", "in the lab x"},
			{"linerate run --tx eth1 --rx eth2 --rate 1..14Mpps/1Mpps/10s", "a ramp: from..to/step/time"},
			{"linerate run --pair eth1,eth2 --pair eth3,eth4 --rate 1Mpps", "together, with their sum"},
			{"linerate run --tx eth1 --rx eth2 --bidir --rate 1Mpps", "both ways, each with its budget"},
			{"linerate run --tx eth1 --rx eth2 --reflect --rate 1Mpps", "there and back again"},
		},
		flags: func() *pflag.FlagSet { fs, _ := runFlags(); return fs },
		run:   runRun,
	}
}

// runValues are the flags of `linerate run`.
type runValues struct {
	trialFlags
	tx, rx string
	pairs  []string
	bidir  bool
}

func runFlags() (*pflag.FlagSet, *runValues) {
	f := &runValues{}
	fs := newFlags("run")
	fs.StringVar(&f.tx, "tx", "", "sending interface, [NETNS/]IFACE")
	fs.StringVar(&f.rx, "rx", "", "receiving interface, [NETNS/]IFACE")
	endpoints(fs, "tx", "rx")
	fs.StringArrayVar(&f.pairs, "pair", nil, "sending and receiving interface, TX,RX; may be given several times: all start together")
	fs.BoolVar(&f.bidir, "bidir", false, "both ways at once, --rx to --tx on as many queues after those of --queues")
	f.register(fs, sides{tx: true, rx: true})
	return fs, f
}

func runRun(ctx context.Context, stdout, stderr io.Writer, args []string) error {
	fs, f := runFlags()
	if err := parse(stdout, fs, args); err != nil {
		return err
	}
	tx, rx := f.tx, f.rx
	if err := noMore(fs); err != nil {
		return err
	}
	if f.bidir && (len(f.pairs) > 0 || wire.IsRamp(f.rate)) {
		return &usageError{"--bidir takes one pair and one rate", "linerate run --tx eth1 --rx eth2 --bidir"}
	}
	if f.out.metrics != "" && (f.bidir || len(f.pairs) > 0 || wire.IsRamp(f.rate)) {
		return &usageError{"--metrics serves the numbers of one trial", "one pair, one way and one rate"}
	}
	if len(f.pairs) > 0 {
		return runPairs(ctx, fs, &f.trialFlags, stdout, stderr, f.pairs)
	}
	if tx == "" || rx == "" {
		return &usageError{"run needs --tx and --rx", "linerate run --tx eth1 --rx eth2"}
	}
	if tx == rx {
		return &usageError{fmt.Sprintf("--tx and --rx are both %s", tx), "two interfaces that a cable or a veth pair joins"}
	}
	out, err := newOutput(f.out, stdout, stderr)
	if err != nil {
		return err
	}
	if f.bidir {
		return measureBidir(ctx, fs, &f.trialFlags, out, tx, rx)
	}
	if wire.IsRamp(f.rate) {
		return measureRamp(ctx, fs, &f.trialFlags, out, tx, rx)
	}
	return measure(ctx, fs, &f.trialFlags, out, tx, rx)
}

// runPairs is run with --pair.
func runPairs(ctx context.Context, fs *pflag.FlagSet, f *trialFlags, stdout, stderr io.Writer, pairs []string) error {
	switch {
	case fs.Changed("tx") || fs.Changed("rx"):
		return &usageError{"--pair names both interfaces: --tx and --rx do not go with it", "--pair eth1,eth2 --pair eth3,eth4"}
	case wire.IsRamp(f.rate):
		return &usageError{"a ramp takes one pair", "--tx eth1 --rx eth2 --rate " + f.rate}
	}
	out, err := newOutput(f.out, stdout, stderr)
	if err != nil {
		return err
	}
	return measurePairs(ctx, fs, f, out, pairs)
}

func blastCommand() command {
	return command{
		name: "blast", job: "send only", synopsis: "blast EP",
		about: `Send only; the other end is not in hand, so half the budget is not known.`,
		examples: []example{
			{"linerate blast eth1 --frame 64 --rate 1Mpps -t 10s --dst-mac 02:00:00:00:00:02", ""},
			{"linerate blast eth1 --pcap trace.pcapng --pcap-speed 2x", ""},
			{"linerate blast eth1 --pcap trace.pcap --rate 500kpps --loops 100", ""},
			{"linerate blast eth1 --streams mix.yaml --dst-mac 02:00:00:00:00:02", ""},
		},
		endpoint: true,
		flags:    func() *pflag.FlagSet { fs, _ := endFlagSet("blast", sides{tx: true}); return fs },
		run:      runBlast,
	}
}

// endFlagSet makes the flags of a command that has one end in hand.
func endFlagSet(name string, s sides) (*pflag.FlagSet, *trialFlags) {
	f := &trialFlags{}
	fs := newFlags(name)
	f.register(fs, s)
	return fs, f
}

func runBlast(ctx context.Context, stdout, stderr io.Writer, args []string) error {
	fs, f := endFlagSet("blast", sides{tx: true})
	ep, out, err := oneEnd(fs, f, args, stdout, stderr)
	if err != nil {
		return err
	}
	return measure(ctx, fs, f, out, ep, "")
}

func sinkCommand() command {
	return command{
		name: "sink", job: "receive: verify, count, drop or capture", synopsis: "sink EP",
		about: `Receive what blast sends: verify it, count it, capture it, or drop it in XDP.`,
		examples: []example{
			{"linerate sink eth2 -t 30s", ""},
			{"linerate sink eth2 --action drop --steer all --json", ""},
			{"linerate sink eth2 --action capture --capture bad:100 --write bad.pcapng", ""},
		},
		endpoint: true,
		flags:    func() *pflag.FlagSet { fs, _ := endFlagSet("sink", sides{rx: true}); return fs },
		run:      runSink,
	}
}

func runSink(ctx context.Context, stdout, stderr io.Writer, args []string) error {
	fs, f := endFlagSet("sink", sides{rx: true})
	ep, out, err := oneEnd(fs, f, args, stdout, stderr)
	if err != nil {
		return err
	}
	return measure(ctx, fs, f, out, "", ep)
}

// oneEnd parses a command that names one interface.
func oneEnd(fs *pflag.FlagSet, f *trialFlags, args []string, stdout, stderr io.Writer) (string, *output, error) {
	if err := parse(stdout, fs, args); err != nil {
		return "", nil, err
	}
	if fs.NArg() != 1 {
		return "", nil, &usageError{fmt.Sprintf("%s needs one interface, got %d", fs.Name(), fs.NArg()), "linerate " + fs.Name() + " eth1"}
	}
	out, err := newOutput(f.out, stdout, stderr)
	return fs.Arg(0), out, err
}

func noMore(fs *pflag.FlagSet) error {
	if fs.NArg() > 0 {
		return &usageError{fmt.Sprintf("%s takes no argument %q", fs.Name(), fs.Arg(0)), "linerate help " + fs.Name()}
	}
	return nil
}

// measure opens the named ends, runs one trial and writes its result.
func measure(ctx context.Context, fs *pflag.FlagSet, f *trialFlags, out *output, txName, rxName string) error {
	tx, err := openGuarded(txName, f.ownLink)
	if err != nil {
		return explain(err)
	}
	defer tx.close()
	rx, err := openGuarded(rxName, f.ownLink)
	if err != nil {
		return explain(err)
	}
	defer rx.close()
	f.stop = ctx.Err
	spec, err := f.spec(fs, tx, rx)
	if err != nil {
		return explain(err, tx, rx)
	}
	viaHop(ctx, &spec, out)
	runID := newRunID(spec)
	stop, err := out.serveMetrics(ctx, runID, spec)
	if err != nil {
		return err
	}
	defer stop()
	result, err := trial.Run(ctx, spec, out.observe(runID))
	if result == nil {
		return explain(err, tx, rx)
	}
	doc := runDocument(runID, result)
	werr := out.finish(doc, result.Interrupted)
	if cerr := writeCapture(f.pcap.write, result); cerr != nil {
		return &unwrittenError{cerr}
	}
	var v *verdictError
	if err != nil && (werr == nil || errors.As(werr, &v)) && !result.Interrupted {
		fmt.Fprintln(out.stderr, "linerate:", explain(err, tx, rx))
	}
	return werr
}

// openGuarded opens an endpoint that the host can spare; no name, no endpoint.
func openGuarded(name string, own bool) (*endpoint, error) {
	if name == "" {
		return nil, nil
	}
	e, err := openEndpoint(name)
	if err != nil {
		return nil, err
	}
	if err := e.guard(own); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}
