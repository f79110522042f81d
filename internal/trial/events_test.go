package trial

import (
	"context"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"linerate/internal/budget"
	"linerate/internal/engine"
)

// disturb does something to an end's interface in mid-run.
type disturb func(e *End) error

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

func disturbed(t *testing.T, s Spec, e *End, do disturb) {
	t.Helper()
	timer := time.AfterFunc(time.Second, func() {
		if err := e.Port.NS.Do(func() error { return do(e) }); err != nil {
			t.Errorf("disturb: %v", err)
		}
	})
	defer timer.Stop()
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
	t.Logf("error %v, events %v, frames sent %v", err, o.Events, o.Frames.Sent)
}
