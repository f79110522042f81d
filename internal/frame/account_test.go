package frame

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// oracle judges by looking through everything that came before.
type oracle struct {
	came []arrival
	want SpaceTotals
}

type arrival struct {
	queue int
	seq   uint64
}

func (o *oracle) add(queue int, seq uint64) {
	distinct, late, behind, between := true, false, false, false
	for _, a := range o.came {
		if a.seq == seq {
			distinct = false
		}
		if a.seq/Window > seq/Window && a.seq%Window/wordBits == seq%Window/wordBits {
			late = true // its place has gone to a newer one
		}
		if a.seq > seq && a.queue == queue {
			behind = true
		}
		if a.seq > seq && a.queue != queue {
			between = true
		}
	}
	if len(o.came) == 0 || seq > o.want.HighestSeq {
		o.want.HighestSeq = seq
	}
	o.came = append(o.came, arrival{queue, seq})
	switch {
	case late:
		o.want.TooLate++
		return
	case !distinct:
		o.want.Duplicate++
		return
	case behind:
		o.want.Reordered++
	case between:
		o.want.ReorderedBetween++
	}
	if o.want.Distinct == 0 || seq < o.want.LowestSeq {
		o.want.LowestSeq = seq
	}
	o.want.Distinct++
}

// walk draws sequence numbers as networks make them: forward, with gaps,
// duplicates, a few places back, a window back, a window on.
func walk(r *rapid.T, now uint64) uint64 {
	step := rapid.SampledFrom([]int64{1, 1, 1, 1, 2, 31, 33, 0, -1, -3, -40, 1000,
		Window - 33, Window, Window + 7, 3 * Window, -Window + 31, -Window - 5}).Draw(r, "step")
	if n := int64(now) + step; n >= 0 {
		return uint64(n)
	}
	return now
}

// TestAccountAgainstOracle: queues that publish after every frame are exact.
func TestAccountAgainstOracle(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a := NewAccount()
		worlds := map[Space]*oracle{{1, 2}: {}, {15, 4095}: {}, {0, 0}: {}}
		seq := map[Space]uint64{{15, 4095}: rapid.Uint64Range(0, maxJump/2).Draw(r, "start")}
		queues := rapid.IntRange(1, 3).Draw(r, "queues")
		short := rapid.Bool().Draw(r, "short")
		for range rapid.IntRange(1, 120).Draw(r, "frames") {
			s := rapid.SampledFrom([]Space{{1, 2}, {15, 4095}, {0, 0}}).Draw(r, "space")
			n := rapid.IntRange(0, queues-1).Draw(r, "queue")
			seq[s] = walk(r, seq[s])
			a.Queue(n).Add(&Tag{Space: s, Seq: seq[s]}, short)
			a.Queue(n).Publish()
			worlds[s].add(n, seq[s])
		}
		compareSpaces(r, a, worlds)
	})
}

func compareSpaces(r *rapid.T, a *Account, worlds map[Space]*oracle) {
	var sum Totals
	for _, got := range a.Spaces() {
		want := worlds[got.Space].want
		want.Space = got.Space
		if d := cmp.Diff(want, got); d != "" {
			r.Fatalf("(-want +got)\n%s", d)
		}
		sum.Distinct += got.Distinct
		sum.Duplicate += got.Duplicate
		sum.Reordered += got.Reordered
		sum.ReorderedBetween += got.ReorderedBetween
		sum.TooLate += got.TooLate
	}
	if d := cmp.Diff(sum, a.Totals()); d != "" {
		r.Fatalf("totals (-want +got)\n%s", d)
	}
}

// TestAccountInBatches: one queue is exact whenever it publishes.
func TestAccountInBatches(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a, o := NewAccount(), &oracle{}
		q, seq := a.Queue(0), uint64(0)
		for range rapid.IntRange(1, 200).Draw(r, "frames") {
			seq = walk(r, seq)
			q.Add(&Tag{Seq: seq}, false)
			o.add(0, seq)
			if rapid.IntRange(0, 9).Draw(r, "publish") == 0 {
				q.Publish()
			}
		}
		q.Publish()
		compareSpaces(r, a, map[Space]*oracle{{}: o})
	})
}

// TestAccountQueuesAtOnce: several goroutines share a space, each with its part
// of the numbers and duplicates of the others'. They stay together within half
// a window, over several epochs.
func TestAccountQueuesAtOnce(t *testing.T) {
	const queues, chunk, chunks = 4, Window / 4, 14
	a := NewAccount()
	space := Space{3, 9}
	var dups [queues]uint64
	for c := range uint64(chunks) {
		var wg sync.WaitGroup
		for n := range uint64(queues) {
			wg.Go(func() {
				q, rnd := a.Queue(int(n)), rand.New(rand.NewPCG(c, n))
				for i := range uint64(chunk) {
					seq := c*chunk + i
					mine := seq%queues == n
					if again := rnd.IntN(16) == 0; !mine && again {
						dups[n]++
						mine = true
					}
					if mine {
						q.Add(&Tag{Space: space, Seq: seq}, n == 1)
					}
					if i%64 == 63 {
						q.Publish()
					}
				}
			})
		}
		wg.Add(1)
		go func() { defer wg.Done(); _ = a.Totals(); _ = a.Streams() }()
		wg.Wait()
	}
	got := a.Totals()
	if want := dups[0] + dups[1] + dups[2] + dups[3]; got.Distinct != chunk*chunks || got.Duplicate != want ||
		got.TooLate != 0 || got.Corrupt != 0 {
		t.Errorf("%+v; want %d distinct, %d duplicate, nothing else", got, chunk*chunks, want)
	}
}

// TestAccountForgedNumbers: single numbers out of the world change nothing.
func TestAccountForgedNumbers(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a := NewAccount()
		n := rapid.Uint64Range(100, 300).Draw(r, "frames")
		forged := uint64(0)
		for seq := range n {
			q := a.Queue(rapid.IntRange(0, 1).Draw(r, "queue"))
			if rapid.IntRange(0, 20).Draw(r, "forge") == 0 { // far from the last forged one
				forged++
				q.Add(&Tag{Seq: maxJump*2*forged + rapid.Uint64Range(0, 1<<15).Draw(r, "at")}, false)
			}
			q.Add(&Tag{Seq: seq}, false)
			if rapid.Bool().Draw(r, "publish") {
				q.Publish()
			}
		}
		for i := range 2 {
			a.Queue(i).Publish()
		}
		got := a.Spaces()[0]
		if got.Distinct != n || got.HighestSeq != n-1 || got.Implausible != forged || got.TooLate != 0 ||
			a.Totals().Corrupt != forged {
			r.Fatalf("%+v, want %d distinct and %d implausible", got, n, forged)
		}
	})
}

// TestAccountOutage: after a long gap all frames count, on every queue.
func TestAccountOutage(t *testing.T) {
	for _, queues := range []int{1, 2} {
		a := NewAccount()
		const gap = 10 * maxJump
		for i := range uint64(1000) {
			seq := i
			if i >= 500 {
				seq += gap
			}
			a.Queue(int(i)%queues).Add(&Tag{Seq: seq}, false)
			if i == 500 { // the first one comes twice
				a.Queue(int(i)%queues).Add(&Tag{Seq: seq}, false)
			}
		}
		for i := range queues {
			a.Queue(i).Publish()
		}
		got := a.Spaces()[0]
		if got.Distinct != 1000 || got.Duplicate != 1 || got.Implausible != 0 || got.Reordered != 0 || got.HighestSeq != gap+999 {
			t.Errorf("%d queues: %+v, want 1000 distinct, 1 duplicate", queues, got)
		}
	}
}

// TestAccountJumpIsSharedAtOnce: a jump one queue has borne out is no news to
// another, before anything is published; a number repeated bears out nothing.
func TestAccountJumpIsSharedAtOnce(t *testing.T) {
	a := NewAccount()
	x, y := a.Queue(0), a.Queue(1)
	x.Add(&Tag{Seq: 5 * maxJump}, false)
	x.Add(&Tag{Seq: 5 * maxJump}, false)
	x.Publish()
	if got := a.Totals(); got.Implausible != 2 || got.Distinct != 0 {
		t.Errorf("a number repeated: %+v, want 2 implausible", got)
	}
	x.Add(&Tag{Seq: 5*maxJump + 1}, false)
	y.Add(&Tag{Seq: 5*maxJump + 2}, false)
	y.Publish()
	if got := a.Totals(); got.Implausible != 0 || got.Distinct != 1 {
		t.Errorf("on another queue: %+v, want 1 distinct", got)
	}
}

// TestAccountLastFrameAfterOutage: an END bears out a single frame.
func TestAccountLastFrameAfterOutage(t *testing.T) {
	a := NewAccount()
	q := a.Queue(0)
	q.Add(&Tag{Seq: 5 * maxJump}, false)
	q.Publish()
	if got := a.Totals(); got.Implausible != 1 || got.Distinct != 0 {
		t.Errorf("before the END: %+v", got)
	}
	q.End(&Tag{Seq: 5*maxJump + 1})
	q.Publish()
	if got := a.Totals(); got.Implausible != 0 || got.Distinct != 1 || got.EndFrames != 1 || got.Corrupt != 0 {
		t.Errorf("after the END: %+v", got)
	}
	q.Add(&Tag{Seq: 4*maxJump + 100}, false) // covered by the END from the start
	q.Publish()
	if got := a.Totals(); got.Distinct != 2 || got.Reordered != 1 {
		t.Errorf("covered by the END: %+v", got)
	}
}

func TestAccountShortWrap(t *testing.T) {
	a := NewAccount()
	q := a.Queue(0)
	start := uint64(1<<32 - 500)
	for seq := start; seq < start+1000; seq++ {
		q.Add(&Tag{Seq: seq & 0xffffffff}, true)
	}
	q.Add(&Tag{Seq: start & 0xffffffff}, true)
	q.Publish()
	got := a.Spaces()[0]
	if got.Distinct != 1000 || got.HighestSeq != start+999 || got.LowestSeq != start || got.Reordered != 0 || got.Duplicate != 1 {
		t.Errorf("%+v, want 1000 distinct up to %d", got, start+999)
	}
}

func TestAccountEnds(t *testing.T) {
	for name, c := range map[string]struct {
		ends []uint64
		seen bool
		sent uint64
	}{
		"none":             {nil, false, 0},
		"agree":            {[]uint64{10, 10, 10}, true, 10},
		"forged first":     {[]uint64{999, 10, 10}, true, 10},
		"forged last":      {[]uint64{10, 10, 999}, true, 10},
		"disproved":        {[]uint64{9}, false, 0},
		"disproved at 0":   {[]uint64{0}, false, 0},
		"one against one":  {[]uint64{10, 11}, false, 0},
		"more than it got": {[]uint64{11}, true, 11},
	} {
		a := NewAccount()
		q := a.Queue(0)
		for seq := range uint64(10) {
			q.Add(&Tag{Seq: seq}, false)
		}
		for _, e := range c.ends {
			q.End(&Tag{Seq: e})
		}
		q.Publish()
		got := a.Spaces()[0]
		if got.EndSeen != c.seen || got.EndSent != c.sent || got.EndFrames != uint64(len(c.ends)) {
			t.Errorf("%s: %+v, want seen %v, sent %d", name, got, c.seen, c.sent)
		}
	}
}

func TestAccountNothingSent(t *testing.T) {
	a := NewAccount()
	a.Queue(0).End(&Tag{Seq: 0})
	a.Queue(0).Publish()
	if got := a.Spaces(); len(got) != 1 || !got[0].EndSeen || got[0].EndSent != 0 {
		t.Errorf("%+v, want END seen, 0 sent", got)
	}
}

// TestAccountClosesOverEveryClass: each frame is in exactly one total.
func TestAccountClosesOverEveryClass(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a := NewAccount()
		n := rapid.IntRange(0, 300).Draw(r, "frames")
		for range n {
			q := a.Queue(rapid.IntRange(0, 2).Draw(r, "queue"))
			c := Checked{
				Class:      Class(rapid.IntRange(0, 5).Draw(r, "class")),
				Identified: rapid.Bool().Draw(r, "identified"),
				Short:      rapid.Bool().Draw(r, "short"),
				Tag: Tag{Space: Space{uint8(rapid.IntRange(0, 255).Draw(r, "worker")), uint16(rapid.IntRange(0, 1).Draw(r, "stream"))},
					Seq: rapid.OneOf(rapid.Uint64Range(0, 99), rapid.Uint64Range(0, MaxSeq)).Draw(r, "seq")},
			}
			q.Count(&c)
			if rapid.Bool().Draw(r, "publish") {
				q.Publish()
			}
		}
		for i := range 3 {
			a.Queue(i).Publish()
		}
		t := a.Totals()
		sum := t.Distinct + t.Duplicate + t.TooLate + t.Corrupt + t.OtherRun + t.Untagged + t.Unreadable + t.EndFrames
		if sum != uint64(n) || t.CorruptIdentified+t.Implausible > t.Corrupt {
			r.Fatalf("%d frames, %d accounted for: %+v", n, sum, t)
		}
	})
}

func TestAccountSpacesAreBounded(t *testing.T) {
	a := NewAccount()
	q := a.Queue(0)
	for i := range MaxSpaces + 10 {
		q.Add(&Tag{Space: spaceOf(uint16(i))}, false)
		q.Corrupt(true, spaceOf(uint16(i)))
		q.End(&Tag{Space: spaceOf(uint16(i))})
	}
	q.Publish()
	if got := a.Totals(); got.Distinct != MaxSpaces || got.Implausible != 30 || got.Corrupt != MaxSpaces+30 {
		t.Errorf("%+v, want %d spaces and 30 frames implausible", got, MaxSpaces)
	}
}

func TestAccountStreams(t *testing.T) {
	a := NewAccount()
	for _, s := range []Space{{1, 7}, {0, 7}, {0, 2}} {
		q := a.Queue(int(s.Worker))
		q.Add(&Tag{Space: s, Seq: 3}, false)
		if s.Stream == 7 {
			q.End(&Tag{Space: s, Seq: 4})
		}
		q.Publish()
	}
	want := []StreamTotals{
		{Stream: 2, Distinct: 1},
		{Stream: 7, Distinct: 2, EndFrames: 2, EndSent: 8, EndSeen: true},
	}
	if d := cmp.Diff(want, a.Streams()); d != "" {
		t.Error(d)
	}
	if first := a.Queue(1); a.Queue(1) != first {
		t.Error("two accounts for one queue")
	}
	if s := fmt.Sprint(a.Spaces()[1].Space); s != "{0 7}" {
		t.Errorf("spaces are not in order: %v", a.Spaces())
	}
}
