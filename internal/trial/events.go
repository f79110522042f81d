package trial

import (
	"context"
	"sync"
	"time"

	"linerate/internal/meter"
	"linerate/internal/nic"
	"linerate/xsk"
)

// happening is an event and the end it happened to.
type happening struct {
	endpoint string
	nic.Event
}

// watch opens the event watchers of both ends before the baselines, so that no
// event of the trial is missed. stop ends them and waits for that.
func (r *running) watch(ctx context.Context) (events <-chan happening, stop func(), err error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	all := make(chan happening)
	var wg sync.WaitGroup
	stop = func() { cancel(); wg.Wait() }
	for _, e := range r.ends() {
		one, err := e.Port.Watch(ctx)
		if err != nil {
			stop()
			return nil, nil, err
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			for ev := range one {
				select {
				case all <- happening{e.Endpoint, ev}:
				case <-ctx.Done():
				}
			}
		}()
	}
	return all, stop, nil
}

// late takes in the events since the end of wait: while the counters settled,
// or at the moment at which a worker ended, perhaps because of it. They empty
// rings like any other.
func (r *running) late(events <-chan happening) {
	for {
		select {
		case e := <-events:
			r.event(e)
		case <-time.After(eventGrace):
			return
		}
	}
}

// stopped notes the error that ended a worker before its time. After an event
// it is the event that did.
func (r *running) stopped(e *End, err error) {
	if err != nil && len(r.out.Events) == 0 {
		r.out.Stopped = append(r.out.Stopped, Event{Endpoint: e.Endpoint, What: err.Error()})
	}
}

// event notes what happened to an end. Each kind of it ends the trial: rings
// may have been emptied, and nothing measured later would be comparable.
func (r *running) event(h happening) {
	what := string(h.Kind)
	if h.Text != "" {
		what += " (" + h.Text + ")"
	}
	r.out.event(h.endpoint, what)
}

func (o *Outcome) event(endpoint, what string) {
	o.Events = append(o.Events, Event{Endpoint: endpoint, What: what})
}

// meters reads what the workers have published.
func (r *running) meters() meter.Snapshot {
	var tx []*meter.TxCounters
	var rx []*meter.RxCounters
	if r.tx != nil {
		tx = r.tx.Counters()
	}
	if r.rx != nil {
		rx = r.rx.Counters()
	}
	return meter.Take(xsk.NowNs(), tx, rx)
}

// progress tells the observer what the last interval held.
func (r *running) progress() {
	now := r.meters()
	if r.observe == nil || now.AtNs <= r.startNs {
		return
	}
	r.observe(Progress{
		ElapsedNs: now.AtNs - r.startNs, HasTx: r.tx != nil, HasRx: r.rx != nil,
		Total: meter.Between(r.first, now), Last: meter.Between(r.tick, now),
	})
	r.tick = now
}
