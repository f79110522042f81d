package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"linerate/internal/lab/veth"
)

func demoCommand() command {
	return command{
		name: "demo", job: "build a throw-away two-host lab, send, verify, print the frame budget", synopsis: "demo",
		about: `Builds two throw-away hosts joined by a veth pair, sends tagged frames from one
to the other over AF_XDP, verifies every one and prints where each of them went.`,
		examples: []example{
			{"linerate demo", ""},
			{"linerate demo --rate max --frame imix", ""},
			{"linerate demo --engine live --rate max --queues 0,1", "made and verified inside the kernel"},
			{"linerate demo --rate max --threaded-napi --budget 2048", "overflows the veth ring"},
		},
		flags: func() *pflag.FlagSet { fs, _ := demoFlags(); return fs },
		run:   runDemo,
	}
}

// demoOnly are the flags that no other command has.
type demoOnly struct {
	trialFlags
	nic      string
	threaded bool
}

func demoFlags() (*pflag.FlagSet, *demoOnly) {
	f := &demoOnly{}
	fs := newFlags("demo")
	f.register(fs, sides{tx: true, rx: true})
	fs.StringVar(&f.nic, "nic", "veth", "what joins the two hosts: veth")
	choices(fs, "nic", "veth")
	fs.BoolVar(&f.threaded, "threaded-napi", false, "run the receiver's NAPI in a kernel thread, on a core of its own")
	for name, value := range map[string]string{"rate": "100kpps", "duration": "3s", "ring": "16384"} {
		setDefault(fs, name, value)
	}
	return fs, f
}

func runDemo(ctx context.Context, stdout, stderr io.Writer, args []string) (err error) {
	fs, f := demoFlags()
	if err := parse(stdout, fs, args); err != nil {
		return err
	}
	if err := noMore(fs); err != nil {
		return err
	}
	if f.nic != "veth" {
		return fmt.Errorf("demo --nic %s is not built yet in linerate %s\n  try: --nic veth", f.nic, version)
	}
	out, err := newOutput(f.out, stdout, stderr)
	if err != nil {
		return err
	}
	lab, err := veth.Up(veth.Config{Queues: demoQueues(&f.trialFlags)})
	if err != nil {
		return explain(fmt.Errorf("build the demo lab: %w", err))
	}
	defer func() { err = firstError(err, lab.Down()) }()
	if f.threaded {
		f.attached = func() error { return lab.SetThreadedNAPI(veth.B, true) }
	}
	if !f.out.json && !f.out.ndjson {
		what := fmt.Sprintf("for %s at %s", f.duration.Round(100*time.Millisecond), f.rate)
		if file := either(f.streams, f.pcap.file); file != "" {
			what = "the frames of " + file
		}
		out.say("lab: %s sends to %s %s\n", lab.A(), lab.B(), what)
	}
	return measure(ctx, fs, &f.trialFlags, out, lab.A(), lab.B())
}

// demoQueues is how many queues the lab needs for the queues the user named.
func demoQueues(f *trialFlags) int {
	most := 0
	for _, s := range []string{f.queues, f.txQueues, f.rxQueues} {
		ids, err := parseInts(s)
		if err != nil {
			continue
		}
		for _, id := range ids {
			most = max(most, id)
		}
	}
	return min(most+1, 16)
}
