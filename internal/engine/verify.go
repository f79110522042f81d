package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"linerate/bpf"
	"linerate/internal/frame"
	"linerate/internal/meter"
	"linerate/xsk"
)

// verifyReceiver verifies and accounts in XDP: no socket. What the program does
// not find good it shows to the same checker that the socket engines use.
type verifyReceiver struct {
	cfg     Config
	verify  *bpf.Verify
	att     *bpf.Attachment
	meters  []*meter.RxCounters
	granted Granted
	judge   atomic.Pointer[judge]
}

// verifyLook is how often the program's counts are read: what its rates are
// made of.
const verifyLook = 5 * time.Millisecond

// judge is one trial's look at the doubtful frames, by one goroutine.
type judge struct {
	watched
	checker *frame.Checker
	queues  map[int]*frame.QueueAccount
	adopted bool
	err     error
}

// OpenVerifyReceiver attaches the verify program.
func OpenVerifyReceiver(c Config, o RxOptions) (Receiver, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	r := &verifyReceiver{cfg: c}
	for range c.Queues {
		r.meters = append(r.meters, new(meter.RxCounters))
	}
	err := c.Port.Do(func() (err error) {
		s := o.Steer
		r.verify, err = bpf.LoadVerify(bpf.VerifyConfig{SinkConfig: bpf.SinkConfig{Match: s.Match, Ports: s.Ports,
			VLANs: s.VLANs, MACs: s.MACs, Run: s.Run, Queues: s.Queues,
			LoseBeforeSeen: c.Fault.LoseBeforeSeen, LoseAfterSeen: c.Fault.LoseAfterSeen},
			LoseDropped: uint32(c.Fault.LoseTaken)})
		if err != nil {
			return err
		}
		r.att, err = attach(r.verify.Program(), c)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	m := xdpMode(r.att)
	r.granted = Granted{Mode: string(m), XDPMode: m, Notes: fallback(r.att, c)}
	return r, nil
}

func (r *verifyReceiver) Granted() Granted { return r.granted }

func (r *verifyReceiver) Counters() []*meter.RxCounters { return r.meters }

// Arm makes the program take frames.
func (r *verifyReceiver) Arm() error { return r.arm(true) }

// Disarm leaves them to the stack again.
func (r *verifyReceiver) Disarm() error { return r.arm(false) }

func (r *verifyReceiver) arm(on bool) error {
	if r.verify == nil {
		return ErrClosed
	}
	return r.verify.Arm(on)
}

// Program reads what the program has counted.
func (r *verifyReceiver) Program() (ProgramCounts, error) {
	if r.verify == nil {
		return ProgramCounts{}, ErrClosed
	}
	queues, err := r.verify.QueueCounters()
	if err != nil {
		return ProgramCounts{}, err
	}
	return programCounts(queues), nil
}

// Run judges the doubtful frames and publishes the program's counts until ctx
// ends. The program's account is of its whole life: one trial a receiver.
func (r *verifyReceiver) Run(ctx context.Context, w Watch) (RxResult, error) {
	if r.verify == nil {
		return RxResult{}, ErrClosed
	}
	if err := r.Arm(); err != nil {
		return RxResult{}, err
	}
	j := &judge{watched: *newWatched(w), queues: map[int]*frame.QueueAccount{}}
	j.checker = frame.NewChecker(frame.CheckerConfig{Run: w.Run, Adopt: j.adopt, PayloadCheck: w.PayloadCheck})
	r.judge.Store(j)
	done := make(chan struct{})
	go func() { defer close(done); j.follow(ctx, r.verify) }()
	res, err := r.watch(ctx, w)
	<-done
	if err = errors.Join(err, j.err); err != nil {
		return res, err
	}
	return res, r.account(j, &res)
}

// follow judges until ctx ends, and then what is still in the ring.
func (j *judge) follow(ctx context.Context, v *bpf.Verify) {
	var c frame.Checked
	for {
		over := ctx.Err() != nil // before the look: what came until then is judged
		wait := pollEvery
		if over {
			wait = 0
		}
		queue, _, buf, ok, err := v.Doubtful(wait)
		switch {
		case err != nil:
			j.err = err
			return
		case !ok && over:
			return
		case !ok:
			continue
		}
		j.checker.Check(buf, &c)
		j.queue(queue).Count(&c)
		j.queue(queue).Publish()
		if j.err = j.tell(v); j.err != nil {
			return
		}
	}
}

// tell lets the program know the run as soon as it is known.
func (j *judge) tell(v *bpf.Verify) error {
	if j.adopt == nil || j.adopted {
		return nil
	}
	run, known := j.adopt.Run()
	if known != 0xffff {
		return nil
	}
	j.adopted = true
	return v.SetRun(uint16(run))
}

func (j *judge) queue(id int) *frame.QueueAccount {
	q := j.queues[id]
	if q == nil {
		q = j.watched.account.Queue(id)
		j.queues[id] = q
	}
	return q
}

// watch publishes the program's counts until ctx ends.
func (r *verifyReceiver) watch(ctx context.Context, w Watch) (RxResult, error) {
	tick := time.NewTicker(verifyLook)
	defer tick.Stop()
	base, err := r.verify.Counters()
	rate := tickRating{rating: rating{warmup: w.Warmup}}
	var res RxResult
	first, last, seen := int64(0), int64(0), droppedIn(base)
	for now := base; err == nil; {
		over := ctx.Err() != nil
		res = r.counted(now, base)
		if over {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
		at := xsk.NowNs()
		if now, err = r.verify.Counters(); err != nil {
			break
		}
		if n := droppedIn(now); n > seen {
			seen, last = n, at
		}
		if rate.tick(at, good(now, base)); first == 0 {
			first = rate.atNs
		}
	}
	res.Rated = rate.Rated
	res.FirstNs, res.LastNs = first, last
	return res, err
}

// droppedIn is what the program has dropped in all, END frames included.
func droppedIn(all []bpf.VerifyCounters) (n uint64) {
	for _, c := range all {
		n += c.Dropped()
	}
	return n
}

// good is what the program has found good.
func good(now, base []bpf.VerifyCounters) (d dropped) {
	for i, c := range now {
		d.frames += c.Good - base[i].Good
		d.bytes += c.GoodBytes - base[i].GoodBytes
	}
	return d
}

// counted are the queues as the program counts them now.
func (r *verifyReceiver) counted(now, base []bpf.VerifyCounters) (res RxResult) {
	for i, q := range r.cfg.Queues {
		for k, c := range now {
			if c.Queue != q.ID {
				continue
			}
			taken, bytes := c.Dropped()-base[k].Dropped(), c.Bytes-base[k].Bytes
			res.Queues = append(res.Queues, RxQueue{Queue: q, Taken: taken, Bytes: bytes})
			r.meters[i].Publish(&meter.RxCounts{Taken: taken, Good: c.Good - base[k].Good, Bytes: bytes})
		}
	}
	return res
}

// account joins the program's account with that of the doubtful frames.
func (r *verifyReceiver) account(j *judge, res *RxResult) error {
	spaces, err := r.spaces()
	if err != nil {
		return err
	}
	losses, err := r.verify.Losses()
	if err != nil {
		return err
	}
	res.Spaces = frame.JoinSpaces(spaces, j.watched.account.Spaces())
	res.Streams = frame.StreamsOf(res.Spaces)
	res.Totals = j.watched.account.Totals()
	for _, s := range spaces {
		res.Totals.AddSpace(s)
	}
	res.Totals.Implausible += losses.NoSpace
	res.Totals.Corrupt += losses.NoSpace
	res.Unjudged = losses.Unjudged + losses.Contended
	res.ClockTrouble = losses.Backward
	if j.adopt != nil {
		res.Adopted, _ = j.adopt.Run()
	}
	return r.latency(res)
}

// spaces is the program's account, by sequence space.
func (r *verifyReceiver) spaces() ([]frame.SpaceTotals, error) {
	views, err := r.verify.Views()
	if err != nil {
		return nil, err
	}
	var all []frame.SpaceTotals
	for _, v := range views {
		s := frame.SpaceTotals{Space: frame.SpaceOf(v.Key), Distinct: v.Distinct, Duplicate: v.Duplicate, Reordered: v.Reordered,
			ReorderedBetween: v.ReorderedBetween, TooLate: v.TooLate, Implausible: v.Implausible, LowestSeq: v.Lowest}
		if v.Next > 0 {
			s.HighestSeq = v.Next - 1
		}
		all = append(all, s)
	}
	return frame.JoinSpaces(all), nil
}

// latency takes over the times of the sampled frames.
func (r *verifyReceiver) latency(res *RxResult) error {
	h := meter.NewHistogram()
	if err := r.verify.Latency(h.AddCell); err != nil {
		return err
	}
	if s, ok := h.Summary(); ok {
		res.Latency = &s
	}
	return nil
}

// Ended tells whether every sequence space seen has its END.
func (r *verifyReceiver) Ended() bool {
	j := r.judge.Load()
	if j == nil || !j.watched.ended() {
		return false
	}
	spaces, err := r.spaces()
	if err != nil {
		return false
	}
	for _, s := range frame.StreamsOf(frame.JoinSpaces(spaces, j.watched.account.Spaces())) {
		if !s.EndSeen {
			return false
		}
	}
	return true
}

// Close detaches and unloads.
func (r *verifyReceiver) Close() error {
	var errs []error
	if r.att != nil {
		errs = append(errs, r.att.Close())
		r.att = nil
	}
	if r.verify != nil {
		errs = append(errs, r.verify.Close())
		r.verify = nil
	}
	return errors.Join(errs...)
}
