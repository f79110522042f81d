package engine

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"linerate/internal/pcap"
	"linerate/internal/wire"
	"linerate/xsk"
)

// numbered is a source of n frames that hold their number, a ms apart, of which
// Batch gives a few at a time.
type numbered struct {
	n, at, few int
	out        [4][]byte
	err        error
}

func (s *numbered) Share() (loop, all uint64) { return uint64(s.n), uint64(s.n) }
func (s *numbered) MaxLen() wire.BufLen       { return 60 }
func (s *numbered) Ready(most int) int        { return min(most, s.n-s.at) }
func (s *numbered) Done() bool                { return s.at == s.n || s.err != nil }
func (s *numbered) Err() error                { return s.err }
func (s *numbered) Due(since int64, most int) (int, int64) {
	up := int(since/int64(time.Millisecond)) + 1
	n := max(0, min(up, s.n)-s.at)
	return min(n, most), int64(s.at+n) * int64(time.Millisecond)
}

func (s *numbered) Batch(n int) [][]byte {
	k := min(n, s.n-s.at, s.few)
	for i := range k {
		if s.out[i] == nil {
			s.out[i] = make([]byte, 60)
		}
		binary.BigEndian.PutUint64(s.out[i], uint64(s.at+i))
	}
	s.at += k
	return s.out[:k]
}

// replayed is a fakePath that keeps the numbers of what it sends.
type replayed struct {
	fakePath
	sent  []int
	short int // frames fewer than asked for that it takes, once
}

func (p *replayed) putFrames(s pcap.Source, n int) (sent int, bytes uint64) {
	n = min(n-p.short, p.room())
	p.short = 0
	for sent < n {
		for _, b := range s.Batch(n - sent) {
			p.sent = append(p.sent, int(binary.BigEndian.Uint64(b)))
			bytes += uint64(len(b)) + wire.FCSBytes
			sent++
		}
	}
	p.ring += n
	return sent, bytes
}

func count(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

// TestReplay: a worker sends the frames of its source, each once and in order,
// at a rate, without one and at the frames' own times.
func TestReplay(t *testing.T) {
	for name, o := range map[string]Offer{"rate": {PPS: 1e6}, "max": {}, "timed": {Replay: &Replay{Timed: true}}} {
		t.Run(name, func(t *testing.T) {
			p := &replayed{fakePath: fakePath{size: 16}}
			p.script = repeat(5, answers(3, xsk.KickDone))
			l := newTxLoop(Queue{CPU: -1}, Config{Batch: 64, Budget: 16}, p)
			timed := o.Replay != nil
			o.Replay, o.Start = &Replay{Sources: []pcap.Source{&numbered{n: 100, few: 3}}, Timed: timed}, xsk.NowNs()
			if err := trialOf(l, new(atomic.Bool), o, Fault{}); err != nil {
				t.Fatal(err)
			}
			checkBooks(t, l.q)
			if !slices.Equal(p.sent, count(100)) || l.q.Submitted != 100 || l.q.Offered-l.q.Thrown != 100 || l.q.Bytes != 100*64 {
				t.Errorf("sent %v: %+v", p.sent, l.q)
			}
			if took := l.q.Rated.LastNs - o.Start; timed && took < int64(99*time.Millisecond) {
				t.Errorf("frames of 99 ms went in %s", time.Duration(took))
			}
		})
	}
}

// TestReplayWithoutRoom: a frame that was granted and found no room is unsent,
// and the next permit is for the next frame.
func TestReplayWithoutRoom(t *testing.T) {
	p := &replayed{fakePath: fakePath{size: 16}, short: 16}
	l := newTxLoop(Queue{CPU: -1}, Config{Batch: 64, Budget: 16}, p)
	o := Offer{Replay: &Replay{Sources: []pcap.Source{&numbered{n: 40, few: 3}}}, Start: xsk.NowNs()}
	if err := trialOf(l, new(atomic.Bool), o, Fault{}); err != nil {
		t.Fatal(err)
	}
	checkBooks(t, l.q)
	if l.q.Unsent != 16 || l.q.Offered != 40 || !slices.Equal(p.sent, count(40)[16:]) {
		t.Errorf("unsent %d, sent %v", l.q.Unsent, p.sent)
	}
}

// TestReplayShares: sources of different length end together.
func TestReplayShares(t *testing.T) {
	r := &Replay{Sources: []pcap.Source{&numbered{n: 300}, &numbered{n: 100}, &numbered{}}}
	o := Offer{PPS: 1000, Replay: r}
	if err := o.validate(3); err != nil {
		t.Fatal(err)
	}
	if a, b := r.pacing(o, 0), r.pacing(o, 1); a.PPS != 750 || a.Count != 300 || b.PPS != 250 || b.Count != 100 {
		t.Errorf("%+v, %+v", a, b)
	}
	if p := r.permits(o, 2); !p.Done() {
		t.Error("a worker without frames has something to send")
	}
	var config *ConfigError
	if err := o.validate(2); !errors.As(err, &config) {
		t.Errorf("3 sources for 2 queues: %v", err)
	}
	o.EndMarks = true
	if err := o.validate(3); !errors.As(err, &config) {
		t.Errorf("END frames: %v", err)
	}
}

// TestReplayFails: a source that ends early, a path that writes its own frames
// only, and frames that are too long.
func TestReplayFails(t *testing.T) {
	broken := errors.New("disk gone")
	l := newTxLoop(Queue{CPU: -1}, Config{Batch: 64, Budget: 16}, &replayed{fakePath: fakePath{size: 16}})
	o := Offer{Replay: &Replay{Sources: []pcap.Source{&numbered{n: 5, err: broken}}}, Start: xsk.NowNs()}
	if err := trialOf(l, new(atomic.Bool), o, Fault{}); !errors.Is(err, broken) {
		t.Errorf("broken source: %v", err)
	}
	if _, err := fitReplay(&numbered{n: 1}, &fakePath{}); !errors.Is(err, ErrNoReplay) {
		t.Errorf("no way to replay: %v", err)
	}
}

// TestReplayAllocatesNothing: not a frame that goes through a real socket.
func TestReplayAllocatesNothing(t *testing.T) {
	b := newBench(t, 1, 0)
	s, err := OpenXSKSender(b.tx)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := s.(*xskSender).workers[0]
	src := &numbered{n: 1 << 30, few: 4}
	w.putFrames(src, 4)
	if n := testing.AllocsPerRun(1000, func() {
		w.putFrames(src, 16)
		w.kick()
		w.reap()
	}); n != 0 {
		t.Errorf("%v allocations a group", n)
	}
}
