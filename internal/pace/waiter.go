package pace

import "time"

// How a Waiter learns and what it may do.
const (
	maxSlice    = 10 * time.Millisecond // the longest a Wait lasts, so that a stop is seen
	minSleep    = 20 * time.Microsecond // a shorter one costs more than it saves
	firstMargin = 80 * time.Microsecond // before anything is learned
	leastMargin = 3 * time.Microsecond
	mostMargin  = 200 * time.Microsecond
	// One late wake raises the margin as much as 31 early ones lower it, so it
	// settles where one sleep in 32 ends too late.
	marginUp   = 8 * time.Microsecond
	marginDown = marginUp / 31
	// Further off than this, spinning makes room for others on the core.
	yieldAbove = 10 * time.Microsecond
)

// WaiterConfig is what a Waiter needs of the world.
type WaiterConfig struct {
	Clock Clock
	// Sleep blocks the thread. It should be clock_nanosleep on a locked thread
	// with a timer slack of 1 us: time.Sleep may oversleep by 1 ms, for the
	// runtime's poller counts in milliseconds.
	Sleep func(time.Duration)
	// Yield offers the core to others between looks at the clock; nil spins.
	Yield func()
}

// Waiter waits for a point in time: it sleeps until shortly before, then spins.
// How shortly it learns from how late its sleeps end. It belongs to one
// goroutine.
type Waiter struct {
	cfg    WaiterConfig
	margin time.Duration
	slept  time.Duration
	spun   time.Duration
}

// NewWaiter returns a Waiter. Clock and Sleep are needed; without Sleep it only
// spins.
func NewWaiter(cfg WaiterConfig) *Waiter {
	return &Waiter{cfg: cfg, margin: firstMargin}
}

// Wait returns when the time has come, or after 10 ms, whichever is first, with
// the clock's time then. Call it again if it is early: in between the caller
// can look whether to stop.
func (w *Waiter) Wait(untilNs int64) int64 {
	now := w.cfg.Clock()
	if now >= untilNs {
		return now
	}
	d := time.Duration(untilNs-now) - w.margin
	switch {
	case d > maxSlice:
		return w.sleep(now, maxSlice)
	case d >= minSleep && w.cfg.Sleep != nil:
		now = w.sleep(now, d)
	}
	return w.spin(now, untilNs)
}

// sleep sleeps, learns from how late it ended and returns the time.
func (w *Waiter) sleep(now int64, d time.Duration) int64 {
	if w.cfg.Sleep == nil {
		return w.spin(now, now+int64(d))
	}
	w.cfg.Sleep(d)
	woke := w.cfg.Clock()
	took := time.Duration(woke - now)
	w.slept += took
	switch over := took - d; {
	case over > mostMargin: // a stall: no margin would have helped
	case over > w.margin:
		w.margin = min(w.margin+marginUp, mostMargin)
	default:
		w.margin = max(w.margin-marginDown, leastMargin)
	}
	return woke
}

// spin looks at the clock until the time has come.
func (w *Waiter) spin(from, until int64) int64 {
	now := from
	for now < until {
		if w.cfg.Yield != nil && time.Duration(until-now) > yieldAbove {
			w.cfg.Yield()
		}
		now = w.cfg.Clock()
	}
	w.spun += time.Duration(now - from)
	return now
}

// Margin returns how long before the time a sleep is made to end.
func (w *Waiter) Margin() time.Duration { return w.margin }

// Slept returns the time spent asleep, oversleeping included.
func (w *Waiter) Slept() time.Duration { return w.slept }

// Spun returns the time spent spinning: what waiting cost in CPU time.
func (w *Waiter) Spun() time.Duration { return w.spun }
