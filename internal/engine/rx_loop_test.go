package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"linerate/bpf"
	"linerate/internal/frame"
	"linerate/xsk"
)

// stampMagic is what the steer program mixes into a stamp (bpf/src/steer.c).
const stampMagic = 0x4c525354414d5031

// stampOf is the 16 bytes that the XDP program leaves before a frame.
func stampOf(ns, identity uint64) []byte {
	b := binary.NativeEndian.AppendUint64(nil, ns)
	return binary.NativeEndian.AppendUint64(b, stampMagic^identity)
}

func longIdentity(seq uint64) uint64 {
	return bpf.LongIdentity(frame.Space{Stream: 3}.Key(), seq)
}

func startedLoop(w Watch, f Fault) (*watched, *rxLoop) {
	s := newWatched(w)
	l := newRxLoop(Queue{ID: 4})
	l.start(s, 1, f)
	return s, l
}

var verifying = Watch{Verify: true, Run: testRun}

func TestTakeTellsFramesApart(t *testing.T) {
	s, l := startedLoop(verifying, Fault{})
	w := newWriter(t, "64")
	other := writerOf(t, "64", 0, 1)
	other.Run = testRun + 1
	ow, err := frame.NewWriter(other)
	if err != nil {
		t.Fatal(err)
	}
	corrupt := fresh(w, 1) // sequence 0
	corrupt[len(corrupt)-1] ^= 1
	end := make([]byte, w.MaxLen())
	end = end[:w.End(end, 3, 1)]
	none := make([]byte, 16)
	l.batch()
	for _, b := range [][]byte{corrupt, fresh(w, 1), fresh(w, 1), fresh(ow, 1), end, make([]byte, 60), {1, 2, 3}} {
		l.take(none, b)
	}
	l.bad()
	l.publish()
	r := s.result([]*rxLoop{l})
	want := frame.Totals{Distinct: 2, Corrupt: r.Totals.Corrupt, CorruptIdentified: r.Totals.CorruptIdentified,
		OtherRun: 1, Untagged: 1, Unreadable: 2, EndFrames: 1}
	if r.Totals != want || r.Totals.Corrupt != 1 {
		t.Errorf("%+v\nwant %+v", r.Totals, want)
	}
	q := r.Queues[0]
	if q.Taken != 8 || q.Bytes != 6*64+7 || q.Queue.ID != 4 {
		t.Errorf("%+v", q)
	}
	if c := l.counters.Read(); c.Taken != 8 || c.Good != 2 {
		t.Errorf("published %+v", c)
	}
	if r.NoStamp != 2 { // of the good frames only
		t.Errorf("%d without a stamp", r.NoStamp)
	}
	if len(r.Spaces) != 1 || !r.Spaces[0].EndSeen || r.Spaces[0].EndSent != 3 || !s.ended() {
		t.Errorf("%+v", r.Spaces)
	}
}

func TestTimeMeasuresByTheRightStamp(t *testing.T) {
	s, l := startedLoop(verifying, Fault{})
	w := newWriter(t, "64")
	const sent = uint64(5) << 38 // the tag holds 38 bits
	for seq, c := range []struct {
		stamp uint64 // seen by XDP
		id    uint64
	}{
		{sent + 1000, longIdentity(0)},
		{sent + 3000, longIdentity(1)},
		{sent + 3000, longIdentity(1)},            // of the frame before: no stamp
		{sent - 64, longIdentity(3)},              // received before it was sent
		{sent + 4000, 0},                          // of a frame without a tag
		{sent + 1<<38 + 5000, longIdentity(5)},    // a turn of the tag's clock later
		{sent + 6000, bpf.ShortIdentity(0x03, 6)}, // of a short tag
	} {
		if w.Seq() != uint64(seq) {
			t.Fatal("the table is not in order")
		}
		l.take(stampOf(c.stamp, c.id), fresh(w, sent))
	}
	l.take(nil, fresh(w, sent))
	r := s.result([]*rxLoop{l})
	if r.NoStamp != 4 || r.ClockTrouble != 1 {
		t.Errorf("%d without a stamp, %d in clock trouble", r.NoStamp, r.ClockTrouble)
	}
	if r.Latency == nil || r.Latency.Count != 3 || r.Latency.Min != 1000 || r.Latency.Max != 5000 {
		t.Errorf("latency %+v", r.Latency)
	}
	if r.Gaps == nil || r.Gaps.Count != 2 || r.Gaps.Min != 2000 {
		t.Errorf("gaps %+v", r.Gaps)
	}
}

// TestShortTags have an identity of their own and no time.
func TestShortTags(t *testing.T) {
	c := writerOf(t, "64", 0, 1)
	c.Stream.Stack.VLANs = []frame.VLAN{{ID: 5}}
	w, err := frame.NewWriter(c)
	if err != nil {
		t.Fatal(err)
	}
	s, l := startedLoop(verifying, Fault{})
	l.take(stampOf(1000, bpf.ShortIdentity(0x03, 0)), fresh(w, 1))
	l.take(stampOf(2000, bpf.ShortIdentity(0x03, 1)), fresh(w, 1))
	r := s.result([]*rxLoop{l})
	if r.NoStamp != 0 || r.Gaps == nil || r.Gaps.Count != 1 || r.Latency != nil {
		t.Errorf("%d without a stamp, gaps %+v, latency %+v", r.NoStamp, r.Gaps, r.Latency)
	}
}

func TestCountingLooksAtNothing(t *testing.T) {
	s, l := startedLoop(Watch{}, Fault{})
	l.take(nil, []byte{1, 2, 3, 4})
	l.bad()
	l.publish()
	r := s.result([]*rxLoop{l})
	if r.Queues[0].Taken != 2 || r.Totals != (frame.Totals{}) || r.Gaps != nil || s.ended() {
		t.Errorf("%+v", r)
	}
}

// TestResultJoinsQueues: sums, the earliest and the latest time, and a sequence
// that is spread over queues.
func TestResultJoinsQueues(t *testing.T) {
	s := newWatched(Watch{Verify: true, AnyRun: true, PPS: 20_000})
	w := newWriter(t, "64")
	var loops []*rxLoop
	for i := range 3 {
		l := newRxLoop(Queue{ID: i})
		l.start(s, 3, Fault{})
		loops = append(loops, l)
	}
	loops[0].firstNs, loops[0].lastNs = 20, 30
	loops[2].firstNs, loops[2].lastNs = 10, 25
	for seq := range uint64(40) {
		l := loops[seq%2] // the third stays idle
		l.take(stampOf(1000+seq, longIdentity(seq)), fresh(w, 500))
	}
	for _, l := range loops {
		l.publish()
	}
	r := s.result(loops)
	if r.Totals.Distinct != 40 || r.Totals.Reordered != 0 || len(r.Queues) != 3 {
		t.Errorf("%+v", r.Totals)
	}
	if r.FirstNs != 10 || r.LastNs != 30 || r.Adopted != testRun {
		t.Errorf("from %d to %d, run %x", r.FirstNs, r.LastNs, r.Adopted)
	}
	if r.Gaps.Count != 38 || r.Gaps.Min != 2 || r.Latency.Count != 40 {
		t.Errorf("gaps %+v, latency %+v", r.Gaps, r.Latency)
	}
	if n := len(r.Overfull); n != 2*18 || r.OverfullMore != 0 { // 20 frames in 100 us on each queue, where 2 may be
		t.Errorf("%d windows over the rule", n)
	}
}

func TestEndedWantsEveryStream(t *testing.T) {
	s, l := startedLoop(verifying, Fault{})
	if s.ended() {
		t.Error("ended before anything came")
	}
	end := func(stream uint16) {
		c := writerOf(t, "64", 0, 1)
		c.Stream.ID = stream
		w, err := frame.NewWriter(c)
		if err != nil {
			t.Fatal(err)
		}
		b := fresh(w, 1)
		l.take(nil, b)
		l.take(nil, b[:w.End(b, 1, 1)])
		l.publish()
	}
	l.take(nil, fresh(newWriter(t, "64"), 1))
	l.publish()
	end(9)
	if s.ended() {
		t.Error("ended with one stream open")
	}
	end(3)
	if !s.ended() {
		t.Error("not ended")
	}
}

func TestRxFaults(t *testing.T) {
	_, l := startedLoop(verifying, Fault{LoseRedirected: 2, LoseTaken: 3})
	w := newWriter(t, "64")
	for range 10 {
		l.take(nil, fresh(w, 1))
	}
	if l.counts.Taken != 8 || l.counts.Good != 5 {
		t.Errorf("%+v", l.counts)
	}
	if (Fault{LoseTaken: 1}).of(0) == (Fault{}) || (Fault{LoseTaken: 1}).of(1) != (Fault{}) {
		t.Error("not one worker loses")
	}
}

// TestTrialsOfAReceiverAreApart: a second start forgets the first.
func TestTrialsOfAReceiverAreApart(t *testing.T) {
	_, l := startedLoop(verifying, Fault{})
	l.batch()
	l.take(nil, fresh(newWriter(t, "64"), 1))
	counters := l.counters
	s := newWatched(verifying)
	l.start(s, 1, Fault{})
	r := s.result([]*rxLoop{l})
	if r.Queues[0].Taken != 0 || r.FirstNs != 0 || r.NoStamp != 0 || l.counters != counters {
		t.Errorf("%+v", r)
	}
}

// TestFollow: what is in the rings at the end is taken; an end under a flood
// comes all the same; a link that is down is waited for.
func TestFollow(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name    string
		turns   []int // then 0, or what flood says
		flood   int
		waits   []error
		turned  int
		netDown uint64
		err     error
	}{
		{name: "empty", turned: 1},
		{name: "rest", turns: []int{5, 5}, turned: 3},
		{name: "flood", flood: 10, turned: 10},
		{name: "down", turns: []int{0, 0, 5, 0}, waits: []error{unix.ENETDOWN, unix.ENETDOWN, nil}, turned: 5, netDown: 2},
		{name: "gone", turns: []int{0}, waits: []error{fmt.Errorf("poll: %w", boom)}, turned: 1, err: boom},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, l := startedLoop(Watch{}, Fault{})
			stop := new(atomic.Bool)
			stop.Store(len(c.waits) == 0)
			turned := 0
			turn := func() int {
				if turned++; turned <= len(c.turns) {
					return c.turns[turned-1]
				}
				return c.flood
			}
			wait := func() error {
				err := c.waits[0]
				c.waits = c.waits[1:]
				stop.Store(len(c.waits) == 0)
				return err
			}
			err := l.follow(stop, 100, turn, wait)
			if !errors.Is(err, c.err) || turned != c.turned || l.q.NetDown != c.netDown {
				t.Errorf("error %v, %d turns, %d times down", err, turned, l.q.NetDown)
			}
		})
	}
}

func TestJoin(t *testing.T) {
	w, _ := rxOver(t, 64, 2048)
	first, second := bytes.Repeat([]byte{1}, 16), bytes.Repeat([]byte{2}, 16)
	if m, b := w.join(first, []byte("one"), false); string(b) != "one" || !bytes.Equal(m, first) {
		t.Errorf("a frame of one piece: %q", b)
	}
	for range 2 { // the second time there is an earlier frame to forget
		if _, b := w.join(first, []byte("ab"), true); b != nil {
			t.Error("whole after the first piece")
		}
		if _, b := w.join(second, []byte("cd"), true); b != nil {
			t.Error("whole after the second piece")
		}
		if m, b := w.join(second, []byte("e"), false); string(b) != "abcde" || !bytes.Equal(m, first) {
			t.Errorf("joined %q", b)
		}
	}
	piece := make([]byte, 2048)
	for range maxFragments + 3 {
		w.join(first, piece, true)
	}
	if _, b := w.join(first, piece, false); len(b) != maxFragments*2048 {
		t.Errorf("a chain too long came out as %d bytes", len(b))
	}
}

// receive puts a frame where the kernel would, in as many chunks as it takes,
// from a chunk on.
func receive(w *xskRx, r *rings, chunk int, meta, b []byte) {
	const most = 2048 - headroom
	for n := 0; len(b) > 0; n++ {
		at := w.umem.Chunk(chunk+n) + headroom
		if n == 0 {
			copy(w.mem[at-metaBytes:], meta)
		}
		d := xsk.Desc{Addr: at, Len: uint32(copy(w.mem[at:at+most], b))}
		b = b[d.Len:]
		if len(b) > 0 {
			d.Options = xsk.OptContinued
		}
		r.rx.put(d)
	}
}

// TestTurn takes frames of one and of several chunks, and descriptors that
// point anywhere, and gives every buffer back.
func TestTurn(t *testing.T) {
	w, r := rxOver(t, 64, 2048)
	s := newWatched(verifying)
	w.rx.start(s, 1, Fault{})
	fw := newWriter(t, "64,9018")
	for i := range 4 {
		receive(w, r, 10*i, stampOf(uint64(5000+i), longIdentity(uint64(i))), fresh(fw, 4000))
	}
	beyond := uint64(len(w.mem))
	for _, d := range []xsk.Desc{{Addr: 0, Len: 60}, {Addr: beyond, Len: 1}, {Addr: beyond - 10, Len: 60}, {Addr: ^uint64(0) - 5, Len: 60}} {
		r.rx.put(d)
	}
	descs := r.rx.filled()
	if n := w.turn(); n != descs {
		t.Fatalf("%d of %d descriptors", n, descs)
	}
	w.rx.publish()
	res := s.result([]*rxLoop{w.rx})
	if res.Totals.Distinct != 4 || res.Totals.Unreadable != 4 || res.NoStamp != 0 || res.Queues[0].Taken != 8 {
		t.Errorf("%+v, %d without a stamp", res.Totals, res.NoStamp)
	}
	if r.fill.filled() != descs || r.rx.filled() != 0 {
		t.Errorf("%d buffers given back of %d", r.fill.filled(), descs)
	}
	for range descs - 4 {
		if a := r.fill.take(); a%2048 != 0 {
			t.Errorf("buffer %#x is not a chunk", a)
		}
	}
	if w.turn() != 0 {
		t.Error("a turn with nothing to take")
	}
}

func TestTurnDoesNotAllocate(t *testing.T) {
	w, r := rxOver(t, 64, 2048)
	s := newWatched(verifying)
	w.rx.start(s, 1, Fault{})
	fw := newWriter(t, "64,4018")
	var buf [8][]byte
	for i := range buf {
		buf[i] = make([]byte, fw.MaxLen())
	}
	seq := uint64(0)
	meta := make([]byte, 16)
	allocs := testing.AllocsPerRun(200, func() {
		for i := range buf {
			n := int(fw.Next(buf[i], 0, 4000))
			binary.NativeEndian.PutUint64(meta, 5000+seq)
			binary.NativeEndian.PutUint64(meta[8:], stampMagic^longIdentity(seq))
			receive(w, r, 4*i, meta, buf[i][:n])
			seq++
		}
		for w.turn() > 0 {
			w.rx.publish()
		}
		for r.fill.filled() > 0 {
			r.fill.take()
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations per turn", allocs)
	}
	if got := w.rx.counts.Good; got != seq {
		t.Errorf("%d good frames of %d", got, seq)
	}
}
