package pace

import "math"

// Times is a row of frames that have times of their own: a replay.
type Times interface {
	// Due is how many of the frames next in line, at most most, have their time
	// up so many ns after the start, and the time of the one after them.
	Due(sinceNs int64, most int) (n int, nextNs int64)
	// Done says that no frame is left.
	Done() bool
}

// Timetable hands out permits at the times of the frames themselves. It never
// throws one: what is late goes out as soon as it can, as it is the frame that
// counts. It belongs to one goroutine, and so do its Times; who takes a permit
// takes the frame from the row too, before the next call.
type Timetable struct {
	times   Times
	start   int64
	last    int64 // time of the last call of Due
	next    int64 // when the next frame is due
	granted uint64
	lateNs  int64 // of the first frame of the last grant
	tail    uint64
	done    bool
	stalls  Stalls
}

// NewTimetable makes a Timetable. It hands out nothing before Start.
func NewTimetable(t Times) *Timetable {
	return &Timetable{times: t, start: never, next: never}
}

// Start sets the time of the first frame.
func (t *Timetable) Start(startNs int64) { t.start, t.last, t.next = startNs, startNs, startNs }

// Due returns how many frames may be sent now, at most most, or, if there are
// none, the time of the next. What it grants counts as sent.
func (t *Timetable) Due(nowNs int64, most int) (n int, nextNs int64) {
	if t.done || nowNs < t.start {
		return 0, t.start
	}
	n, next := t.times.Due(nowNs-t.start, most)
	if n > 0 {
		t.stalls.add(max(t.last, t.next), nowNs)
		t.lateNs = nowNs - max(t.start, t.next)
	}
	t.last, t.next = nowNs, never
	if next < never-t.start {
		t.next = t.start + next
	}
	t.granted += uint64(n)
	return n, t.next
}

// Finish ends the offer: what was due and not taken was offered all the same.
func (t *Timetable) Finish(nowNs int64) {
	if !t.done && nowNs >= t.start {
		n, _ := t.times.Due(nowNs-t.start, math.MaxInt)
		t.tail = uint64(n)
	}
	t.done = true
}

// Offered returns the frames granted, and those that Finish found due.
func (t *Timetable) Offered() uint64 { return t.granted + t.tail }

// Thrown returns what Finish found due.
func (t *Timetable) Thrown() uint64 { return t.tail }

// Tail is Thrown: all of it was due after the last frame that was granted.
func (t *Timetable) Tail() uint64 { return t.tail }

// LateNs is how far behind its time the last grant was: a path that is slower
// than the frames' own times falls behind further and further.
func (t *Timetable) LateNs() int64 { return t.lateNs }

// Stalls returns the stalls so far.
func (t *Timetable) Stalls() Stalls { return t.stalls }

// CatchUps is 0: a capture has its own bursts, and none is held back.
func (t *Timetable) CatchUps() uint64 { return 0 }

// CatchUpUntil is the start of time.
func (t *Timetable) CatchUpUntil() int64 { return 0 }

// Done says that nothing will be granted any more.
func (t *Timetable) Done() bool { return t.done || t.times.Done() }
