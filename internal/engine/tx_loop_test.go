package engine

import (
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"linerate/internal/frame"
	"linerate/internal/pace"
	"linerate/xsk"
)

func loopOver(p *fakePath) *txLoop {
	return newTxLoop(Queue{ID: 2, CPU: -1}, Config{Batch: 64, Budget: p.size}, p)
}

// trialOf runs one trial in a goroutine of its own, whose thread ends with it.
func trialOf(l *txLoop, stop *atomic.Bool, o Offer, f Fault) error {
	done := make(chan error)
	go func() { done <- l.run(stop, o, 0, 1, f) }()
	return <-done
}

func pacerOf(t testing.TB) *pace.Pacer {
	t.Helper()
	return pace.New(pace.Config{Workers: 1})
}

// checkBooks holds the identities that every trial must keep.
func checkBooks(t *testing.T, q TxQueue) {
	t.Helper()
	if q.Offered != q.Unsent+q.Submitted-q.EndFrames {
		t.Errorf("offered %d is not unsent %d + submitted %d - end frames %d", q.Offered, q.Unsent, q.Submitted, q.EndFrames)
	}
	if q.Unsent != q.Thrown+q.Unwritten {
		t.Errorf("unsent %d is not thrown %d + unwritten %d", q.Unsent, q.Thrown, q.Unwritten)
	}
	if q.Completed+q.Held > q.Submitted {
		t.Errorf("completed %d and held %d of %d submitted", q.Completed, q.Held, q.Submitted)
	}
}

func offerOf(t testing.TB, o Offer) Offer {
	t.Helper()
	o.Writers = writersOf(t, "64", 1)
	o.Start = xsk.NowNs()
	return o
}

func TestTrialSendsItsCount(t *testing.T) {
	p := &fakePath{size: 256}
	l := loopOver(p)
	if err := trialOf(l, new(atomic.Bool), offerOf(t, Offer{Count: 1000, EndMarks: true}), Fault{}); err != nil {
		t.Fatal(err)
	}
	q := l.q
	checkBooks(t, q)
	if q.Offered != 1000 || q.Submitted != 1010 || q.EndFrames != 10 || q.Completed != 1010 || q.Held != 0 || q.Bytes != 1010*64 {
		t.Errorf("%+v", q)
	}
	for _, sent := range p.ends {
		if sent != 1000 {
			t.Errorf("an END frame says %d", sent)
		}
	}
	if q.Space != (frame.Space{Stream: 3}) || q.Queue.ID != 2 {
		t.Errorf("space %v of queue %d", q.Space, q.Queue.ID)
	}
	if c := l.counters.Read(); c.Submitted != 1010 || c.Completed != 1010 || c.Offered != 1000 {
		t.Errorf("published %+v", c)
	}
}

// TestRefusals: the device's refusals of END frames are told from those of data
// frames that stood in the ring before.
func TestRefusals(t *testing.T) {
	p := &fakePath{size: 64}
	p.script = append(repeat(1, answers(0, xsk.KickNoBufs)), // 5 data frames wait
		answers(1, xsk.KickRefused), answers(1, xsk.KickRefused), answers(3, xsk.KickDone), // two are refused, later
		answers(1, xsk.KickRefused), answers(0, xsk.KickDone)) // and the first END
	l := loopOver(p)
	if err := trialOf(l, new(atomic.Bool), offerOf(t, Offer{Count: 5, EndMarks: true}), Fault{}); err != nil {
		t.Fatal(err)
	}
	checkBooks(t, l.q)
	if l.q.Refused != 3 || l.q.RefusedEnd != 1 || p.endsBehind != 0 {
		t.Errorf("refused %d, of these END %d; %d END frames behind data", l.q.Refused, l.q.RefusedEnd, p.endsBehind)
	}
}

// TestEndFramesFindRoom: the ring is full when the offer ends, and moves again
// only if it is kicked.
func TestEndFramesFindRoom(t *testing.T) {
	p := &fakePath{size: 64}
	p.script = repeat(3, answers(0, xsk.KickNoBufs))
	l := loopOver(p)
	if err := trialOf(l, new(atomic.Bool), offerOf(t, Offer{Count: 64, EndMarks: true}), Fault{}); err != nil {
		t.Fatal(err)
	}
	if l.q.EndFrames != endMarks || l.q.Completed != 64+endMarks {
		t.Errorf("%d END frames, %d completed", l.q.EndFrames, l.q.Completed)
	}
}

// TestDoneIsNotAll: the kernel stops without a word behind a descriptor it does
// not like; the rest must not wait for the watchdog, nor be kicked for ever.
func TestDoneIsNotAll(t *testing.T) {
	p := &fakePath{size: 64}
	p.script = append(repeat(4, answers(1, xsk.KickDone)), answers(0, xsk.KickDone))
	l := loopOver(p)
	l.pacer = pacerOf(t)
	l.doneNs = xsk.NowNs()
	l.send(newWriter(t, "64"), 8)
	if err := l.push(); err != nil {
		t.Fatal(err)
	}
	if p.kicks != 5 || p.ring != 4 {
		t.Errorf("%d kicks, %d frames left: want 4 that helped and 1 that did not", p.kicks, p.ring)
	}
	// A driver that sends by itself is left alone.
	p.quiet, p.kicks = true, 0
	if err := l.push(); err != nil || p.kicks != 0 {
		t.Errorf("%d kicks nobody asked for, %v", p.kicks, err)
	}
}

func TestKicksAreBounded(t *testing.T) {
	p := &fakePath{size: 64}
	p.script = repeat(10_000, answers(0, xsk.KickAgain))
	l := loopOver(p)
	l.pacer = pacerOf(t)
	l.send(newWriter(t, "64"), 8)
	if err := l.push(); err != nil {
		t.Fatal(err)
	}
	if p.kicks != 2*64 {
		t.Errorf("%d kicks", p.kicks)
	}
}

// TestFatalKick: the error ends the trial, and what was written stays counted.
func TestFatalKick(t *testing.T) {
	p := &fakePath{size: 64}
	gone := func(*fakePath) xsk.KickResult { return xsk.KickResult{Code: xsk.KickFatal, Errno: unix.ENXIO} }
	p.script = repeat(1000, gone)
	l := loopOver(p)
	err := trialOf(l, new(atomic.Bool), offerOf(t, Offer{EndMarks: true}), Fault{})
	if !errors.Is(err, unix.ENXIO) || err.Error() != "send on queue 2: no such device or address" {
		t.Errorf("error %v", err)
	}
	checkBooks(t, l.q)
	if l.q.Held != 64 || l.q.EndFrames != 0 || l.endNs == 0 {
		t.Errorf("%+v, end %d", l.q, l.endNs)
	}
}

// TestNetDown: what stands in the ring is held, and the trial ends in bounded
// time. Another trial does not take these frames for its own.
func TestNetDown(t *testing.T) {
	p := &fakePath{size: 64}
	p.script = repeat(100_000, answers(0, xsk.KickNetDown))
	l := loopOver(p)
	stop := new(atomic.Bool)
	defer time.AfterFunc(50*time.Millisecond, func() { stop.Store(true) }).Stop()
	if err := trialOf(l, stop, offerOf(t, Offer{PPS: 10_000}), Fault{}); err != nil {
		t.Fatal(err)
	}
	checkBooks(t, l.q)
	if l.q.NetDown == 0 || l.q.Held == 0 || l.q.Held != l.q.Submitted || l.q.Completed != 0 {
		t.Errorf("%+v", l.q)
	}
	held := l.q.Held
	stop.Store(false)
	err := trialOf(l, stop, offerOf(t, Offer{Count: 1}), Fault{})
	if !errors.Is(err, ErrUnderWay) || l.q.Submitted != 0 {
		t.Errorf("the next trial: %v, %+v", err, l.q)
	}
	p.script = nil
	p.kick() // the link is back
	if err := trialOf(l, stop, offerOf(t, Offer{Count: 1}), Fault{}); err != nil || l.q.Completed != 1 {
		t.Errorf("after the link came back: %v, %+v (held %d)", err, l.q, held)
	}
}

// TestTrialsAreApart: nothing of one trial is counted in the next, whether that
// is sent or refused at once; and buffers are known to hold other frames.
func TestTrialsAreApart(t *testing.T) {
	p := &fakePath{size: 64, invalids: 7}
	l := loopOver(p)
	for range 2 {
		if err := trialOf(l, new(atomic.Bool), offerOf(t, Offer{Count: 10}), Fault{}); err != nil {
			t.Fatal(err)
		}
		if l.q.Submitted != 10 || l.q.Invalid != 0 {
			t.Errorf("%+v", l.q)
		}
	}
	if p.freshened != 2 {
		t.Errorf("freshened %d times in two trials", p.freshened)
	}
	o := offerOf(t, Offer{Count: 10})
	o.Writers = writersOf(t, "1519", 1)
	var e *ConfigError
	if err := trialOf(l, new(atomic.Bool), o, Fault{}); !errors.As(err, &e) {
		t.Errorf("a frame longer than the buffer: %v", err)
	}
	if r := txResult([]*txLoop{l}); r.Queues[0].Submitted != 0 || r.FirstNs != 0 {
		t.Errorf("a refused trial reports the last one: %+v", r)
	}
}

// TestUnwritten: a ring that takes less than it had room for makes no frame
// vanish, and a batch of which nothing was written is none.
func TestUnwritten(t *testing.T) {
	p := &fakePath{size: 8}
	l := loopOver(p)
	l.pacer = pacerOf(t)
	fw := newWriter(t, "64")
	l.send(fw, 11)
	l.send(fw, 4)
	if l.q.Submitted != 8 || l.q.Unwritten != 7 || l.q.Batches != 1 || fw.Seq() != 8 {
		t.Errorf("%+v, %d sequence numbers", l.q, fw.Seq())
	}
	if l.biasSum > uint64(time.Minute) {
		t.Errorf("bias %d ns: the clock itself", l.biasSum)
	}
}

func TestFaultsLoseWhatTheySay(t *testing.T) {
	for _, c := range []struct {
		f                     Fault
		submitted, completed  uint64
		offeredLessThanWanted bool
	}{
		{Fault{LoseOffered: 3}, 97, 97, true},
		{Fault{LoseSubmitted: 3}, 100, 97, false},
		{Fault{LoseOffered: 90}, 10, 10, true},
	} {
		p := &fakePath{size: 64}
		l := loopOver(p)
		if err := trialOf(l, new(atomic.Bool), offerOf(t, Offer{Count: 100}), c.f); err != nil {
			t.Fatal(err)
		}
		if l.q.Submitted != c.submitted || l.q.Completed != c.completed || l.q.Offered != 100 || l.q.Unsent != 0 {
			t.Errorf("%+v: %+v", c.f, l.q)
		}
		if l.q.BiasNs > uint64(time.Minute) {
			t.Errorf("bias %d ns", l.q.BiasNs)
		}
	}
}

func TestStoppedBeforeStart(t *testing.T) {
	p := &fakePath{size: 64}
	l := loopOver(p)
	stop := new(atomic.Bool)
	stop.Store(true)
	o := offerOf(t, Offer{PPS: 1000, EndMarks: true})
	o.Start += int64(time.Hour)
	if err := trialOf(l, stop, o, Fault{}); err != nil {
		t.Fatal(err)
	}
	checkBooks(t, l.q)
	if l.q.Offered != 0 || l.q.EndFrames != 10 || p.ends[0] != 0 {
		t.Errorf("%+v", l.q)
	}
}

// TestStartInThePast: what is due since then is thrown but for 1 ms.
func TestStartInThePast(t *testing.T) {
	p := &fakePath{size: 64}
	l := loopOver(p)
	o := offerOf(t, Offer{PPS: 100_000, Duration: 200 * time.Millisecond})
	o.Start -= int64(100 * time.Millisecond)
	if err := trialOf(l, new(atomic.Bool), o, Fault{}); err != nil {
		t.Fatal(err)
	}
	checkBooks(t, l.q)
	if l.q.Offered != 20_000 || l.q.Thrown < 9_000 {
		t.Errorf("%+v", l.q)
	}
}

func TestDeadline(t *testing.T) {
	if d := deadline(Offer{Start: 5}); d != math.MaxInt64 {
		t.Errorf("no duration: %d", d)
	}
	if d := deadline(Offer{Start: 5, Duration: 7}); d != 12 {
		t.Errorf("5 and 7 ns: %d", d)
	}
}

func TestBurst(t *testing.T) {
	for _, c := range []struct {
		pps     float64
		workers int
		want    int
	}{{0, 1, 0}, {1, 1, 2}, {1e6, 2, 1}, {1e6, 3, 1}, {1e6, 16, 1}} {
		if got := burst(c.pps, c.workers); got != c.want {
			t.Errorf("burst(%v, %d) = %d, want %d", c.pps, c.workers, got, c.want)
		}
	}
}

func TestTxResultJoins(t *testing.T) {
	late := &txLoop{txTrial: txTrial{q: TxQueue{Submitted: 1}, firstNs: 20, lastNs: 40, endNs: 41}}
	early := &txLoop{txTrial: txTrial{q: TxQueue{Submitted: 2}, firstNs: 10, lastNs: 30, endNs: 50}}
	idle := &txLoop{}
	for _, order := range [][]*txLoop{{late, early, idle}, {idle, early, late}} {
		r := txResult(order)
		if r.FirstNs != 10 || r.LastNs != 40 || r.EndNs != 50 || len(r.Queues) != 3 {
			t.Errorf("%+v", r)
		}
	}
}

// TestOneErrorStopsAll: a worker without an end of its own is stopped.
func TestOneErrorStopsAll(t *testing.T) {
	boom := errors.New("boom")
	stop := new(atomic.Bool)
	err := together(3, stop, func(i int) error {
		if i == 1 {
			return boom
		}
		for !stop.Load() {
			time.Sleep(time.Millisecond)
		}
		return nil
	})
	if !errors.Is(err, boom) {
		t.Error(err)
	}
}
