package engine

import (
	"context"
	"strings"
	"testing"

	"linerate/bpf"
	"linerate/internal/lab/veth"
	"linerate/internal/wire"
)

// TestExactCounts: every frame that is offered arrives, once, for every pair of
// engines, over one and two queues, and twice over the same sockets.
func TestExactCounts(t *testing.T) {
	for _, c := range []struct {
		tx, rx Name
		queues int
		sizes  string
	}{
		{XSK, XSK, 1, "64"}, {Asavie, Asavie, 1, "64"}, {XSK, Asavie, 2, "imix"}, {Asavie, XSK, 2, "imix"}, {XSK, XSK, 2, "64-300"},
	} {
		t.Run(string(c.tx+"-"+c.rx)+"-"+c.sizes, func(t *testing.T) {
			b := newBench(t, c.queues, 0)
			b.rx.RingSize = 4096
			r, s := b.receiver(t, c.rx, RxOptions{}), b.sender(t, c.tx)
			for _, g := range []Granted{r.Granted(), s.Granted()} {
				if g.Mode != "copy" || g.XDPMode != Native || len(g.Notes) != 0 {
					t.Errorf("granted %+v", g)
				}
			}
			before, err := r.Program()
			if err != nil {
				t.Fatal(err)
			}
			const n = 3001 // the RX ring holds them all, whoever else has the cores
			sizes := c.sizes
			for round := range uint64(2) {
				a := start(t, r, Watch{Verify: true, Run: testRun, PayloadCheck: true})
				o := offer(t, sizes, c.queues, Offer{PPS: 20_000, Count: n, EndMarks: true})
				tx, err := send(t, context.Background(), s, o)
				if err != nil {
					t.Fatal(err)
				}
				until(t, "the END of every space", r.Ended)
				rx := a.end(t)
				if a.err != nil {
					t.Error(a.err)
				}
				checkExact(t, tx.sum(), rx, n, uint64(c.queues))
				if p, err := r.Program(); err != nil || sumOf(p.Redirected)-sumOf(before.Redirected) != (round+1)*(n+endMarks*uint64(c.queues)) {
					t.Errorf("redirected %v, %v", p.Redirected, err)
				}
				sizes = "128" // frames of another trial must not show through
			}
		})
	}
}

func sumOf(m map[int]uint64) (n uint64) {
	for _, v := range m {
		n += v
	}
	return n
}

func checkExact(t *testing.T, tx TxQueue, rx RxResult, n, queues uint64) {
	t.Helper()
	if sent := tx.Submitted - tx.EndFrames; sent != n || tx.EndFrames != endMarks*queues || tx.Completed != tx.Submitted {
		t.Errorf("sent %+v", tx)
	}
	if tx.Held+tx.Refused+tx.Invalid+tx.NetDown != 0 {
		t.Errorf("sent %+v", tx)
	}
	want := rx.Totals
	want.Distinct, want.EndFrames = n, endMarks*queues
	want.Duplicate, want.Corrupt, want.OtherRun, want.Untagged, want.Unreadable, want.TooLate, want.Reordered = 0, 0, 0, 0, 0, 0, 0
	if rx.Totals != want {
		t.Errorf("received %+v", rx.Totals)
	}
	var taken, bytes, counted uint64
	for _, q := range rx.Queues {
		taken += q.Taken
		bytes += q.Bytes
		if q.RingFull+q.FillEmpty+q.Dropped+q.NetDown != 0 {
			t.Errorf("queue %+v", q)
		}
	}
	for _, s := range rx.Spaces {
		counted += s.EndSent
	}
	if taken != n+endMarks*queues || bytes != tx.Bytes || counted != n || uint64(len(rx.Spaces)) != queues {
		t.Errorf("taken %d, %d bytes of %d, END says %d over %d spaces", taken, bytes, tx.Bytes, counted, len(rx.Spaces))
	}
	if rx.NoStamp != 0 || rx.ClockTrouble != 0 || rx.Latency == nil || rx.Latency.Count != n {
		t.Errorf("%d without a stamp, %d in clock trouble, latency %+v", rx.NoStamp, rx.ClockTrouble, rx.Latency)
	}
}

// TestJumbo: chains of chunks both ways.
func TestJumbo(t *testing.T) {
	b := newBench(t, 1, 9000)
	b.tx.MaxLen, b.rx.MaxLen = wire.FrameLen(9018).Buf(), wire.FrameLen(9018).Buf()
	b.tx.Chunk = 2048
	b.rx.RingSize = 4096 // of descriptors: a long frame takes three
	r, s := b.receiver(t, XSK, RxOptions{}), b.sender(t, XSK)
	a := start(t, r, Watch{Verify: true, Run: testRun, PayloadCheck: true})
	const n = 1200
	tx, err := send(t, context.Background(), s, offer(t, "64,9018,2100", 1, Offer{PPS: 10_000, Count: n, EndMarks: true}))
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the END", r.Ended)
	checkExact(t, tx.sum(), a.end(t), n, 1)
}

// TestDrop counts in XDP.
func TestDrop(t *testing.T) {
	b := newBench(t, 2, 0)
	r, s := b.receiver(t, XSK, RxOptions{Drop: true}), b.sender(t, XSK)
	a := start(t, r, Watch{})
	total := uint64(0)
	post := func(n uint64) {
		t.Helper()
		tx, err := send(t, context.Background(), s, offer(t, "64", 2, Offer{PPS: 20_000, Count: n}))
		if err != nil || tx.sum().Refused > 0 {
			t.Fatalf("%+v, %v", tx.sum(), err)
		}
		total += n
	}
	until(t, "the receiver at work", func() bool {
		post(1)
		return taken(r.Counters()) > 0
	})
	accounted := func() uint64 {
		p, err := r.Program()
		if err != nil || sumOf(p.Seen) != sumOf(p.Accounted) {
			t.Fatalf("%+v, %v", p, err)
		}
		return sumOf(p.Accounted)
	}
	until(t, "the first frames", func() bool { return accounted() == total })
	const n = 2000
	post(n)
	until(t, "the last frame", func() bool { return accounted() == total })
	a.end(t) // counts once more
	if got := taken(r.Counters()); a.err != nil || got < n || got > total || r.Ended() {
		t.Errorf("%d of %d published, %v", got, total, a.err)
	}
}

// TestFallbackIsSaid: the driver cannot run the program, the stack can.
func TestFallbackIsSaid(t *testing.T) {
	b := newBench(t, 1, 9000) // without fragments veth takes no more than a page
	r := b.receiver(t, XSK, RxOptions{})
	g := r.Granted()
	if g.XDPMode != Generic || g.Mode != "generic" || len(g.Notes) != 1 || g.Notes[0].Code != "mode_fallback" || len(g.Notes[0].Args) != 4 {
		t.Errorf("%+v", g)
	}
}

// TestOpenTwentyTimes: nothing is left of an engine that was closed, used or
// not.
func TestOpenTwentyTimes(t *testing.T) {
	for _, n := range engines {
		t.Run(string(n), func(t *testing.T) {
			b := newBench(t, 2, 0)
			for i := range 20 {
				r, err := OpenReceiver(n, b.rx, RxOptions{Steer: bpf.SteerConfig{Queues: 2}})
				if err != nil {
					t.Fatal(i, err)
				}
				s, err := OpenSender(n, b.tx)
				if err != nil {
					t.Fatal(i, err)
				}
				if i%5 == 0 {
					if _, err := send(t, context.Background(), s, offer(t, "64", 2, Offer{Count: 100})); err != nil {
						t.Error(err)
					}
				}
				closeTwice(t, s.Close)
				closeTwice(t, r.Close)
			}
			b.checkDetached(t)
		})
	}
}

// TestOpenRefused: an open that fails gives everything back.
func TestOpenRefused(t *testing.T) {
	for _, n := range engines {
		t.Run(string(n), func(t *testing.T) {
			b := newBench(t, 1, 0)
			for i := range 5 {
				tx, rx := b.tx, b.rx
				tx.Queues, rx.Queues = []Queue{{ID: 0, CPU: -1}, {ID: 9, CPU: -1}}, []Queue{{ID: 0, CPU: -1}, {ID: 9, CPU: -1}}
				// It is the queue that is refused, each time: not what the last left.
				if _, err := OpenSender(n, tx); err == nil || !strings.Contains(err.Error(), "open queue 9 of "+veth.Interface) {
					t.Error(i, err)
				}
				if _, err := OpenReceiver(n, rx, RxOptions{Steer: bpf.SteerConfig{Queues: 10}}); err == nil || !strings.Contains(err.Error(), "open queue 9 of "+veth.Interface) {
					t.Error(i, err)
				}
				rx.Port.IfIndex = 1 << 20
				if r, err := OpenReceiver(n, rx, RxOptions{}); err == nil {
					t.Error(i, "a receiver on no interface", r.Close())
				}
			}
			b.checkDetached(t)
			s := b.sender(t, n) // the queue is free
			if _, err := send(t, context.Background(), s, offer(t, "64", 1, Offer{Count: 1})); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAfterClose: late calls are answered.
func TestAfterClose(t *testing.T) {
	for _, n := range engines {
		t.Run(string(n), func(t *testing.T) {
			b := newBench(t, 1, 0)
			r, s := b.receiver(t, n, RxOptions{}), b.sender(t, n)
			closeTwice(t, s.Close)
			closeTwice(t, r.Close)
			if _, err := send(t, context.Background(), s, offer(t, "64", 1, Offer{Count: 1})); err == nil {
				t.Error("sent")
			}
			if _, err := r.Run(context.Background(), Watch{}); err == nil {
				t.Error("received")
			}
			if _, err := r.Program(); err == nil {
				t.Error("counted")
			}
			_, _, _ = s.Counters(), r.Counters(), r.Ended()
			_, _ = s.Granted(), r.Granted()
		})
	}
}
