package pace

import "math"

// never is the time of a permit that does not come.
const never = math.MaxInt64

// Pacer hands one worker its permits. It belongs to that worker's goroutine:
// nothing here may be called from another.
//
// Permit k of the stream is due at start + k/rate; worker i of N has i, i+N,
// i+2N and so on, so that the workers together make one evenly spaced stream
// without speaking to each other.
type Pacer struct {
	next int64 // no permit before this time: the fast path
	last int64 // time of the last call of Due

	start      int64
	gap        float64 // ns from one permit of the stream to the next; 0 is unlimited
	offset     float64 // ns from the start to this worker's first permit
	ownPerNs   float64 // this worker's permits per ns
	worker     int64
	workers    int64
	scheduled  int64 // time of the next permit by the schedule
	following  int64 // time of the one after it
	index      int64 // number, among this worker's own, of its next permit
	end        int64 // number of its first permit that lies behind the duration
	stop       int64 // time after start where an unlimited stream ends
	maxOwed    int64 // permits that MaxDebt comes to, at least 1
	catchUntil int64 // the window rule is suspended before this time
	catchUps   uint64
	limit      uint64 // this worker's share of the count
	granted    uint64
	thrown     uint64
	tail       uint64 // of thrown: by Finish
	done       bool
	window     window
	stalls     Stalls
}

// New returns a Pacer. It hands out nothing before Start, and nothing at all,
// being Done at once, if the Config is not valid.
func New(c Config) *Pacer {
	p := &Pacer{next: never, end: never, stop: never}
	if c.Validate() != nil {
		p.done = true
		return p
	}
	p.worker, p.workers = int64(c.Worker), int64(c.Workers)
	p.limit = c.share()
	p.done = p.limit == 0
	if c.Duration > 0 {
		p.stop = int64(c.Duration)
	}
	if c.PPS == 0 {
		return p
	}
	p.gap = 1e9 / c.PPS
	p.offset = float64(c.Worker) * p.gap
	p.ownPerNs = c.PPS / 1e9 / float64(c.Workers)
	if c.Duration > 0 {
		// A hair less, so that rounding never adds a permit at the very end.
		p.end = ceilAtLeast0((float64(c.Duration)*c.PPS/1e9-float64(c.Worker))/float64(c.Workers) - 1e-6)
		p.done = p.done || p.end == 0
	}
	debt := c.MaxDebt
	if debt == 0 {
		debt = DefaultMaxDebt
	}
	p.maxOwed = max(1, floorOf(float64(debt)*p.ownPerNs))
	p.window = newWindow(floorOf(float64(Window)*p.ownPerNs) + c.burst())
	return p
}

// floorOf rounds down, but takes what is a whole number but for rounding as it.
func floorOf(x float64) int64 { return int64(x + 1e-9) }

func ceilAtLeast0(x float64) int64 { return int64(max(0, math.Ceil(x))) }

// Start sets the time of permit 0 of the stream, the same for all workers.
func (p *Pacer) Start(startNs int64) {
	p.start, p.last = startNs, startNs
	if p.done {
		return
	}
	p.scheduled, p.following = p.at(0), p.at(1)
	p.next = p.scheduled
}

// at returns the time of one of this worker's permits. It is computed from the
// number of the permit in the stream, so that all workers round alike.
func (p *Pacer) at(own int64) int64 {
	return p.start + int64(float64(p.worker+own*p.workers)*p.gap)
}

// reached returns how many of this worker's permits have a time up to now,
// without regard to limits, and the time of the one after.
func (p *Pacer) reached(now int64) (n, after int64) {
	n = int64((float64(now-p.start)-p.offset)*p.ownPerNs) + 1
	after = p.at(n)
	for after <= now { // the estimate may be one off; at() decides
		n++
		after = p.at(n)
	}
	for n > 0 {
		before := p.at(n - 1)
		if before <= now {
			break
		}
		n, after = n-1, before
	}
	return n, after
}

// Due returns how many frames may be sent now, at most most, and the time for
// which the first of them was scheduled. If there are none it returns the time
// of Next. Call it once per batch; what it grants counts as sent.
//
// No 100 us hold more than this worker's share of the rate and the burst. A
// worker that has fallen more than StallAfter behind may catch up for 1 ms
// without that rule, at most MaxDebt of permits; older ones are thrown.
func (p *Pacer) Due(nowNs int64, most int) (n int, intendedNs int64) {
	if nowNs < p.next {
		p.last = nowNs
		return 0, p.next
	}
	return p.due(nowNs, int64(most))
}

func (p *Pacer) due(now, most int64) (int, int64) {
	if p.done { // only at the end of time
		return 0, never
	}
	p.stalls.add(max(p.last, p.next), now) // away while something was due?
	p.last = now
	most = p.left(most)
	if p.gap == 0 {
		return p.unpaced(now, most)
	}
	owed, after := p.owed(now)
	intended := p.scheduled
	n, next := p.smooth(now, intended, min(owed, most))
	p.index += n
	p.granted += uint64(n)
	if p.index >= p.end || p.granted >= p.limit {
		p.finish()
	} else {
		if n < owed {
			after = p.at(p.index)
		}
		p.scheduled, p.following = after, p.at(p.index+1)
		p.next = max(next, after)
	}
	if n == 0 {
		intended = p.next
	}
	return int(n), intended
}

// owed throws the permits that are older than the debt allows and returns how
// many are due, and the time of the first that is not. At least the latest is
// kept: one late frame is no burst.
func (p *Pacer) owed(now int64) (n, after int64) {
	if now < p.following { // one, most of the time: no arithmetic to wait for
		return 1, p.following
	}
	reached, after := p.reached(now)
	if oldest := min(reached-p.maxOwed, p.end); p.index < oldest {
		p.thrown += uint64(oldest - p.index)
		p.index = oldest
		p.scheduled = p.at(oldest)
	}
	return max(0, min(reached, p.end)-p.index), after
}

// smooth holds back what would make a burst, unless the worker is catching up.
// It returns what is left of n and the time at which more may go, or 0.
func (p *Pacer) smooth(now, intended, n int64) (granted, next int64) {
	if now < p.catchUntil {
		return n, 0
	}
	room := p.window.room(now)
	if room < n && now-intended > int64(StallAfter) {
		p.catchUps++
		p.catchUntil = now + int64(CatchUp)
		return n, 0
	}
	if g := min(room, n); g > 0 {
		p.window.add(now, g)
	}
	if room < n {
		return room, p.window.frees()
	}
	return n, 0
}

// left bounds what was asked for by what is left of the count.
func (p *Pacer) left(most int64) int64 {
	if rest := p.limit - p.granted; most > 0 && uint64(most) > rest {
		return int64(rest)
	}
	return max(0, most)
}

// unpaced grants whatever is asked for until the count or the duration ends.
func (p *Pacer) unpaced(now, n int64) (int, int64) {
	if now-p.start >= p.stop {
		p.finish()
		return 0, never
	}
	p.granted += uint64(n)
	if p.granted >= p.limit {
		p.finish()
	}
	return int(n), now
}

func (p *Pacer) finish() {
	p.done = true
	p.next = never
}

// Next returns the absolute time before which Due grants nothing. It is in the
// past if permits are left over from the last call, and the greatest int64 if
// there are none to come.
func (p *Pacer) Next() int64 { return p.next }

// Granted returns how many permits Due has handed out.
func (p *Pacer) Granted() uint64 { return p.granted }

// Thrown returns how many permits were due but discarded as debt. They are
// offered frames that were never sent, and do not use up the count.
func (p *Pacer) Thrown() uint64 { return p.thrown }

// Offered returns Granted + Thrown: the offered frames so far.
func (p *Pacer) Offered() uint64 { return p.granted + p.thrown }

// CatchUps returns how often the window rule was suspended.
func (p *Pacer) CatchUps() uint64 { return p.catchUps }

// CatchUpUntil returns the time up to which the window rule is suspended, or
// was last.
func (p *Pacer) CatchUpUntil() int64 { return p.catchUntil }

// Done says that the count is used up or the duration has passed, and nothing
// will be granted any more.
func (p *Pacer) Done() bool { return p.done }
