package nic

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// EventKind is what happened to a port.
type EventKind string

// The kinds of events.
const (
	EventLinkDown EventKind = "link_down" // carrier or administrative state lost
	EventLinkUp   EventKind = "link_up"
	EventFlap     EventKind = "flap" // down and up again in one notification
	EventMTU      EventKind = "mtu"
	EventQueues   EventKind = "queues"
	EventGone     EventKind = "gone"   // deleted, moved away or renamed: the last event
	EventMissed   EventKind = "missed" // the kernel dropped notifications: anything may have happened
)

// Event is one change of a port.
type Event struct {
	At   time.Time // when it was seen, not when it happened
	Kind EventKind
	Text string // "mtu 1500 -> 9000"
}

// queuePoll is how often the queue count is looked at: rtnetlink says nothing
// when it changes, so a change that is undone within this time is not seen.
const queuePoll = 200 * time.Millisecond

// Watch reports changes of the port from now on. The notification socket is
// open, and the state to compare with is read after that, when Watch returns:
// no later event is missed. Notifications carry the carrier's change count, so
// a flap that the kernel folds into one notification is seen as well. The
// channel is closed after EventGone, or when ctx ends, which the caller must
// see to. A reader that falls behind loses nothing but time.
func (p *Port) Watch(ctx context.Context) (<-chan Event, error) {
	w := &watch{port: p, events: make(chan Event, 64)}
	err := p.do("watch", func() (err error) {
		if w.sock, err = linkSocket(); err != nil {
			return err
		}
		l, err := p.link() // by name: gives the error that lists the others
		if err != nil {
			return err
		}
		if w.last, err = askLink(l.Attrs().Index); err != nil {
			return err
		}
		w.rx, w.tx = countQueues(p.classDir())
		return nil
	})
	if err != nil {
		if w.sock != nil {
			w.sock.Close()
		}
		return nil, err
	}
	go w.run(ctx)
	return w.events, nil
}

// watch is the goroutine behind Watch.
type watch struct {
	port   *Port
	sock   *os.File
	last   linkState
	rx, tx int
	events chan Event
}

func (w *watch) run(ctx context.Context) {
	defer close(w.events)
	ctx, cancel := context.WithCancel(ctx)
	messages := make(chan linkMessage)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		readLinks(ctx, w.sock, w.last.index, messages)
	}()
	defer func() {
		cancel()
		w.sock.Close() // wakes the reader
		<-ended
	}()
	tick := time.NewTicker(queuePoll)
	defer tick.Stop()
	for goesOn := true; goesOn; {
		select {
		case <-ctx.Done():
			return
		case m := <-messages:
			goesOn = w.message(ctx, m)
		case <-tick.C:
			goesOn = w.queues(ctx)
		}
	}
}

// message takes one notification; false ends the watch.
func (w *watch) message(ctx context.Context, m linkMessage) bool {
	switch {
	case m.missed:
		if !w.say(ctx, EventMissed, "the kernel dropped notifications") {
			return false
		}
		err := w.port.NS.Do(func() (err error) {
			m.linkState, err = askLink(w.last.index)
			return err
		})
		if errors.Is(err, unix.ENODEV) {
			return w.gone(ctx)
		}
		if err != nil {
			return true // nothing to compare; the next notification has it all
		}
	case m.deleted || m.name != w.last.name:
		return w.gone(ctx)
	}
	return w.compare(ctx, m.linkState)
}

func (w *watch) gone(ctx context.Context) bool {
	w.say(ctx, EventGone, w.port.Endpoint()+" is gone")
	return false
}

func (w *watch) compare(ctx context.Context, s linkState) bool {
	was := w.last
	w.last = s
	ok := true
	switch {
	case was.up && !s.up:
		ok = w.say(ctx, EventLinkDown, "link down")
	case !was.up && s.up:
		ok = w.say(ctx, EventLinkUp, "link up")
	case s.up && s.changes > was.changes:
		ok = w.say(ctx, EventFlap, fmt.Sprintf("carrier changed %d times", s.changes-was.changes))
	}
	if ok && was.mtu != s.mtu {
		ok = w.say(ctx, EventMTU, fmt.Sprintf("mtu %d -> %d", was.mtu, s.mtu))
	}
	return ok && w.queues(ctx)
}

func (w *watch) queues(ctx context.Context) bool {
	var rx, tx int
	err := w.port.NS.Do(func() error {
		rx, tx = countQueues(w.port.classDir())
		return nil
	})
	if err != nil || rx == 0 && tx == 0 || rx == w.rx && tx == w.tx {
		return true // a device that is gone says so by a notification
	}
	text := fmt.Sprintf("queues rx %d tx %d -> rx %d tx %d", w.rx, w.tx, rx, tx)
	w.rx, w.tx = rx, tx
	return w.say(ctx, EventQueues, text)
}

// say hands an event over unless the watch is ended first.
func (w *watch) say(ctx context.Context, k EventKind, text string) bool {
	select {
	case w.events <- Event{now(), k, text}:
		return true
	case <-ctx.Done():
		return false
	}
}

// WaitCarrier waits until the port is up and has carrier, or ctx ends; the
// error then wraps ctx.Err().
func WaitCarrier(ctx context.Context, p *Port) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := p.Watch(ctx)
	if err != nil {
		return err
	}
	for {
		up, err := p.linkUp()
		if err != nil || up {
			return err
		}
		if _, open := <-events; !open && ctx.Err() != nil {
			return p.fail("wait for carrier of", ctx.Err())
		}
	}
}

func (p *Port) linkUp() (up bool, err error) {
	err = p.do("read", func() error {
		l, err := p.link()
		if err == nil {
			up = running(l.Attrs().RawFlags)
		}
		return err
	})
	return up, err
}
