package pace

import (
	"math/rand/v2"
	"testing"
	"time"
)

// world is a simulated clock that every look moves on, and a sleep that ends
// too late.
type world struct {
	now     int64
	look    time.Duration // what a look at the clock costs
	over    func() time.Duration
	sleeps  int
	longest time.Duration
	yields  int
}

func (w *world) clock() int64 {
	w.now += int64(w.look)
	return w.now
}

func (w *world) sleep(d time.Duration) {
	w.sleeps++
	w.longest = max(w.longest, d)
	w.now += int64(d + w.over())
}

func (w *world) waiter() *Waiter {
	return NewWaiter(WaiterConfig{Clock: w.clock, Sleep: w.sleep, Yield: func() { w.yields++ }})
}

// newWorld oversleeps by between least and most.
func newWorld(least, most time.Duration) *world {
	rng := rand.New(rand.NewPCG(7, 7))
	return &world{look: 40, over: func() time.Duration {
		return least + time.Duration(rng.Int64N(int64(most-least)+1))
	}}
}

// At 1k pps the core is left alone and nearly every frame is on time, whether
// the kernel's timers are slack or sharp.
func TestWaiterAtOneThousandPPS(t *testing.T) {
	for name, w := range map[string]*world{
		"slack": newWorld(50*time.Microsecond, 60*time.Microsecond),
		"sharp": newWorld(3*time.Microsecond, 9*time.Microsecond),
	} {
		t.Run(name, func(t *testing.T) {
			waiter := w.waiter()
			p := New(Config{PPS: 1e3, Workers: 1, Count: 5000})
			p.Start(start)
			w.now = start
			late := 0
			for !p.Done() {
				now := waiter.Wait(p.Next())
				n, intended := p.Due(now, 64)
				if n > 0 && now-intended > int64(2*time.Microsecond) {
					late++
				}
			}
			if part := float64(waiter.Spun()) / float64(w.now-start); part > 0.03 {
				t.Errorf("spun for %.1f %% of the time, margin %v", 100*part, waiter.Margin())
			}
			if late > 5000/16 {
				t.Errorf("%d of 5000 frames late, margin %v", late, waiter.Margin())
			}
			if p.Granted() != 5000 || p.Thrown() != 0 {
				t.Errorf("granted %d, thrown %d", p.Granted(), p.Thrown())
			}
		})
	}
}

// At 100k pps there is no time to sleep: every frame is on time.
func TestWaiterSpinsAtHighRate(t *testing.T) {
	w := newWorld(50*time.Microsecond, 60*time.Microsecond)
	waiter := w.waiter()
	for until := int64(10_000); until < 1_000_000; until += 10_000 {
		if now := waiter.Wait(until); now < until || now > until+int64(w.look) {
			t.Fatalf("waited for %d until %d", until, now)
		}
	}
	if w.sleeps != 0 || waiter.Slept() != 0 {
		t.Errorf("%d sleeps with 10 us to wait", w.sleeps)
	}
	if w.yields != 0 {
		t.Errorf("%d yields with less than 10 us to wait", w.yields)
	}
}

// A far point in time is waited for in slices, and met.
func TestWaiterSlices(t *testing.T) {
	w := newWorld(50*time.Microsecond, 60*time.Microsecond)
	waiter := w.waiter()
	calls, now := 0, int64(0)
	for until := second; now < until; now = waiter.Wait(until) {
		calls++
	}
	if now > second+int64(w.look) {
		t.Errorf("waited %d ns too long", now-second)
	}
	if calls < 90 || w.longest > maxSlice {
		t.Errorf("%d calls, longest sleep %v: a stop would be seen late", calls, w.longest)
	}
	if now = waiter.Wait(never); now > second+int64(2*maxSlice) {
		t.Errorf("waited until %d for a time that never comes", now)
	}
	if w.yields == 0 {
		t.Error("the core was never offered to others")
	}
}

func TestWaiterPastTime(t *testing.T) {
	w := newWorld(0, 0)
	waiter := w.waiter()
	w.now = 500
	if now := waiter.Wait(499); now != 540 || w.sleeps != 0 || waiter.Spun() != 0 {
		t.Errorf("waited until %d, %d sleeps, spun %v", now, w.sleeps, waiter.Spun())
	}
}

// Stalls must not make the waiter spin from then on, and no sleep makes it burn
// more than its bound.
func TestWaiterMarginIsBounded(t *testing.T) {
	w := newWorld(5*time.Microsecond, 6*time.Microsecond)
	waiter := w.waiter()
	wait := func(times int) {
		for range times {
			waiter.Wait(w.now + 1_000_000)
		}
	}
	wait(2000)
	settled := waiter.Margin()
	w.over = func() time.Duration { return 50 * time.Millisecond }
	wait(100)
	if got := waiter.Margin(); got != settled {
		t.Errorf("stalls moved the margin from %v to %v", settled, got)
	}
	w.over = func() time.Duration { return mostMargin - time.Microsecond }
	wait(1000)
	if got := waiter.Margin(); got > mostMargin || got < mostMargin-2*time.Microsecond {
		t.Errorf("margin %v, want just below the bound %v", got, mostMargin)
	}
	w.over = func() time.Duration { return 0 }
	wait(2000)
	if got := waiter.Margin(); got != leastMargin {
		t.Errorf("margin %v, want the bound %v", got, leastMargin)
	}
}

func TestWaiterWithoutSleepSpins(t *testing.T) {
	w := newWorld(0, 0)
	waiter := NewWaiter(WaiterConfig{Clock: w.clock})
	if now := waiter.Wait(1_000_000); now < 1_000_000 || now > 1_000_040 {
		t.Errorf("waited until %d", now)
	}
	before := w.now
	if now := waiter.Wait(never); now-before < int64(maxSlice) || now-before > int64(maxSlice)+1000 {
		t.Errorf("a slice took %d ns", now-before)
	}
}

func TestWaitDoesNotAllocate(t *testing.T) {
	w := newWorld(5*time.Microsecond, 6*time.Microsecond)
	waiter := w.waiter()
	if a := testing.AllocsPerRun(1000, func() { waiter.Wait(w.now + 1_000_000) }); a != 0 {
		t.Errorf("%v allocations per wait", a)
	}
}
