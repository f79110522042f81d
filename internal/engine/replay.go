package engine

import (
	"errors"
	"fmt"

	"linerate/internal/frame"
	"linerate/internal/pace"
	"linerate/internal/pcap"
	"linerate/internal/wire"
	"linerate/xsk"
)

// permits say when a worker may send: so many frames a second, or each frame at
// its own time. They are asked once a batch.
type permits interface {
	Start(startNs int64)
	Due(nowNs int64, most int) (n int, nextNs int64)
	Finish(nowNs int64)
	Done() bool
	Offered() uint64
	Thrown() uint64
	Tail() uint64
	Stalls() pace.Stalls
	CatchUps() uint64
	CatchUpUntil() int64
}

// Replay is frames that are sent instead of a stream's: one source a worker,
// asked once a batch. With Timed each frame goes at its own time; else the
// rate of the Offer is shared out so that all sources end together.
type Replay struct {
	Sources []pcap.Source
	Timed   bool
}

// replayPath is a txPath that can send frames which are there already.
type replayPath interface {
	// putFrames hands over n frames of the source, or as many as there are and
	// as there is room for.
	putFrames(s pcap.Source, n int) (sent int, bytes uint64)
}

// ErrNoReplay is what an engine says that can send only what it writes itself.
var ErrNoReplay = errors.New("this engine cannot replay frames")

// validate reports what no worker of so many could send.
func (r *Replay) validate(o Offer, workers int) error {
	if len(r.Sources) != workers {
		return &ConfigError{"replay sources", len(r.Sources), fmt.Sprintf("one for each of %d queues", workers)}
	}
	if o.Count > 0 || o.EndMarks {
		return &ConfigError{"replay", o.Count, "no count and no END frames: it ends with its frames"}
	}
	for i := range r.Sources {
		if err := r.pacing(o, i).Validate(); err != nil {
			return err
		}
	}
	return nil
}

// pacing is the share of worker i: its part of the frames at its part of the
// rate.
func (r *Replay) pacing(o Offer, i int) pace.Config {
	var sum uint64
	for _, s := range r.Sources {
		loop, _ := s.Share()
		sum += loop
	}
	loop, all := r.Sources[i].Share()
	c := pace.Config{Count: all, Duration: o.Duration, Workers: 1, Burst: burst(o.PPS, len(r.Sources))}
	if loop > 0 {
		c.PPS = o.PPS * float64(loop) / float64(sum)
	}
	return c
}

// permits makes those of worker i. A worker without frames has a timetable: an
// empty one.
func (r *Replay) permits(o Offer, i int) permits {
	if loop, _ := r.Sources[i].Share(); r.Timed || loop == 0 {
		return pace.NewTimetable(r.Sources[i])
	}
	return pace.New(r.pacing(o, i))
}

// fitReplay holds a worker's source against what the path can take.
func fitReplay(s pcap.Source, path txPath) (replayPath, error) {
	p, ok := path.(replayPath)
	if !ok {
		return nil, ErrNoReplay
	}
	if most := path.longest(); s.MaxLen() > most {
		return nil, &ConfigError{"frame", s.MaxLen(), fmt.Sprintf("at most the %d bytes that the engine was opened for", most)}
	}
	return p, nil
}

// prepare makes what the worker sends: a writer, nil for a replay.
func (l *txLoop) prepare(o Offer, i int) (fw *frame.Writer, err error) {
	if o.Replay != nil {
		l.source = o.Replay.Sources[i]
		l.replay, err = fitReplay(l.source, l.path)
		return nil, err
	}
	if fw, err = fit(o.Writers[i], l.path); err == nil {
		l.q.Space = fw.Space()
	}
	return fw, err
}

// begin prepares for a trial. Frames of the last one that are still under way
// would be counted as this one's.
func (l *txLoop) begin(o Offer, i, n int) error {
	l.inFlight -= min(uint64(l.path.reap()), l.inFlight)
	if l.inFlight > 0 {
		return fmt.Errorf("%w: %d frames", ErrUnderWay, l.inFlight)
	}
	l.path.fresh()
	l.pacer = o.permits(i, n)
	l.wait = pace.NewWaiter(pace.WaiterConfig{Clock: xsk.NowNs, Sleep: sleep})
	return nil
}

// put hands over a group of frames: those of the source, or newly written ones.
func (l *txLoop) put(fw *frame.Writer, n int, now int64) (sent int, bytes uint64) {
	if l.source != nil {
		return l.replay.putFrames(l.source, n)
	}
	return l.path.put(fw, n, now)
}

// ready is how many frames of a batch there are, and there is room for.
func (l *txLoop) ready() int {
	n := min(l.batch, l.path.room())
	if l.source != nil {
		return l.source.Ready(n)
	}
	return n
}

// spent says that nothing is left to send, and why if that is not the end.
func (l *txLoop) spent() (bool, error) {
	if l.source != nil && l.source.Done() {
		return true, l.source.Err()
	}
	return l.pacer.Done(), nil
}

// skip passes over frames that were granted and found no room: permit k is for
// frame k.
func (l *txLoop) skip(n int) {
	for l.source != nil && n > 0 {
		passed := len(l.source.Batch(n))
		if passed == 0 {
			return
		}
		n -= passed
	}
}

// putFrames copies frames into chunks and hands them to the kernel's ring.
func (w *xskTx) putFrames(s pcap.Source, n int) (sent int, bytes uint64) {
	if w.made != nil {
		return w.putLongFrames(s, n)
	}
	idx, got := w.sock.Tx.Reserve(uint32(min(n, len(w.free))))
	mem, chunk, free, state := w.mem, w.chunk, w.free, w.state
	top, k := len(free), uint32(0)
	for k < got {
		frames := s.Batch(int(got - k))
		if len(frames) == 0 {
			break
		}
		for _, b := range frames {
			top--
			c := free[top]
			at := uint64(c) * chunk
			size := copy(mem[at:at+chunk], b)
			state[c] = last
			bytes += uint64(size) + wire.FCSBytes
			w.sock.Tx.Set(idx+k, xsk.Desc{Addr: at, Len: uint32(size)})
			k++
		}
	}
	w.free = free[:top]
	w.sock.Tx.Cancel(got - k)
	w.sock.Tx.Submit(k)
	return int(k), bytes
}

// putLongFrames is putFrames where a frame may take several chunks.
func (w *xskTx) putLongFrames(s pcap.Source, n int) (sent int, bytes uint64) {
	for ; sent < n; sent++ {
		idx, ok := w.reserve(w.per)
		if !ok {
			break
		}
		frames := s.Batch(1)
		if len(frames) == 0 {
			w.sock.Tx.Cancel(uint32(w.per))
			break
		}
		w.lay(idx, frames[0])
		bytes += uint64(len(frames[0])) + wire.FCSBytes
	}
	return sent, bytes
}
