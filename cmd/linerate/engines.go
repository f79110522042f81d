package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"linerate/bpf"
	"linerate/internal/engine"
	"linerate/internal/trial"
)

// endEngines are the engines that one end can have. The two that work inside
// the kernel belong together: the common flag may name either.
type endEngines struct {
	here, there engine.Name // in the kernel, at this end and at the other
	flag        string
}

var (
	txEngines = endEngines{engine.Live, engine.XDP, "--tx-engine"}
	rxEngines = endEngines{engine.XDP, engine.Live, "--rx-engine"}
)

// pick is the engine of an end, by its own flag or by the common one.
func (o endFlags) pick(common string) (engine.Name, error) {
	name := engine.Name(either(o.engine, common))
	switch {
	case name == engine.XSK, name == engine.Asavie, name == o.engines.here:
		return name, nil
	case name == o.engines.there && o.engine == "":
		return o.engines.here, nil
	}
	return "", &usageError{fmt.Sprintf("no engine %q for this end", name),
		fmt.Sprintf("%s xsk, asavie or %s", o.engines.flag, o.engines.here)}
}

// inKernelMode refuses modes of a socket for the engines that have none.
func inKernelMode(e *trial.End, mode string) error {
	if e.Engine != engine.Live && e.Engine != engine.XDP {
		return nil
	}
	if mode == "auto" || mode == "generic" && e.Engine == engine.XDP {
		return nil
	}
	return &usageError{fmt.Sprintf("--mode %s: engine %s has no socket and no generic mode to send in", mode, e.Engine), "--mode auto"}
}

// reflected makes the receiver send frames back, and the sender receive them.
func (f *trialFlags) reflected(fs *pflag.FlagSet, s *trial.Spec) error {
	if s.Action != trial.Verify {
		return &usageError{fmt.Sprintf("--action %s does not go with --reflect: the sender verifies what comes back", s.Action), "--action verify"}
	}
	if fs.Changed("rx-engine") && s.Rx.Engine != engine.XDP {
		return &usageError{"--reflect receives inside XDP: the queue that sends has no second socket", "--rx-engine xdp"}
	}
	s.Reflector = s.Rx
	back := *s.Tx
	back.Engine, back.Queues = engine.XDP, nil
	for q := range min(back.Port.RxQueues, bpf.MaxQueues) {
		back.Queues = append(back.Queues, engine.Queue{ID: q, CPU: -1})
	}
	s.Rx = &back
	s.Steer.Queues = len(back.Queues)
	return nil
}
