package frame

import (
	"encoding/binary"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"linerate/internal/wire"
)

// cable is a network that does to frames what it is told, and counts it.
type cable struct {
	queues  [3]*Checker
	account *Account
	want    Totals
	sent    map[Space]uint64
	lost    map[Space]uint64
}

func newCable(run Run) *cable {
	c := &cable{account: NewAccount(), sent: map[Space]uint64{}, lost: map[Space]uint64{}}
	for i := range c.queues {
		c.queues[i] = NewChecker(CheckerConfig{Run: run, PayloadCheck: true})
	}
	return c
}

func (c *cable) deliver(queue int, b []byte) Class {
	var out Checked
	c.queues[queue].Check(b, &out)
	c.account.Queue(queue).Count(&out)
	return out.Class
}

// carry delivers a frame, or spoils it first. The frame is of space s.
func (c *cable) carry(r *rapid.T, s Space, b []byte, l4 int) {
	queue := rapid.IntRange(0, 2).Draw(r, "queue")
	c.sent[s]++
	switch rapid.IntRange(0, 11).Draw(r, "fate") {
	case 0: // dropped
		c.lost[s]++
	case 1: // twice, the second on any queue
		c.deliver(queue, b)
		c.deliver(rapid.IntRange(0, 2).Draw(r, "second queue"), b)
		c.want.Distinct++
		c.want.Duplicate++
	case 2: // a wrong bit in UDP header or payload, but for the tag's magic
		bit := rapid.IntRange(8*l4, 8*len(b)-1).Draw(r, "bit")
		b[bit/8] ^= 0x80 >> (bit % 8)
		switch c.deliver(queue, b) {
		case ClassCorrupt:
			c.want.Corrupt++
		case ClassUntagged: // the magic is gone: lost, and foreign
			c.want.Untagged++
		}
		c.lost[s]++
	case 3: // cut short
		c.deliver(queue, b[:rapid.IntRange(0, len(b)-1).Draw(r, "length")])
		c.want.Unreadable++
		c.lost[s]++
	default:
		c.deliver(queue, b)
		c.want.Distinct++
	}
}

// TestPathCloses: workers, streams and queues, with a cable that drops, doubles,
// spoils and cuts. Every frame is accounted for, and what is missing at the end
// is what the cable took.
func TestPathCloses(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := newCable(77)
		var writers []*Writer
		for id, sizes := range []string{"64", "imix", "80-90"} {
			for worker := range uint8(2) {
				s := testStream(t, sizes, id == 2, id%2)
				s.ID = uint16(id)
				s.Flows.Count = 5
				writers = append(writers, mustWriter(t,
					WriterConfig{Stream: s, Run: 77, Worker: worker, Workers: 2, StampEvery: 4}))
			}
		}
		bufs := make([][]byte, len(writers))
		for i, w := range writers {
			bufs[i] = make([]byte, w.MaxLen())
		}
		for range rapid.IntRange(0, 150).Draw(r, "frames") {
			i := rapid.IntRange(0, len(writers)-1).Draw(r, "writer")
			n := writers[i].Next(bufs[i], 0, 4096)
			c.carry(r, writers[i].Space(), bufs[i][:n], writers[i].l4)
		}
		for i, w := range writers {
			for range 3 {
				c.deliver(i%3, bufs[i][:w.End(bufs[i], w.Seq(), 0)])
				c.want.EndFrames++
			}
		}
		c.close(r)
	})
}

func (c *cable) close(r *rapid.T) {
	for i := range c.queues {
		c.account.Queue(i).Publish()
	}
	got := c.account.Totals()
	// Order is the cable's free choice of queues; identity depends on the bit.
	c.want.Reordered, c.want.ReorderedBetween = got.Reordered, got.ReorderedBetween
	c.want.CorruptIdentified = got.CorruptIdentified
	if d := cmp.Diff(c.want, got); d != "" {
		r.Fatalf("totals (-want +got)\n%s", d)
	}
	for _, s := range c.account.Spaces() {
		if !s.EndSeen || s.EndSent != c.sent[s.Space] || s.EndSent-s.Distinct != c.lost[s.Space] {
			r.Fatalf("%+v: want %d sent, %d not received", s, c.sent[s.Space], c.lost[s.Space])
		}
	}
}

// TestTagRoundTrip: the plain way of writing a tag, and reading it back.
func TestTagRoundTrip(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		want := Tag{
			Run:   Run(rapid.Uint16().Draw(r, "run")),
			Space: spaceOf(rapid.Uint16().Draw(r, "space")),
			Seq:   rapid.Uint64Range(0, MaxSeq).Draw(r, "seq"), TimeNs: rapid.Uint64Range(0, 1<<38-1).Draw(r, "time") &^ 63,
			Flags: rapid.Byte().Draw(r, "flags"),
		}
		var got Tag
		b := AppendTag(nil, want, false, make([]byte, 12))
		if got.setLong(binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])); got != want || len(b) != LongTagBytes {
			r.Fatalf("long: %+v, want %+v", got, want)
		}
		b = AppendTag(nil, want, true, make([]byte, 12))
		want = Tag{Run: want.Run & 0xff, Space: Space{want.Worker, want.Stream & 15}, Seq: want.Seq & 0xffffffff, Flags: FlagShort}
		if got.setShort(binary.BigEndian.Uint64(b)); got != want || len(b) != ShortTagBytes {
			r.Fatalf("short: %+v, want %+v", got, want)
		}
	})
}

// TestAdoptionAtOnce: queues that see different runs first agree on one.
func TestAdoptionAtOnce(t *testing.T) {
	s := testStream(t, "64", false, 0)
	frames := [2][]byte{oneFrame(t, s, 1), oneFrame(t, s, 2)}
	for range 50 {
		var a Adoption
		var good [4][2]int
		var wg sync.WaitGroup
		for q := range good {
			wg.Go(func() {
				k := NewChecker(CheckerConfig{Adopt: &a})
				for i := range 20 {
					var c Checked
					if k.Check(frames[(i+q)%2], &c); c.Class == ClassGood {
						good[q][(i+q)%2]++
					}
				}
			})
		}
		wg.Wait()
		run, _ := a.Run()
		for q, n := range good {
			if n[run-1] < 9 || n[2-run] != 0 {
				t.Fatalf("run %d adopted; queue %d found %v frames of run 1 and 2 good", run, q, n)
			}
		}
	}
}

func ExampleWriter() {
	sizes, _ := wire.ParseSizes("64")
	s := Stream{ID: 1, Sizes: sizes, Stack: Stack{Src: addr("198.18.0.1"), Dst: addr("198.18.0.2"), SrcPort: 49184, DstPort: 7777}}
	w, err := NewWriter(WriterConfig{Stream: s, Run: 0x2a})
	if err != nil {
		fmt.Println(err)
		return
	}
	buf, prev := make([]byte, w.MaxLen()), wire.BufLen(0)
	k, account := NewChecker(CheckerConfig{Run: 0x2a}), NewAccount()
	queue := account.Queue(0)
	var c Checked
	for range 10 {
		prev = w.Next(buf, prev, 0)
		if w.Seq() == 4 {
			continue // this one is lost
		}
		k.Check(buf[:prev], &c)
		queue.Count(&c)
	}
	k.Check(buf[:w.End(buf, w.Seq(), 0)], &c)
	queue.Count(&c)
	queue.Publish()
	space := account.Spaces()[0]
	fmt.Println(s.Describe())
	fmt.Println("sent", space.EndSent, "distinct", space.Distinct, "lost", space.EndSent-space.Distinct)
	// Output:
	// stream 1: ipv4/udp 198.18.0.1:49184 -> 198.18.0.2:7777, frame 64
	// sent 10 distinct 9 lost 1
}
