package engine

import (
	"context"
	"errors"
	"time"

	"linerate/bpf"
	"linerate/internal/meter"
	"linerate/xsk"
)

// dropReceiver counts and drops in XDP: no socket, no verification.
type dropReceiver struct {
	sink     *bpf.Sink
	att      *bpf.Attachment
	counters *meter.RxCounters
	queues   []Queue
	granted  Granted
}

// OpenDropReceiver attaches the sink program.
func OpenDropReceiver(c Config, o RxOptions) (Receiver, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	r := &dropReceiver{counters: new(meter.RxCounters), queues: c.Queues}
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
	m := xdpMode(r.att)
	r.granted = Granted{Mode: string(m), XDPMode: m, Notes: fallback(r.att, c)}
	return r, nil
}

func (r *dropReceiver) Granted() Granted { return r.granted }

func (r *dropReceiver) Counters() []*meter.RxCounters { return []*meter.RxCounters{r.counters} }

func (r *dropReceiver) Ended() bool { return false }

// Arm has nothing to do: every frame is accounted for where it is counted.
func (r *dropReceiver) Arm() error { return nil }

// Disarm has nothing to undo.
func (r *dropReceiver) Disarm() error { return nil }

// Program reads what the sink program has counted.
func (r *dropReceiver) Program() (ProgramCounts, error) {
	if r.sink == nil {
		return ProgramCounts{}, ErrClosed
	}
	queues, err := r.sink.QueueCounters()
	if err != nil {
		return ProgramCounts{}, err
	}
	return programCounts(queues), nil
}

// Run publishes the program's count until ctx ends.
func (r *dropReceiver) Run(ctx context.Context, w Watch) (RxResult, error) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	base, err := r.dropped()
	if err != nil {
		return RxResult{}, err
	}
	rate := tickRating{rating: rating{warmup: w.Warmup}}
	for now := base; ; {
		if res := r.result(now, base); err != nil || ctx.Err() != nil {
			res.Rated = rate.Rated
			return res, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
		at := xsk.NowNs()
		if now, err = r.dropped(); err == nil {
			c := total(now).since(total(base))
			r.counters.Publish(&meter.RxCounts{Taken: c.frames, Bytes: c.bytes})
			rate.tick(at, c)
		}
	}
}

// result is what the receiver's own queues have dropped.
func (r *dropReceiver) result(now, base map[int]dropped) RxResult {
	var res RxResult
	for _, q := range r.queues {
		c := now[q.ID].since(base[q.ID])
		res.Queues = append(res.Queues, RxQueue{Queue: q, Taken: c.frames, Bytes: c.bytes})
	}
	return res
}

// dropped is what the program has dropped, by queue.
func (r *dropReceiver) dropped() (map[int]dropped, error) {
	queues, err := r.sink.Counters()
	if err != nil {
		return nil, err
	}
	out := map[int]dropped{}
	for _, q := range queues {
		out[q.Queue] = dropped{q.Dropped(), q.Bytes}
	}
	return out, nil
}

// dropped counts frames and their L2 bytes with FCS.
type dropped struct{ frames, bytes uint64 }

func (d dropped) since(b dropped) dropped { return dropped{d.frames - b.frames, d.bytes - b.bytes} }

func total(queues map[int]dropped) (sum dropped) {
	for _, d := range queues {
		sum.frames += d.frames
		sum.bytes += d.bytes
	}
	return sum
}

// tickRating is a rating of counts that are read now and then. Frames end at
// some time before the last look that sees them, so what that one sees is left
// out.
type tickRating struct {
	rating
	all  dropped // at the last look
	last dropped // what the last look that saw any saw
	atNs int64   // its time
}

func (t *tickRating) tick(nowNs int64, all dropped) {
	if all == t.all {
		return
	}
	t.add(t.atNs, t.last.frames, t.last.bytes)
	t.last, t.all, t.atNs = all.since(t.all), all, nowNs
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
