package engine

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"linerate/internal/frame"
	"linerate/internal/meter"
	"linerate/internal/pace"
	"linerate/internal/pcap"
	"linerate/internal/wire"
	"linerate/xsk"
)

const (
	// watchdogNs is how long frames may be outstanding with none completed
	// before the worker kicks without being asked.
	watchdogNs = int64(time.Millisecond)
	// drainNs bounds the wait for the last completions.
	drainNs = int64(time.Second)
	// endMarks END frames close a space, endGap apart, so that a burst of
	// loss cannot take them all.
	endMarks = 10
	endGap   = 10 * time.Millisecond
	// keptExcuses bounds the stalls that are remembered one by one.
	keptExcuses = 4096
)

// txPath is how one queue's frames reach the kernel. It is called once a
// batch, never once a frame.
type txPath interface {
	fresh()               // another trial begins: no buffer holds a frame of it
	longest() wire.BufLen // frame that a buffer, or a chain of them, takes
	room() int            // frames that put takes now
	put(fw *frame.Writer, n int, now int64) (sent int, bytes uint64)
	putEnd(fw *frame.Writer, sent uint64, now int64) (bytes uint64, ok bool)
	reap() int // frames that came back
	kick() xsk.KickResult
	needsKick() bool
	held() uint64             // frames in the ring, not taken by the kernel
	invalid() (uint64, error) // tx_invalid_descs since the socket was opened
}

// txLoop is the sending worker that every socket engine shares: permits,
// stamps, kicks, completions and counts. It belongs to one goroutine, but for
// counters, which anybody may read.
type txLoop struct {
	queue    Queue
	counters *meter.TxCounters
	path     txPath
	batch    int
	budget   int    // frames that may be under way
	inFlight uint64 // frames that are
	txTrial
}

// txTrial is what a txLoop knows of the trial it is in.
type txTrial struct {
	q        TxQueue
	firstNs  int64
	lastNs   int64
	endNs    int64
	doneNs   int64 // last time something completed, or the ring was empty
	biasSum  uint64
	rate     rating
	kicks    uint64
	pacer    permits
	source   pcap.Source // of a replay, nil: a stream's frames are written
	replay   replayPath
	stalls   uint64 // of the pacer, at the last turn
	catchUps uint64
	turnNs   int64 // last turn of the loop
	wait     *pace.Waiter
	waited   delay // when the rated part began
}

func newTxLoop(q Queue, cfg Config, path txPath) *txLoop {
	return &txLoop{queue: q, counters: new(meter.TxCounters), batch: cfg.Batch, budget: cfg.Budget, path: path}
}

// run is one trial of worker i of n.
func (l *txLoop) run(stop *atomic.Bool, o Offer, i, n int, f Fault) error {
	l.txTrial = txTrial{q: TxQueue{Queue: l.queue}} // first: nothing of the last trial may be reported again
	if err := pin(l.queue.CPU); err != nil {
		return err
	}
	fw, err := l.prepare(o, i)
	if err != nil {
		return fmt.Errorf("prepare frames of worker %d: %w", i, err)
	}
	if err := l.begin(o, i, n); err != nil {
		return fmt.Errorf("begin on queue %d: %w", l.queue.ID, err)
	}
	invalid, err := l.path.invalid()
	if err != nil {
		return err
	}
	l.rate.warmup = o.Warmup
	for xsk.NowNs() < o.Start && !stop.Load() {
		l.wait.Wait(o.Start)
	}
	l.pacer.Start(o.Start)
	err = l.offer(stop, fw, deadline(o), f.of(i))
	l.endNs = xsk.NowNs()
	l.q.WaitedNs = l.waited.since()
	l.pacer.Finish(l.endNs)
	l.settle()
	if ferr := l.finish(fw, err == nil && o.EndMarks); err == nil {
		err = ferr
	}
	if now, ierr := l.path.invalid(); ierr == nil {
		l.q.Invalid = now - invalid
	}
	l.q.Held = l.path.held()
	l.publish()
	return err
}

// finish waits for what is under way, and then closes the space: END frames
// must not find the ring full, nor be taken for the data frames that the device
// refuses meanwhile.
func (l *txLoop) finish(fw *frame.Writer, marks bool) error {
	err := l.drain()
	if err != nil || !marks {
		return err
	}
	before := l.q.Refused
	err = l.end(fw)
	if derr := l.drain(); err == nil {
		err = derr
	}
	l.q.RefusedEnd = l.q.Refused - before
	return err
}

// ErrUnderWay is what Run says when the last trial ended with frames that the
// kernel kept: close the sender and open another.
var ErrUnderWay = errors.New("frames of the last trial are under way")

// deadline is when an offer is over, on the workers' clock.
func deadline(o Offer) int64 {
	if o.Duration <= 0 {
		return math.MaxInt64
	}
	return o.Start + int64(o.Duration)
}

// offer sends until the time, the count or the trial is over.
func (l *txLoop) offer(stop *atomic.Bool, fw *frame.Writer, deadline int64, f Fault) error {
	for !stop.Load() {
		now := xsk.NowNs()
		if over, err := l.spent(); over || now >= deadline {
			return err
		}
		l.reap(now)
		n, next := l.pacer.Due(now, l.ready())
		l.excuse(now)
		if n == 0 {
			if err := l.idle(now, min(next, deadline)); err != nil {
				return err
			}
			continue
		}
		if f.LoseOffered > 0 || f.LoseSubmitted > 0 {
			kept := l.lose(&f, n)
			l.skip(n - kept)
			n = kept
		}
		l.send(fw, n)
		if err := l.push(); err != nil {
			return err
		}
		l.called(now)
		l.publish()
	}
	return nil
}

// excuse notes the time from the last turn of a worker that was off its CPU to
// the end of its catching up.
func (l *txLoop) excuse(now int64) {
	stalls, catchUps := l.pacer.Stalls().Count, l.pacer.CatchUps()
	if (stalls != l.stalls || catchUps != l.catchUps) && len(l.q.Excused) < keptExcuses {
		l.q.Excused = append(l.q.Excused, meter.Span{FromNs: l.turnNs, ToNs: max(now, l.pacer.CatchUpUntil()) + meter.WindowNs})
	}
	l.stalls, l.catchUps, l.turnNs = stalls, catchUps, now
}

// idle is a turn with nothing to send: the ring is full, or no permit is due.
func (l *txLoop) idle(now, next int64) error {
	full := l.path.room() == 0
	if l.inFlight > 0 && (full || now-l.doneNs > watchdogNs) {
		err := l.push()
		l.called(now)
		return err
	}
	if !full && next > now {
		l.publish()
		l.wait.Wait(next)
	}
	return nil
}

// send writes n frames in groups that share a clock reading.
func (l *txLoop) send(fw *frame.Writer, n int) {
	first := int64(0)
	for n > 0 {
		now := xsk.NowNs()
		sent, bytes := l.put(fw, min(n, stampEvery), now)
		if sent == 0 {
			break
		}
		if first == 0 {
			first = now
		}
		n -= sent
		l.q.Submitted += uint64(sent)
		l.q.Bytes += bytes
		l.inFlight += uint64(sent)
		l.lastNs = now
		if l.rate.add(now, uint64(sent), bytes) {
			l.q.Warmup = Warmup{Thrown: l.pacer.Thrown(), Refused: l.q.Refused, CallsNs: l.q.CallsNs, Stalls: l.pacer.Stalls()}
			l.waited = runDelay()
		}
	}
	l.q.Unwritten += uint64(n)
	l.skip(n)
	if first == 0 {
		return
	}
	if l.firstNs == 0 {
		l.firstNs = first
	}
	l.q.LastThrown = l.pacer.Thrown()
	l.q.Batches++
	if l.inFlight > uint64(l.budget)/4 {
		l.q.OwnQueue++
	}
	l.biasSum += uint64(xsk.NowNs() - first)
}

// push kicks until the kernel says it has everything, for at most as many
// kicks as frames can be outstanding.
func (l *txLoop) push() error {
	now := xsk.NowNs()
	if !l.path.needsKick() && now-l.doneNs < watchdogNs {
		return nil
	}
	before := l.path.held()
	for range 2 * l.budget {
		r := l.path.kick()
		l.kicks++
		switch r.Code {
		case xsk.KickRefused:
			l.q.Refused++
		case xsk.KickAgain:
			l.reap(now)
		case xsk.KickNetDown:
			l.q.NetDown++
			time.Sleep(time.Millisecond)
			return nil
		case xsk.KickFatal:
			return fmt.Errorf("send on queue %d: %w", l.queue.ID, r.Errno)
		default:
			l.doneNs = now
			// Done does not say that all was taken: as long as it helps, again.
			// Back-pressure, or a driver that sends by itself: the next turn.
			held := l.path.held()
			if held == 0 || held >= before || r.Code != xsk.KickDone || !l.path.needsKick() {
				return nil
			}
			before = held
		}
	}
	return nil
}

// reap takes completions.
func (l *txLoop) reap(now int64) {
	n := uint64(l.path.reap())
	if n > 0 || l.inFlight == 0 {
		l.doneNs = now
	}
	l.q.Completed += n
	l.inFlight -= min(n, l.inFlight)
}

// settle closes the account of the offer: what was due and never written is
// unsent, never loss.
func (l *txLoop) settle() {
	p := l.pacer
	l.q.Offered = p.Offered()
	l.q.Thrown = p.Thrown()
	l.q.Tail = p.Tail()
	if t, ok := p.(*pace.Timetable); ok {
		l.q.LateNs = t.LateNs()
	}
	l.q.Rated = l.rate.Rated
	l.q.Unsent = p.Thrown() + l.q.Unwritten
	l.q.Stalls = p.Stalls()
	if l.q.Batches > 0 {
		l.q.BiasNs = l.biasSum / l.q.Batches
	}
}

// end sends the END frames of this worker's space. A trial that was stopped
// ends its spaces too: the count is what a sink needs most then.
func (l *txLoop) end(fw *frame.Writer) error {
	sent := fw.Seq()
	for k := range endMarks {
		if k > 0 {
			time.Sleep(endGap)
		}
		l.reap(xsk.NowNs())
		if bytes, ok := l.path.putEnd(fw, sent, xsk.NowNs()); ok {
			l.q.EndFrames++
			l.q.Submitted++
			l.q.Bytes += bytes
			l.inFlight++
		}
		if err := l.push(); err != nil { // also when the ring is full: that is what empties it
			return err
		}
	}
	return nil
}

// drain waits until the kernel has given every frame back.
func (l *txLoop) drain() error {
	until := xsk.NowNs() + drainNs
	for now := xsk.NowNs(); ; now = xsk.NowNs() {
		l.reap(now)
		if l.inFlight == 0 || now > until {
			return nil
		}
		if l.path.held() > 0 || now-l.doneNs > watchdogNs {
			if err := l.push(); err != nil {
				return err
			}
		}
		time.Sleep(50 * time.Microsecond)
	}
}

// lose applies the faults of the budget's own test.
func (l *txLoop) lose(f *Fault, n int) int {
	if f.LoseOffered > 0 {
		k := min(f.LoseOffered, uint64(n))
		f.LoseOffered -= k
		return n - int(k)
	}
	k := min(f.LoseSubmitted, uint64(n))
	f.LoseSubmitted -= k
	l.q.Submitted += k
	return n - int(k)
}

// publish makes the counts visible to readers, once a batch.
func (l *txLoop) publish() {
	stalls := l.pacer.Stalls()
	l.counters.Publish(&meter.TxCounts{Offered: l.pacer.Offered(), Submitted: l.q.Submitted,
		Completed: l.q.Completed, Refused: l.q.Refused, Invalid: l.q.Invalid, Bytes: l.q.Bytes, Kicks: l.kicks,
		Stalls: stalls.Count, OffCPUNs: uint64(stalls.Sum)})
}

// txResult joins what the workers did.
func txResult(loops []*txLoop) (r TxResult) {
	for _, l := range loops {
		r.add(l)
	}
	return r
}

// add joins one worker's trial to the result.
func (r *TxResult) add(l *txLoop) {
	r.Queues = append(r.Queues, l.q)
	if l.firstNs != 0 && (r.FirstNs == 0 || l.firstNs < r.FirstNs) {
		r.FirstNs = l.firstNs
	}
	r.LastNs = max(r.LastNs, l.lastNs)
	r.EndNs = max(r.EndNs, l.endNs)
	r.Rated = r.Rated.Join(l.rate.Rated)
}
