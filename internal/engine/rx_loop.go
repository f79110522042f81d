package engine

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"linerate/bpf"
	"linerate/internal/frame"
	"linerate/internal/meter"
	"linerate/internal/pcap"
	"linerate/internal/wire"
	"linerate/xsk"
)

// watched is what the receiving queues of one trial share.
type watched struct {
	Watch
	account *frame.Account
	adopt   *frame.Adoption
}

func newWatched(w Watch) *watched {
	s := &watched{Watch: w, account: frame.NewAccount()}
	if w.AnyRun {
		s.adopt = new(frame.Adoption)
	}
	return s
}

// ended tells whether every sequence space seen has its END.
func (w *watched) ended() bool {
	streams := w.account.Streams()
	for _, s := range streams {
		if !s.EndSeen {
			return false
		}
	}
	return len(streams) > 0
}

// result joins what the queues found.
func (w *watched) result(loops []*rxLoop) *RxResult {
	r := &RxResult{Totals: w.account.Totals(), Spaces: w.account.Spaces(), Streams: w.account.Streams()}
	if w.adopt != nil {
		r.Adopted, _ = w.adopt.Run()
	}
	gaps, latency := meter.NewHistogram(), meter.NewHistogram()
	for _, l := range loops {
		r.add(l)
		if l.gaps == nil {
			continue
		}
		kept, dropped := l.gaps.Windows()
		r.Overfull = append(r.Overfull, kept...)
		r.OverfullMore += dropped
		gaps.Merge(l.gaps.Gaps())
		latency.Merge(l.latency)
	}
	if s, ok := gaps.Summary(); ok {
		r.Gaps = &s
	}
	if s, ok := latency.Summary(); ok {
		r.Latency = &s
	}
	return r
}

// add joins one queue's counts to the result.
func (r *RxResult) add(l *rxLoop) {
	l.q.Taken, l.q.Bytes = l.counts.Taken, l.counts.Bytes
	r.Queues = append(r.Queues, l.q)
	r.NoStamp += l.noStamp
	r.ClockTrouble += l.backward
	if l.firstNs != 0 && (r.FirstNs == 0 || l.firstNs < r.FirstNs) {
		r.FirstNs = l.firstNs
	}
	r.LastNs = max(r.LastNs, l.lastNs)
	r.Rated = r.Rated.Join(l.rate.Rated)
}

// rxLoop is the receiving worker that every socket engine shares: it looks at
// each frame taken and counts. It belongs to one goroutine while a trial runs,
// but for counters, which anybody may read.
type rxLoop struct {
	queue    Queue
	counters *meter.RxCounters
	rxTrial
}

// rxTrial is what an rxLoop knows of the trial it is in.
type rxTrial struct {
	q        RxQueue
	counts   meter.RxCounts
	verify   bool
	checker  *frame.Checker
	account  *frame.QueueAccount
	checked  frame.Checked
	gaps     *meter.Gaps
	latency  *meter.Histogram
	noStamp  uint64
	backward uint64 // frames received before they were sent: the clocks differ
	firstNs  int64
	lastNs   int64
	fault    Fault
	rate     rating
	ring     *pcap.Ring // of a capture, or nil
	foreign  bool       // frames of pktgen are checked
	seen     Rated      // of what rate has entered: frames and bytes
	bytes    uint64     // L2 bytes with FCS of the good frames
	gathered uint64     // frames taken when the ring was last found empty
}

const (
	// gatherFor is how long frames may gather in a ring: 1,500 of the fastest.
	gatherFor = 100 * time.Microsecond
	// gatherFrames is how many must have come between two empty rings.
	gatherFrames = 8
	// gatherRing is the least ring that gathers.
	gatherRing = 2048
)

func newRxLoop(q Queue) *rxLoop {
	return &rxLoop{queue: q, counters: new(meter.RxCounters)}
}

// start prepares for one trial on one of so many queues.
func (l *rxLoop) start(w *watched, queues int, f Fault) {
	l.rxTrial = rxTrial{q: RxQueue{Queue: l.queue}, verify: w.Verify, fault: f, rate: rating{warmup: w.Warmup}, ring: w.Rings[l.queue.ID]}
	if !w.Verify {
		return
	}
	l.foreign = w.Foreign == frame.Pktgen
	l.gaps = meter.NewGaps(w.PPS / float64(queues))
	l.latency = meter.NewHistogram()
	l.checker = frame.NewChecker(frame.CheckerConfig{Run: w.Run, Adopt: w.adopt, PayloadCheck: w.PayloadCheck})
	l.account = w.account.Queue(l.queue.ID)
}

// follow takes frames by turn, which tells how many, until stop is set; then
// what stands in the rings, at most so many: more than that came later. wait
// blocks until there may be frames, for pollEvery at most.
func (l *rxLoop) follow(stop *atomic.Bool, rings int, turn func() int, wait func() error) error {
	for rings > 0 {
		stopped := stop.Load() // before the look: what came until then is taken
		n := turn()
		if stopped {
			rings -= n
		}
		if n > 0 {
			l.publish()
			continue
		}
		if stopped {
			break
		}
		err := wait()
		switch {
		case errors.Is(err, unix.ENETDOWN), errors.Is(err, unix.ENXIO):
			// Down or gone: whoever watches it ends the trial, and until then what
			// the socket has counted is worth waiting for.
			l.q.NetDown++
			time.Sleep(pollEvery)
		case err != nil:
			return fmt.Errorf("wait on queue %d: %w", l.queue.ID, err)
		}
	}
	return nil
}

// gather sleeps for a moment when the last frames came so fast that a wake-up
// for each would cost both ends more than the frames do, and tells whether it
// did. The ring must hold what comes meanwhile, several times over.
func (l *rxLoop) gather(ring int) bool {
	n := l.counts.Taken - l.gathered
	l.gathered = l.counts.Taken
	if n < gatherFrames || ring < gatherRing {
		return false
	}
	sleep(gatherFor)
	return true
}

// end closes the queue's account, also after an error.
func (l *rxLoop) end(base xsk.Stats, read func() (xsk.Stats, error)) error {
	l.publish()
	now, err := read()
	if err != nil {
		return err
	}
	l.socket(now, base)
	return nil
}

// batch notes the time of a batch, once for all its frames.
func (l *rxLoop) batch() {
	now := xsk.NowNs()
	if l.firstNs == 0 {
		l.firstNs = now
	}
	l.lastNs = now
}

// take looks at one frame. meta is the bytes before it.
func (l *rxLoop) take(meta, buf []byte) {
	if l.fault.LoseRedirected > 0 {
		l.fault.LoseRedirected--
		return
	}
	l.counts.Taken++
	l.counts.Bytes += uint64(len(buf)) + wire.FCSBytes
	if !l.verify {
		if l.ring != nil {
			l.keepAny(meta, buf)
		}
		return
	}
	if l.fault.LoseTaken > 0 {
		l.fault.LoseTaken--
		return
	}
	c := &l.checked
	if l.foreign {
		l.checker.CheckPktgen(buf, c)
	} else {
		l.checker.Check(buf, c)
	}
	if l.ring != nil {
		l.countKeeping(meta, buf, c)
	} else {
		l.account.Count(c)
	}
	if c.Class == frame.ClassGood {
		l.counts.Good++
		l.bytes += uint64(len(buf)) + wire.FCSBytes
		l.time(meta, c)
	}
}

// time measures a good frame by the stamp that the XDP program left.
func (l *rxLoop) time(meta []byte, c *frame.Checked) {
	ns, ok := bpf.Stamp(meta, l.identity(c))
	if !ok {
		l.noStamp++
		return
	}
	l.gaps.Add(int64(ns))
	if c.Short || c.Tag.Flags&frame.FlagStamp == 0 {
		return
	}
	// The tag holds the low 38 bits of the time in steps of 64 ns.
	const span = 1 << 38
	d := (ns - c.Tag.TimeNs) % span
	if d > span/2 {
		l.backward++
		return
	}
	l.latency.Record(int64(d))
}

// bad counts a descriptor that points outside the UMEM: taken, and no frame.
func (l *rxLoop) bad() {
	l.counts.Taken++
	if l.verify {
		l.account.Foreign(frame.ClassUnreadable)
	}
}

// publish shows the counts, once a batch.
func (l *rxLoop) publish() {
	l.enter()
	l.counters.Publish(&l.counts)
	if l.account != nil {
		l.account.Publish()
	}
}

// enter puts the last batch into the rates: what arrived by its time. Frames
// of others and END frames, which come late, would stretch the span.
func (l *rxLoop) enter() {
	frames, bytes := l.counts.Taken, l.counts.Bytes
	if l.verify {
		frames, bytes = l.counts.Good, l.bytes
	}
	l.rate.add(l.lastNs, frames-l.seen.Frames, bytes-l.seen.Bytes)
	l.seen.Frames, l.seen.Bytes = frames, bytes
}

// socket takes over what the socket itself counted during the trial.
func (l *rxLoop) socket(now, base xsk.Stats) {
	l.q.RingFull = now.RxRingFull - base.RxRingFull
	l.q.FillEmpty = now.RxFillEmpty - base.RxFillEmpty
	l.q.Dropped = now.RxDropped - base.RxDropped
}
