package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
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
	mu      sync.Mutex // serialises out
	out     *json.Encoder
	tx      []*txLoop
	rx      []*asavieRx
	cfg     Config
	sockets *bpf.SocketMap // a receiver's
	stop    atomic.Bool
	watched atomic.Pointer[watched]
}

// mapFD is the descriptor at which the parent passes the XSKMAP on to a
// receiver: the first after the standard three.
const mapFD = 3

// RunChild is the child's whole life: it ends when the parent closes in.
func RunChild(ctx context.Context, in io.Reader, out io.Writer) error {
	c := &child{in: json.NewDecoder(in), out: json.NewEncoder(out)}
	var order childOrder
	if err := c.in.Decode(&order); err != nil || order.Open == nil {
		return fmt.Errorf("asavie child: no order to open: %w", err)
	}
	if err := c.open(order.Open); err != nil {
		return c.say(childReport{Err: err.Error()})
	}
	if err := c.say(c.ready()); err != nil {
		return err
	}
	orders := make(chan childOrder)
	go func() {
		defer close(orders)
		for {
			var o childOrder
			if c.in.Decode(&o) != nil {
				return
			}
			orders <- o
		}
	}()
	return c.serve(ctx, orders)
}

func (c *child) say(r childReport) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Encode(r)
}

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
		if err := c.sockets.SetSocket(a.rx.q.Queue.ID, a.sock.FD()); err != nil {
			return childReport{Err: err.Error()}
		}
	}
	return childReport{Ready: true}
}

// ready tells the mode that the kernel granted.
func (c *child) ready() childReport {
	r := childReport{Ready: true, Mode: "copy"}
	var fd int
	if len(c.tx) > 0 {
		fd = c.tx[0].path.(*asavieTx).sock.FD()
	} else if len(c.rx) > 0 {
		fd = c.rx[0].sock.FD()
	}
	if zc, err := xsk.ReadZeroCopied(fd); err == nil && zc {
		r.Mode = "zerocopy"
	}
	return r
}

// serve carries out one trial an order until the parent is gone.
func (c *child) serve(ctx context.Context, orders <-chan childOrder) error {
	for o := range orders {
		if o.Arm {
			if err := c.say(c.arm()); err != nil {
				return err
			}
			continue
		}
		if o.Offer == nil && o.Watch == nil {
			continue // a stop that came after the trial's end
		}
		done := make(chan error, 1)
		c.stop.Store(false)
		go func() { done <- c.trial(o) }()
		tick := time.NewTicker(reportEvery)
		for busy := true; busy; {
			select {
			case err := <-done:
				if err != nil {
					return err
				}
				busy = false
			case <-tick.C:
				if err := c.say(c.counters()); err != nil {
					c.stop.Store(true)
				}
			case next, ok := <-orders:
				c.stop.Store(!ok || next.Stop)
				if !ok {
					orders = nil
				}
			case <-ctx.Done():
				// The parent got the same signal: it will say stop.
				ctx = context.Background()
			}
		}
		tick.Stop()
		if orders == nil {
			return nil
		}
	}
	return nil
}

// trial runs one offer or one watch and reports its result.
func (c *child) trial(o childOrder) error {
	errs := make([]error, len(c.tx)+len(c.rx))
	var wg sync.WaitGroup
	for i, w := range c.tx {
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[i] = w.run(&c.stop, *o.Offer, i, len(c.tx), c.cfg.Fault)
		}()
	}
	var account *watched
	if len(c.rx) > 0 {
		account = newWatched(*o.Watch)
		c.watched.Store(account)
	}
	for i, w := range c.rx {
		f := c.cfg.Fault
		if i > 0 {
			f = Fault{}
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[i] = w.run(&c.stop, account, len(c.rx), f, c.cfg.Batch)
		}()
	}
	wg.Wait()
	r := c.counters()
	if err := errors.Join(errs...); err != nil {
		r.Err = err.Error()
	}
	if len(c.tx) > 0 {
		r.TxDone = &TxResult{}
		for _, w := range c.tx {
			r.TxDone.add(w)
		}
		r.TxDone.RefusedUnknown = true
	} else {
		r.RxDone = account.result(c.rxLoops())
	}
	return c.say(r)
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
