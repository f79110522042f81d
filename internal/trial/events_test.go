package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"linerate/internal/budget"
	"linerate/internal/engine"
	"linerate/internal/lab/veth"
	"linerate/internal/nettest"
)

// disturb does something to an end's interface in mid-run.
type disturb func(e *End) error

// later runs f half a second after the ends are attached; the test's end stops it.
func later(t *testing.T, s *Spec, f func() error) {
	t.Helper()
	s.Attached = func() error {
		timer := time.AfterFunc(500*time.Millisecond, func() {
			if err := f(); err != nil {
				t.Errorf("disturb: %v", err)
			}
		})
		t.Cleanup(func() { timer.Stop() })
		return nil
	}
}

func link(e *End) (netlink.Link, error) { return netlink.LinkByName(e.Port.Name) }

func linkDown(e *End) error {
	l, err := link(e)
	if err != nil {
		return err
	}
	return netlink.LinkSetDown(l)
}

func remove(e *End) error {
	l, err := link(e)
	if err != nil {
		return err
	}
	return netlink.LinkDel(l)
}

func raiseMTU(e *End) error {
	l, err := link(e)
	if err != nil {
		return err
	}
	return netlink.LinkSetMTU(l, e.Port.MTU-100)
}

// What happens to an interface in mid-run ends the run in bounded time, with
// what was measured so far and the verdict invalid.
func TestEventsEndTheTrial(t *testing.T) {
	for name, c := range map[string]struct {
		do disturb
		tx bool
	}{
		"sender down": {linkDown, true}, "receiver down": {linkDown, false},
		"sender gone": {remove, true}, "receiver gone": {remove, false},
		"mtu": {raiseMTU, false},
	} {
		t.Run(name, func(t *testing.T) {
			eachEngine(t, func(t *testing.T, eng engine.Name, a, b string) {
				s := spec(t, eng, a, b)
				s.Count, s.Duration = 0, 20*time.Second
				e := s.Rx
				if c.tx {
					e = s.Tx
				}
				disturbed(t, s, e, c.do)
			})
		})
	}
}

// Live frames go on into a device that is gone until the trial hears of it: the
// kernel's tracepoints name them, and no more than veth's ring holds is purged.
func TestLiveIntoAGoneDevice(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP, nettest.Tracing)
	for _, gone := range []veth.End{veth.A, veth.B} {
		lab := nettest.Lab(t, veth.Config{})
		s := spec(t, engine.Live, lab.A(), lab.B())
		s.Count, s.Duration = 0, 20*time.Second
		e := map[veth.End]*End{veth.A: s.Tx, veth.B: s.Rx}[gone]
		later(t, &s, func() error { return e.Port.NS.Do(func() error { return remove(e) }) })
		o, err := Run(context.Background(), s, nil)
		if o == nil {
			t.Fatal(err)
		}
		var lost, held uint64
		for _, r := range o.Rows {
			switch {
			case r.Frames == nil:
			case r.Kind == budget.Held:
				held += *r.Frames
			case r.Boundary == budget.TxKernel && r.Kind == budget.Loss:
				lost += *r.Frames
			}
		}
		if lost == 0 || held > 256 {
			t.Errorf("%s gone: %d frames named, %d purged\n%s", gone, lost, held, rowsText(o))
		}
	}
}

// A sink whose interface goes has measured for some time, not for less than none.
func TestSinkLosesItsInterface(t *testing.T) {
	eachEngine(t, func(t *testing.T, eng engine.Name, a, b string) {
		s := spec(t, eng, a, b)
		s.Tx, s.AnyRun, s.Steer.Run, s.Count, s.Duration = nil, true, 0, 0, 20*time.Second
		later(t, &s, func() error { return s.Rx.Port.NS.Do(func() error { return remove(s.Rx) }) })
		o, err := Run(context.Background(), s, nil)
		if o == nil {
			t.Fatal(err)
		}
		if o.Verdict != budget.Invalid || o.Measured <= 0 {
			t.Errorf("verdict %s, measured %s", o.Verdict, o.Measured)
		}
	})
}

// A receiver's process that is killed takes its account along: how many were
// received is unknown, not 0, and so is what was lost.
func TestReceiverIsKilled(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	lab := nettest.Lab(t, veth.Config{})
	s := spec(t, engine.Asavie, lab.A(), lab.B())
	s.Tx.Engine, s.Count, s.Duration = engine.XSK, 0, 20*time.Second
	later(t, &s, func() error {
		pid, err := onlyChild()
		if err != nil {
			return err
		}
		return unix.Kill(pid, unix.SIGKILL)
	})
	o, err := Run(context.Background(), s, nil)
	if o == nil || err == nil {
		t.Fatalf("outcome %v, error %v", o, err)
	}
	if o.Frames.Received != nil || o.Frames.Lost != nil || o.Frames.Unexplained != nil {
		t.Errorf("received %v, lost %v, unexplained %v: want all unknown\n%s", o.Frames.Received, o.Frames.Lost, o.Frames.Unexplained, rowsText(o))
	}
	if o.Verdict != budget.Invalid || o.Reasons[0].Code != "worker_stopped" {
		t.Errorf("verdict %s: %v", o.Verdict, o.Reasons)
	}
}

// onlyChild finds the process that one of this process's threads has started.
func onlyChild() (pid int, err error) {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return 0, err
	}
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err == nil && len(data) > 0 {
			_, err = fmt.Sscan(string(data), &pid)
			return pid, err
		}
	}
	return 0, os.ErrNotExist
}

// What happens to an interface after the last frame and before the last reading
// is an event of the trial: it may have emptied rings.
func TestEventWhileSettling(t *testing.T) {
	eachEngine(t, func(t *testing.T, eng engine.Name, a, b string) {
		s := spec(t, eng, a, b)
		s.Count, s.Settle, s.Interval = 1, 2*time.Second, 10*time.Millisecond
		later(t, &s, func() error { return s.Rx.Port.NS.Do(func() error { return linkDown(s.Rx) }) })
		o, err := Run(context.Background(), s, nil)
		if o == nil || err != nil {
			t.Fatal(err)
		}
		if o.Verdict != budget.Invalid || len(o.Events) == 0 {
			t.Errorf("verdict %s, events %v", o.Verdict, o.Events)
		}
	})
}

func disturbed(t *testing.T, s Spec, e *End, do disturb) {
	t.Helper()
	later(t, &s, func() error { return e.Port.NS.Do(func() error { return do(e) }) })
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	o, err := Run(ctx, s, nil)
	if o == nil {
		t.Fatalf("no outcome: %v", err)
	}
	if ctx.Err() != nil {
		t.Error("the trial did not end by itself")
	}
	if o.Verdict != budget.Invalid || len(o.Events) == 0 {
		t.Errorf("verdict %s, events %v, reasons %v", o.Verdict, o.Events, o.Reasons)
	}
	if value(t, "offered", o.Frames.Offered) == 0 {
		t.Error("nothing of what was measured is left")
	}
	// A device that is gone took its counters along: unknown, and no number made
	// of those that were read before.
	if gone := e.Port.Refresh(); gone != nil {
		if o.Frames.Unexplained != nil {
			t.Errorf("unexplained %d without the device's counters\n%s", *o.Frames.Unexplained, rowsText(o))
		}
		if o.Closed.Known != 0 {
			t.Errorf("the counters that are left leave %d unexplained\n%s", o.Closed.Known, rowsText(o))
		}
	}
	t.Logf("error %v, events %v, frames sent %v", err, o.Events, o.Frames.Sent)
}

// A worker that stopped early measured less than was asked for, even if nothing
// of that is missing.
func TestStoppedWorkerIsInvalid(t *testing.T) {
	r := &running{out: &Outcome{}}
	r.stopped(&End{Endpoint: "x/eth0"}, nil)
	if reasons := r.invalid(); len(reasons) != 0 {
		t.Errorf("nobody stopped: %v", reasons)
	}
	r.stopped(&End{Endpoint: "x/eth0"}, errors.New("send on queue 1: no such device"))
	r.remarks()
	reasons := r.invalid()
	if len(reasons) != 1 || reasons[0].Code != "worker_stopped" || reasons[0].Text != "x/eth0: send on queue 1: no such device" {
		t.Errorf("%v", reasons)
	}
	if len(r.out.Remarks) != 1 || r.out.Remarks[0].Code != "worker_stopped" {
		t.Errorf("%v", r.out.Remarks)
	}
}
