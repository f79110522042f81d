package nic_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"

	"linerate/internal/lab/veth"
	"linerate/internal/nic"
)

// next waits for one event; a lab that never answers is a failure, not a hang.
func next(t *testing.T, ch <-chan nic.Event) nic.Event {
	t.Helper()
	select {
	case e := <-ch:
		return e
	case <-time.After(10 * time.Second):
		t.Fatal("no event")
		return nic.Event{}
	}
}

func watch(t *testing.T, p *nic.Port) <-chan nic.Event {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ch, err := p.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		for range ch { // until it is closed
		}
	})
	return ch
}

func TestWatchSeesEachChange(t *testing.T) {
	l := lab(t, 2)
	p := port(t, l, veth.A)
	ch := watch(t, p)
	steps := []struct {
		do   func(netlink.Link) error
		end  veth.End
		want nic.EventKind
	}{
		{func(k netlink.Link) error { return netlink.LinkSetMTU(k, 1400) }, veth.A, nic.EventMTU},
		{netlink.LinkSetDown, veth.B, nic.EventLinkDown},
		{netlink.LinkSetUp, veth.B, nic.EventLinkUp},
		{func(netlink.Link) error { return setQueues(1) }, veth.A, nic.EventQueues},
		{netlink.LinkSetDown, veth.A, nic.EventLinkDown},
		{netlink.LinkSetUp, veth.A, nic.EventLinkUp},
		{netlink.LinkDel, veth.B, nic.EventLinkDown},
	}
	for i, s := range steps {
		inside(t, l, s.end, s.do)
		e := next(t, ch)
		if e.Kind == nic.EventFlap && s.want == nic.EventQueues {
			e = next(t, ch) // a veth takes its carrier down while it changes channels
		}
		if e.Kind != s.want {
			t.Fatalf("step %d: %+v, want %s", i, e, s.want)
		}
	}
	if e := next(t, ch); e.Kind != nic.EventGone {
		t.Errorf("%+v, want gone", e)
	}
	if e, open := <-ch; open {
		t.Errorf("%+v after gone", e)
	}
	var nf *nic.NotFoundError
	if _, err := p.Counters(); !errors.As(err, &nf) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("counters of a deleted port: %v", err)
	}
}

// setQueues changes the number of channels as `ethtool -L` does.
func setQueues(n uint32) error {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return err
	}
	defer e.Close()
	c, err := e.GetChannels(veth.Interface)
	if err != nil {
		return err
	}
	c.RxCount, c.TxCount = n, n
	_, err = e.SetChannels(veth.Interface, c)
	return err
}

// TestWatchMissesNothing changes the port in the very moment Watch returns, and
// twice, so that the end looks like the beginning.
func TestWatchMissesNothing(t *testing.T) {
	l := lab(t, 1)
	p := port(t, l, veth.A)
	for range 20 {
		ctx, cancel := context.WithCancel(context.Background())
		ch, err := p.Watch(ctx)
		if err != nil {
			t.Fatal(err)
		}
		inside(t, l, veth.B, netlink.LinkSetDown)
		inside(t, l, veth.B, netlink.LinkSetUp)
		e := next(t, ch)
		if e.Kind == nic.EventLinkDown {
			if e = next(t, ch); e.Kind != nic.EventLinkUp {
				t.Errorf("after link down: %+v", e)
			}
		} else if e.Kind != nic.EventFlap {
			t.Errorf("%+v, want link down and up, or flap", e)
		}
		cancel()
		for range ch {
		}
	}
}

func TestWatchOfRename(t *testing.T) {
	l := lab(t, 1)
	ch := watch(t, port(t, l, veth.A))
	inside(t, l, veth.A, netlink.LinkSetDown)
	if e := next(t, ch); e.Kind != nic.EventLinkDown {
		t.Errorf("%+v", e)
	}
	inside(t, l, veth.A, func(k netlink.Link) error { return netlink.LinkSetName(k, "lr9") })
	if e := next(t, ch); e.Kind != nic.EventGone {
		t.Errorf("%+v, want gone", e)
	}
	inside9 := func() error {
		k, err := netlink.LinkByName("lr9")
		if err != nil {
			return err
		}
		return netlink.LinkSetName(k, veth.Interface)
	}
	if err := l.NS(veth.A).Do(inside9); err != nil {
		t.Fatal(err)
	}
}

func TestWaitCarrier(t *testing.T) {
	l := lab(t, 1)
	p := port(t, l, veth.A)
	inside(t, l, veth.B, netlink.LinkSetDown)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	res := make(chan error)
	go func() { res <- nic.WaitCarrier(ctx, p) }()
	inside(t, l, veth.B, netlink.LinkSetUp)
	if err := <-res; err != nil {
		t.Error(err)
	}
	inside(t, l, veth.B, netlink.LinkSetDown)
	go func() { res <- nic.WaitCarrier(ctx, p) }()
	cancel()
	var e *nic.Error
	if err := <-res; !errors.Is(err, context.Canceled) || !errors.As(err, &e) {
		t.Errorf("%v, want a *nic.Error for context.Canceled", err)
	}
}

func TestCarrierChanges(t *testing.T) {
	l := lab(t, 1)
	p := port(t, l, veth.A)
	before, err := p.CarrierChanges()
	if err != nil {
		t.Fatal(err)
	}
	inside(t, l, veth.B, netlink.LinkSetDown)
	inside(t, l, veth.B, netlink.LinkSetUp)
	if after, err := p.CarrierChanges(); err != nil || after != before+2 {
		t.Errorf("%d, then %d, %v; want two more", before, after, err)
	}
}
