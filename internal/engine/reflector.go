package engine

import (
	"errors"

	"linerate/bpf"
)

// Reflector sends frames back where they came from, inside the kernel. It
// works from Open to Close, with no worker.
type Reflector struct {
	reflect *bpf.Reflect
	att     *bpf.Attachment
}

// OpenReflector attaches the reflect program, which turns what o steers.
func OpenReflector(c Config, steer bpf.SteerConfig) (*Reflector, error) {
	r := new(Reflector)
	err := c.Port.Do(func() (err error) {
		r.reflect, err = bpf.LoadReflect(bpf.SinkConfig{Match: steer.Match, Ports: steer.Ports, VLANs: steer.VLANs,
			MACs: steer.MACs, Run: steer.Run, Queues: steer.Queues})
		if err != nil {
			return err
		}
		r.att, err = attach(r.reflect.Program(), c)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Program reads what the program has counted; Accounted are the frames it sent
// back.
func (r *Reflector) Program() (ProgramCounts, error) {
	if r.reflect == nil {
		return ProgramCounts{}, ErrClosed
	}
	queues, err := r.reflect.QueueCounters()
	if err != nil {
		return ProgramCounts{}, err
	}
	return programCounts(queues), nil
}

// Close detaches and unloads. It may be called twice.
func (r *Reflector) Close() error {
	var errs []error
	if r.att != nil {
		errs = append(errs, r.att.Close())
		r.att = nil
	}
	if r.reflect != nil {
		errs = append(errs, r.reflect.Close())
		r.reflect = nil
	}
	return errors.Join(errs...)
}
