package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"linerate/bpf"
	"linerate/internal/meter"
	"linerate/xsk"
)

// ChildCommand is the hidden first argument that makes the program an asavie
// child. The parent talks to it over its standard streams, one JSON value a
// message.
const ChildCommand = "__asavie"

// childOrder is what the parent tells the child: first what to open, then, any
// number of times, a trial, and a stop for each.
type childOrder struct {
	Open  *childOpen
	Offer *Offer
	Watch *Watch
	Arm   bool
	Stop  bool
}

// childOpen is one end of a trial, without what cannot cross a process.
type childOpen struct {
	IfIndex  int
	Name     string
	Queues   []Queue
	ZeroCopy xsk.ZeroCopy
	Chunk    int
	Batch    int
	Budget   int
	RingSize int
	Fault    Fault
	Receive  bool
}

// childReport is what the child tells the parent.
type childReport struct {
	Ready  bool
	Mode   string
	Tx     []meter.TxCounts `json:",omitempty"`
	Rx     []meter.RxCounts `json:",omitempty"`
	Ended  bool
	TxDone *TxResult `json:",omitempty"`
	RxDone *RxResult `json:",omitempty"`
	Err    string
}

// reportEvery is how often a child publishes its counters.
const reportEvery = 50 * time.Millisecond

// child is the state of an asavie child process.
type child struct {
	in      *json.Decoder
	out     *json.Encoder
	tx      []*txLoop
	rx      []*asavieRx
	cfg     Config
	sockets *bpf.SocketMap // a receiver's
	stop    atomic.Bool
	watched atomic.Pointer[watched]
	lost    error // why there are no more orders; set before their channel is closed
}

// mapFD is the descriptor at which the parent passes the XSKMAP on to a
// receiver: the first after the standard three.
const mapFD = 3

// RunChild is the child's whole life: it ends when the parent closes in. The
// context is not listened to: a signal that ends it reached the parent too,
// which will say stop.
func RunChild(_ context.Context, in io.Reader, out io.Writer) error {
	c := &child{in: json.NewDecoder(in), out: json.NewEncoder(out)}
	var order childOrder
	if err := c.in.Decode(&order); err != nil {
		return fmt.Errorf("read the order to open: %w", err)
	}
	if order.Open == nil {
		return c.say(childReport{Err: "the first order is not to open"})
	}
	if err := guard(func() error { return c.open(order.Open) }); err != nil {
		return c.say(childReport{Err: err.Error()})
	}
	if err := c.say(c.ready()); err != nil {
		return err
	}
	return c.work()
}

// work carries out orders until there are no more.
func (c *child) work() error {
	orders, quit := make(chan childOrder), make(chan struct{})
	defer close(quit)
	go c.listen(orders, quit)
	if err := c.serve(orders); err != nil {
		return err
	}
	if !errors.Is(c.lost, io.EOF) {
		return c.say(childReport{Err: fmt.Sprintf("read an order: %v", c.lost)})
	}
	return nil
}

// listen passes orders on until there are no more, or quit is closed.
func (c *child) listen(orders chan<- childOrder, quit <-chan struct{}) {
	defer close(orders)
	for {
		var o childOrder
		if c.lost = c.in.Decode(&o); c.lost != nil {
			return
		}
		select {
		case orders <- o:
		case <-quit:
			return
		}
	}
}

// say belongs to the goroutine in RunChild.
func (c *child) say(r childReport) error { return c.out.Encode(r) }

// open opens the sockets and, for a receiver, the map to put them in.
func (c *child) open(o *childOpen) (err error) {
	if o.Receive {
		if c.sockets, err = bpf.OpenSocketMap(mapFD); err != nil {
			return err
		}
	}
	c.cfg = Config{Port: Port{Name: o.Name, IfIndex: o.IfIndex}, Queues: o.Queues, ZeroCopy: o.ZeroCopy,
		Chunk: o.Chunk, Batch: o.Batch, Budget: o.Budget, RingSize: o.RingSize, Fault: o.Fault}
	for _, q := range o.Queues {
		if !o.Receive {
			a, err := newAsavieTx(c.cfg, q)
			if err != nil {
				return err
			}
			c.tx = append(c.tx, newTxLoop(q, c.cfg, a))
			continue
		}
		a, err := newAsavieRx(c.cfg, q)
		if err != nil {
			return err
		}
		c.rx = append(c.rx, a)
	}
	return nil
}

// arm puts the sockets in the map.
func (c *child) arm() childReport {
	for _, a := range c.rx {
		if err := c.sockets.SetSocket(a.rx.queue.ID, a.sock.FD()); err != nil {
			return childReport{Err: err.Error()}
		}
	}
	return childReport{Ready: true}
}

// ready tells the mode that the kernel granted.
func (c *child) ready() childReport {
	r := childReport{Ready: true, Mode: copied}
	var fd int
	if len(c.tx) > 0 {
		fd = c.tx[0].path.(*asavieTx).sock.FD()
	} else if len(c.rx) > 0 {
		fd = c.rx[0].sock.FD()
	}
	if zc, err := xsk.ReadZeroCopied(fd); err == nil && zc {
		r.Mode = zeroCopied
	}
	return r
}

// serve carries out one trial an order until the parent is gone.
func (c *child) serve(orders <-chan childOrder) error {
	for o := range orders {
		if o.Arm {
			if err := c.say(c.arm()); err != nil {
				return err
			}
			continue
		}
		if o.Stop {
			continue // it crossed the report of a trial that ended by itself
		}
		if len(c.tx) > 0 && o.Offer == nil || len(c.rx) > 0 && o.Watch == nil {
			if err := c.say(childReport{Err: "an order that this end cannot carry out"}); err != nil {
				return err
			}
			continue
		}
		gone, err := c.follow(o, orders)
		if gone || err != nil {
			return err
		}
	}
	return nil
}

// follow runs one trial, tells its counters from time to time, and its result
// when nothing of it runs any more: the next order may come right after that.
func (c *child) follow(o childOrder, orders <-chan childOrder) (gone bool, err error) {
	done := make(chan childReport, 1)
	c.stop.Store(false)
	go func() { done <- c.trial(o) }()
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		select {
		case r := <-done:
			return gone, c.say(r)
		case <-tick.C:
			if c.say(c.counters()) != nil {
				c.stop.Store(true)
			}
		case _, ok := <-orders: // to stop: the parent asks for nothing else now
			c.stop.Store(true)
			if !ok {
				gone, orders = true, nil
			}
		}
	}
}

// trial runs one offer or one watch and gives its result.
func (c *child) trial(o childOrder) childReport {
	var err error
	var sent *TxResult
	var got *RxResult
	if len(c.tx) > 0 {
		n := len(c.tx)
		err = together(n, &c.stop, func(i int) error {
			return guard(func() error { return c.tx[i].run(&c.stop, *o.Offer, i, n, c.cfg.Fault) })
		})
		r := txResult(c.tx)
		r.RefusedUnknown = true
		sent = &r
	} else {
		n, account := len(c.rx), newWatched(*o.Watch)
		c.watched.Store(account)
		err = together(n, &c.stop, func(i int) error {
			return guard(func() error { return c.rx[i].run(&c.stop, account, n, c.cfg.Fault.of(i)) })
		})
		got = account.result(c.rxLoops())
	}
	r := c.counters()
	r.TxDone, r.RxDone = sent, got
	if err != nil {
		r.Err = err.Error()
	}
	return r
}

// guard is guarded for what has an error of its own.
func guard(f func() error) (err error) {
	if perr := guarded(func() { err = f() }); perr != nil {
		return perr
	}
	return err
}

func (c *child) rxLoops() []*rxLoop {
	var out []*rxLoop
	for _, w := range c.rx {
		out = append(out, w.rx)
	}
	return out
}

func (c *child) counters() childReport {
	var r childReport
	if w := c.watched.Load(); w != nil {
		r.Ended = w.ended()
	}
	for _, w := range c.tx {
		r.Tx = append(r.Tx, w.counters.Read())
	}
	for _, w := range c.rx {
		r.Rx = append(r.Rx, w.rx.counters.Read())
	}
	return r
}
