package trial

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"linerate/bpf"
	"linerate/internal/budget"
	"linerate/internal/engine"
	"linerate/internal/nic"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// The ends run apart: the sink learns from the END frames how many were sent.
func TestEndsApart(t *testing.T) {
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
		sent := run(t, blast)
		received := <-got
		if received == nil {
			t.FailNow()
		}
		expect(t, sent, map[string]uint64{"sent": 2000})
		n := value(t, "sent", sent.Frames.Sent)
		expect(t, received, map[string]uint64{"sent": n, "received": n, "lost": 0})
		for name, o := range map[string]*Outcome{"blast": sent, "sink": received} {
			if o.Frames.Unexplained != nil {
				t.Errorf("%s with one end in hand: unexplained %d, want null", name, *o.Frames.Unexplained)
			}
			if o.Verdict != budget.Pass {
				t.Errorf("%s: verdict %s: %v\n%s", name, o.Verdict, o.Reasons, rowsText(o))
			}
		}
		if sent.Frames.Received != nil || sent.Frames.Lost != nil {
			t.Error("blast claims to know what was received")
		}
	})
}

// waitForProgram waits until the sink's program is on its interface.
func waitForProgram(t *testing.T, e *End) {
	t.Helper()
	for range 500 {
		id, _, _, err := e.Port.XDP()
		if err != nil {
			t.Fatal(err)
		}
		if id != 0 {
			time.Sleep(100 * time.Millisecond) // its baselines
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the sink does not attach")
}

// Frames that come before the baselines are nobody's: they must not wait in a
// ring and then come out of nothing.
func TestFramesBeforeTheBaselines(t *testing.T) {
	eachEngine(t, func(t *testing.T, eng engine.Name, a, b string) {
		early, s := spec(t, eng, a, b), spec(t, eng, a, b)
		early.Rx = nil
		s.Tx, s.AnyRun, s.Steer.Run, s.Count, s.Duration = nil, true, 0, 0, 300*time.Millisecond
		s.Attached = func() error {
			_, err := Run(context.Background(), early, nil)
			return err
		}
		o := run(t, s)
		if o.Closed.Known != 0 {
			t.Errorf("%d unexplained\n%s", o.Closed.Known, rowsText(o))
		}
		expect(t, o, map[string]uint64{"received": 0, "untagged": 0})
	})
}

// Frames of others that come while the trial ends stand in no ring that has been
// emptied already.
func TestFramesAtTheEnd(t *testing.T) {
	eachEngine(t, func(t *testing.T, eng engine.Name, a, b string) {
		s := spec(t, eng, a, b)
		s.Tx, s.AnyRun, s.Count, s.Duration, s.Action = nil, true, 0, 300*time.Millisecond, Count
		s.Steer = bpf.SteerConfig{Match: bpf.MatchAll, Queues: s.Rx.Port.RxQueues}
		stop := make(chan struct{})
		done := make(chan error)
		go func() { done <- chatter(openPort(t, a), stop) }()
		o := run(t, s)
		close(stop)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		for _, r := range o.Closed.Residuals {
			if r.Boundary == budget.RxSocket && r.Frames != 0 {
				t.Errorf("%d frames between %s and %s\n%s", r.Frames, r.From, r.To, rowsText(o))
			}
		}
		if o.Rx.Queues[0].Taken == 0 {
			t.Error("nothing came at all")
		}
	})
}

// chatter sends frames of nobody's run until stop is closed.
func chatter(p *nic.Port, stop <-chan struct{}) error {
	var fd int
	err := p.NS.Do(func() (err error) {
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
		return err
	})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	frame := append(append([]byte{2, 2, 2, 2, 2, 2}, p.MAC[:]...), 0x88, 0xb5) // IEEE 802 local experimental
	frame = append(frame, make([]byte, 46)...)
	for {
		select {
		case <-stop:
			return nil
		case <-time.After(50 * time.Microsecond):
			if err := unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: p.Index}); err != nil {
				return err
			}
		}
	}
}

// A sink whose sender never says END knows only what it is missing for sure.
func TestTailUnknown(t *testing.T) {
	eachEngine(t, func(t *testing.T, eng engine.Name, a, b string) {
		s := spec(t, eng, a, b)
		s.Tx, s.AnyRun, s.Steer.Run, s.Count, s.Duration = nil, true, 0, 0, 300*time.Millisecond
		o := run(t, s)
		if o.Verdict != budget.Invalid || len(o.Reasons) == 0 || o.Reasons[0].Code != "tail_unknown" {
			t.Errorf("verdict %s %v, want invalid for an unknown tail", o.Verdict, o.Reasons)
		}
		if o.Frames.Sent != nil || o.Frames.Lost != nil {
			t.Errorf("sent %v lost %v, want both unknown", o.Frames.Sent, o.Frames.Lost)
		}
	})
}

// A trial that is interrupted drains and accounts for what it sent.
func TestInterruptedTrialCloses(t *testing.T) {
	eachEngine(t, func(t *testing.T, eng engine.Name, a, b string) {
		s := spec(t, eng, a, b)
		s.Count, s.Duration = 0, 30*time.Second
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		o, err := Run(ctx, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !o.Interrupted {
			t.Error("the outcome does not say that it was interrupted")
		}
		sent := value(t, "sent", o.Frames.Sent)
		if sent == 0 {
			t.Error("nothing was sent before the interrupt")
		}
		expect(t, o, map[string]uint64{"received": sent, "lost": 0, "unexplained": 0})
	})
}

func TestActions(t *testing.T) {
	eachEngine(t, func(t *testing.T, eng engine.Name, a, b string) {
		for _, action := range []Action{Count, Drop} {
			s := spec(t, eng, a, b)
			s.Action = action
			s.Steer.Stamp = false
			o := run(t, s)
			if o.Frames.Unexplained == nil || *o.Frames.Unexplained != 0 {
				t.Errorf("%s: unexplained %v\n%s", action, o.Frames.Unexplained, rowsText(o))
			}
			if o.Frames.Received != nil {
				t.Errorf("%s verifies nothing, yet says received %d", action, *o.Frames.Received)
			}
			if o.Verdict != budget.Pass {
				t.Errorf("%s: verdict %s %v", action, o.Verdict, o.Reasons)
			}
		}
	})
}
