package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"linerate/internal/lab/veth"
)

const demoExample = `Builds two throw-away hosts joined by a veth pair, sends tagged frames from one
to the other over AF_XDP, verifies every one and prints where each of them went.
  linerate demo
  linerate demo --rate max --frame imix
  linerate demo --rate max --threaded-napi --budget 2048    (overflows the veth ring)
`

func runDemo(ctx context.Context, stdout, stderr io.Writer, args []string) (err error) {
	var f trialFlags
	fs := newFlags(stdout, "demo", demoExample)
	f.register(fs, sides{tx: true, rx: true})
	nicKind := fs.String("nic", "veth", "what joins the two hosts: veth")
	threaded := fs.Bool("threaded-napi", false, "run the receiver's NAPI in a kernel thread, on a core of its own")
	for name, value := range map[string]string{"rate": "100kpps", "duration": "3s", "ring": "16384"} {
		setDefault(fs, name, value)
	}
	if err := parse(fs, args); err != nil {
		return err
	}
	if err := noMore(fs); err != nil {
		return err
	}
	if *nicKind != "veth" {
		return fmt.Errorf("demo --nic %s is not built yet in linerate %s\n  try: --nic veth", *nicKind, version)
	}
	out, err := newOutput(f.out, stdout, stderr)
	if err != nil {
		return err
	}
	lab, err := veth.Up(veth.Config{Queues: demoQueues(&f)})
	if err != nil {
		return explain(fmt.Errorf("build the demo lab: %w", err))
	}
	defer func() { err = firstError(err, lab.Down()) }()
	if *threaded {
		f.attached = func() error { return lab.SetThreadedNAPI(veth.B, true) }
	}
	if !f.out.json && !f.out.ndjson {
		what := fmt.Sprintf("for %s at %s", f.duration.Round(100*time.Millisecond), f.rate)
		if file := either(f.streams, f.pcap.file); file != "" {
			what = "the frames of " + file
		}
		out.say("lab: %s sends to %s %s\n", lab.A(), lab.B(), what)
	}
	return measure(ctx, fs, &f, out, lab.A(), lab.B())
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
