package main

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"linerate/internal/metrics"
	"linerate/internal/trial"
)

// checkMetrics completes the address of --metrics.
func (f *outputFlags) checkMetrics() error {
	if f.metrics == "" {
		return nil
	}
	address, err := metrics.Address(f.metrics)
	if err != nil {
		return &usageError{fmt.Sprintf("--metrics %s: %v", f.metrics, err), "--metrics :9100"}
	}
	f.metrics = address
	return nil
}

// serveMetrics serves the run's metrics, if --metrics says so, until stop is
// called. An address that cannot be had is an error before anything is sent.
func (o *output) serveMetrics(ctx context.Context, runID string, spec trial.Spec) (stop func(), err error) {
	if o.flags.metrics == "" {
		return func() {}, nil
	}
	run := metrics.Run{ID: runID, Version: version}
	if spec.Tx != nil {
		run.Tx = spec.Tx.Endpoint
	}
	if spec.Rx != nil {
		run.Rx = spec.Rx.Endpoint
	}
	o.collector = metrics.New(run)
	s, err := metrics.Serve(ctx, o.flags.metrics, o.collector)
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return nil, fmt.Errorf("%w\n  try: another port; --metrics :0 takes a free one", err)
	case err != nil:
		return nil, fmt.Errorf("%w\n  try: --metrics :9100", err)
	}
	fmt.Fprintf(o.stderr, "metrics: %s\n", s.URL())
	if !s.Loopback() {
		fmt.Fprintf(o.stderr, "warning: --metrics %s: whoever reaches this address can read the metrics; --metrics :9100 is for this host alone\n", o.flags.metrics)
	}
	return func() {
		if err := s.Close(); err != nil {
			fmt.Fprintf(o.stderr, "linerate: close metrics: %v\n", err)
		}
	}, nil
}
