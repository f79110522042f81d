package engine

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"linerate/bpf"
	"linerate/internal/lab/veth"
	"linerate/internal/meter"
	"linerate/internal/nettest"
	"linerate/xsk"
)

// patience bounds what must end; a machine that others share is slow.
const patience = 30 * time.Second

var engines = []Name{XSK, Asavie}

// bench is a lab with the engines' view of both ends.
type bench struct {
	*veth.Lab
	tx, rx Config
}

func newBench(t *testing.T, queues, mtu int) *bench {
	t.Helper()
	nettest.Require(t, nettest.BPF, nettest.VethXDP, nettest.AFXDP)
	nettest.CheckNothingLeft(t)
	checkChildren(t)
	b := &bench{Lab: nettest.Lab(t, veth.Config{Queues: queues, MTU: mtu})}
	b.tx, b.rx = b.config(t, veth.A, queues), b.config(t, veth.B, queues)
	return b
}

func (b *bench) config(t *testing.T, e veth.End, queues int) Config {
	t.Helper()
	ns := b.NS(e)
	var index int
	err := ns.Do(func() error {
		l, err := netlink.LinkByName(veth.Interface)
		if err == nil {
			index = l.Attrs().Index
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	c := testConfig(Port{Name: veth.Interface, IfIndex: index, Do: ns.Do})
	for i := 1; i < queues; i++ {
		c.Queues = append(c.Queues, Queue{ID: i, CPU: -1})
	}
	return c
}

// set brings one end up or down.
func (b *bench) set(t *testing.T, e veth.End, up bool) {
	t.Helper()
	err := b.NS(e).Do(func() error {
		l, err := netlink.LinkByName(veth.Interface)
		if err != nil {
			return err
		}
		if up {
			return netlink.LinkSetUp(l)
		}
		return netlink.LinkSetDown(l)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bench) sender(t *testing.T, n Name) Sender {
	t.Helper()
	s, err := OpenSender(n, b.tx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeTwice(t, s.Close) })
	return s
}

func (b *bench) receiver(t *testing.T, n Name, o RxOptions) Receiver {
	t.Helper()
	o.Steer.Stamp, o.Steer.Queues, o.Steer.Run = true, len(b.rx.Queues), uint16(testRun)
	r, err := OpenReceiver(n, b.rx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeTwice(t, r.Close) })
	return r
}

func closeTwice(t *testing.T, f func() error) {
	t.Helper()
	for range 2 {
		if err := f(); err != nil {
			t.Error(err)
		}
	}
}

// checkDetached fails the test for a program that is still on either end. One
// that is on none is held by a descriptor, and those are counted with the rest.
func (b *bench) checkDetached(t *testing.T) {
	t.Helper()
	for _, c := range []Config{b.tx, b.rx} {
		err := c.Port.Do(func() error {
			mode, id, err := bpf.ReadXDP(c.Port.IfIndex)
			if mode != bpf.ModeNone {
				t.Errorf("program %d is left, %s", id, mode)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// children are the processes that this one has started and that still are.
func children(t *testing.T) (pids []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && len(b) > 0 {
			pids = append(pids, string(b))
		}
	}
	return pids
}

// checkChildren fails the test for a child process that outlives it.
func checkChildren(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if left := children(t); len(left) > 0 {
			t.Errorf("child processes left: %q", left)
		}
	})
}

// receiving is a receiver at work.
type receiving struct {
	stop context.CancelFunc
	done chan struct{}
	res  RxResult
	err  error
}

func start(t *testing.T, r Receiver, w Watch) *receiving {
	t.Helper()
	if err := r.Arm(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &receiving{stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.res, a.err = r.Run(ctx, w)
	}()
	t.Cleanup(func() {
		cancel()
		<-a.done
	})
	return a
}

// end stops the receiver and gives its result.
func (a *receiving) end(t *testing.T) RxResult {
	t.Helper()
	a.stop()
	select {
	case <-a.done:
	case <-time.After(patience):
		t.Fatal("the receiver does not end")
	}
	return a.res
}

// sending bounds a trial of a sender.
func send(t *testing.T, ctx context.Context, s Sender, o Offer) (TxResult, error) {
	t.Helper()
	type outcome struct {
		res TxResult
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		res, err := s.Run(ctx, o)
		done <- outcome{res, err}
	}()
	select {
	case out := <-done:
		for _, q := range out.res.Queues {
			checkBooks(t, q)
		}
		return out.res, out.err
	case <-time.After(patience):
		t.Fatal("the sender does not end")
		panic("unreachable")
	}
}

// until waits for what must become true.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func offer(t *testing.T, sizes string, queues int, o Offer) Offer {
	t.Helper()
	o.Writers = writersOf(t, sizes, queues)
	o.Start = xsk.NowNs()
	return o
}

func (r TxResult) sum() (s TxQueue) {
	for _, q := range r.Queues {
		s.Offered += q.Offered
		s.Unsent += q.Unsent
		s.Submitted += q.Submitted
		s.Completed += q.Completed
		s.EndFrames += q.EndFrames
		s.Refused += q.Refused
		s.Invalid += q.Invalid
		s.NetDown += q.NetDown
		s.Held += q.Held
		s.Bytes += q.Bytes
	}
	return s
}

func taken(c []*meter.RxCounters) (n uint64) {
	for _, x := range c {
		n += x.Read().Taken
	}
	return n
}

func submitted(c []*meter.TxCounters) (n uint64) {
	for _, x := range c {
		n += x.Read().Submitted
	}
	return n
}
