package trial

import (
	"context"
	"testing"
	"time"

	"linerate/internal/engine"
)

// The warm-up is sent, received and accounted for, and not in any rate.
func TestWarmupIsNotRated(t *testing.T) {
	eachEngine(t, func(t *testing.T, eng engine.Name, a, b string) {
		s := spec(t, eng, a, b)
		s.Warmup = 50 * time.Millisecond // of 100
		o := run(t, s)
		expect(t, o, map[string]uint64{"sent": 2000, "received": 2000, "unexplained": 0})
		for end, r := range map[string]struct {
			rated engine.Rated
			first int64
			pps   *float64
		}{"tx": {o.Tx.Rated, o.Tx.FirstNs, o.Rate.TxPPS}, "rx": {o.Rx.Rated, o.Rx.FirstNs, o.Rate.RxPPS}} {
			if r.rated.FirstNs < r.first+int64(s.Warmup) {
				t.Errorf("%s: rated from %d, but the first frame was at %d", end, r.rated.FirstNs, r.first)
			}
			if r.rated.Frames == 0 || r.rated.Frames > 1500 {
				t.Errorf("%s: %d of 2000 frames rated", end, r.rated.Frames)
			}
			if want, ok := r.rated.PPS(0); !ok || r.pps == nil || *r.pps != want {
				t.Errorf("%s: %v pps, want %f", end, r.pps, want)
			}
		}
	})
}

// END frames come late: they would stretch the time of a sink's rate.
func TestEndFramesAreNotRated(t *testing.T) {
	eachEngine(t, func(t *testing.T, eng engine.Name, a, b string) {
		blast, sink := spec(t, eng, a, b), spec(t, eng, a, b)
		blast.Rx, sink.Tx = nil, nil
		sink.AnyRun, sink.Count, sink.Duration, sink.Steer.Run = true, 0, 20*time.Second, 0
		got := make(chan *Outcome)
		go func() {
			o, err := Run(context.Background(), sink, nil)
			if err != nil {
				t.Errorf("sink: %v", err)
			}
			got <- o
		}()
		waitForProgram(t, sink.Rx)
		sent, o := run(t, blast), <-got
		if o == nil {
			t.FailNow()
		}
		n := value(t, "sent", sent.Frames.Sent)
		if sent.Tx.Rated.Frames != n {
			t.Errorf("blast rates %d frames of %d", sent.Tx.Rated.Frames, n)
		}
		all := o.Rx.Rated.Frames == n
		if o.Spec.Rx.Engine == engine.XDP { // looks now and then, and leaves out what the last look saw
			all = o.Rx.Rated.Frames > 0 && o.Rx.Rated.Frames < n
		}
		if !all || o.Rx.Rated.LastNs >= o.Rx.LastNs {
			t.Errorf("sink rates %+v, though the last END came at %d", o.Rx.Rated, o.Rx.LastNs)
		}
	})
}

// A sink that drops in XDP has no worker that takes frames, and a rate all the
// same.
func TestDropIsRated(t *testing.T) {
	eachEngine(t, func(t *testing.T, eng engine.Name, a, b string) {
		s := spec(t, eng, a, b)
		s.Action, s.Steer.Stamp, s.Count = Drop, false, 10_000
		o := run(t, s)
		_, _, submitted := sums(o)
		if len(o.Rx.Queues) != 1 || o.Rx.Queues[0].Taken != submitted || eng != engine.Live && submitted != 10_000 {
			t.Errorf("queues %+v", o.Rx.Queues)
		}
		if o.Rate.RxPPS == nil || o.Rate.RxMeanFrame != 64 {
			t.Errorf("%v pps of %f bytes", o.Rate.RxPPS, o.Rate.RxMeanFrame)
		}
	})
}

// What was refused before the rates begin is not in them; where nobody knows
// when it was, the rate is unknown.
func TestRefusedSinceWarmup(t *testing.T) {
	refused := uint64(10)
	known := engine.TxQueue{Refused: 10, Warmup: engine.Warmup{Refused: 4}}
	for name, c := range map[string]struct {
		tx     engine.TxResult
		warmup time.Duration
		n      uint64
		known  bool
	}{
		"counted":           {engine.TxResult{Queues: []engine.TxQueue{known, {}}}, time.Second, 6, true},
		"by the device":     {engine.TxResult{RefusedUnknown: true}, 0, 10, true},
		"no one knows when": {engine.TxResult{RefusedUnknown: true}, time.Second, 10, false},
	} {
		r := &running{spec: Spec{Warmup: c.warmup}, out: &Outcome{Tx: c.tx}}
		r.out.Frames.Refused = &refused
		if n, ok := r.refusedSinceWarmup(); n != c.n || ok != c.known {
			t.Errorf("%s: %d, known %v", name, n, ok)
		}
		r.out.Frames.Refused = nil
		if _, ok := r.refusedSinceWarmup(); ok {
			t.Errorf("%s: refused is unknown, and the rate is not", name)
		}
	}
}
