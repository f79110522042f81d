package engine

import (
	"context"
	"errors"
	"time"

	"linerate/bpf"
	"linerate/internal/meter"
)

// dropReceiver counts and drops in XDP: no socket, no verification.
type dropReceiver struct {
	sink     *bpf.Sink
	att      *bpf.Attachment
	counters *meter.RxCounters
}

// OpenDropReceiver attaches the sink program.
func OpenDropReceiver(c Config, o RxOptions) (Receiver, error) {
	r := &dropReceiver{counters: new(meter.RxCounters)}
	err := c.Port.Do(func() (err error) {
		s := o.Steer
		r.sink, err = bpf.LoadSink(bpf.SinkConfig{Match: s.Match, Ports: s.Ports, VLANs: s.VLANs, MACs: s.MACs,
			Run: s.Run, Queues: s.Queues, Frags: s.Frags,
			LoseBeforeSeen: c.Fault.LoseBeforeSeen, LoseAfterSeen: c.Fault.LoseAfterSeen})
		if err != nil {
			return err
		}
		r.att, err = attach(r.sink.Program(), c)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *dropReceiver) Granted() Granted {
	m := xdpMode(r.att)
	return Granted{Mode: string(m), XDPMode: m}
}

func (r *dropReceiver) Counters() []*meter.RxCounters { return []*meter.RxCounters{r.counters} }

func (r *dropReceiver) Ended() bool { return false }

// Program reads what the sink program has counted.
func (r *dropReceiver) Program() (ProgramCounts, error) {
	queues, err := r.sink.Counters()
	if err != nil {
		return ProgramCounts{}, err
	}
	var all []bpf.QueueCounters
	for _, q := range queues {
		all = append(all, q.QueueCounters)
	}
	return programCounts(all), nil
}

// Run publishes the program's count until ctx ends.
func (r *dropReceiver) Run(ctx context.Context, _ Watch) (RxResult, error) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	base, err := r.dropped()
	for err == nil && ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
		var now uint64
		now, err = r.dropped()
		r.counters.Publish(&meter.RxCounts{Taken: now - base})
	}
	return RxResult{}, err
}

// dropped is how many frames the program has accounted for.
func (r *dropReceiver) dropped() (uint64, error) {
	c, err := r.Program()
	var n uint64
	for _, q := range c.Accounted {
		n += q
	}
	return n, err
}

// Close detaches and unloads.
func (r *dropReceiver) Close() error {
	var errs []error
	if r.att != nil {
		errs = append(errs, r.att.Close())
		r.att = nil
	}
	if r.sink != nil {
		errs = append(errs, r.sink.Close())
		r.sink = nil
	}
	return errors.Join(errs...)
}
