package stream

import (
	"testing"

	"linerate/internal/frame"
)

// Two workers send three streams, one of them without tag, into the same
// buffers; the receiver has every frame once, and the count of every space.
func TestMixWriter(t *testing.T) {
	streams := streamsOf(t, "rate: 1Mpps, count: 1000", "rate: 300kpps, count: 301, start: 1us", "rate: 1Mpps, count: 50, tag: false")
	account := frame.NewAccount()
	q := account.Queue(0)
	check := frame.NewChecker(frame.CheckerConfig{Run: 5})
	for worker := range uint8(2) {
		w, err := NewMixWriter(streams, tenG, Config{Run: 5, Worker: worker}, 2)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, w.MaxLen())
		if w.Next(buf[:1], 0, 1) != 0 || w.Seq() != 0 {
			t.Error("a short buffer used a frame up")
		}
		count := func(n int) {
			var out frame.Checked
			check.Check(buf[:n], &out)
			q.Count(&out)
		}
		n := 0
		for size := w.Next(buf, 0, 1); size != 0; size = w.Next(buf, 0, 1) {
			count(int(size))
			n++
		}
		if w.Seq() != uint64(n) || w.Ends() != 2 {
			t.Errorf("%d frames, Seq %d, %d ends", n, w.Seq(), w.Ends())
		}
		for i := range w.Ends() {
			count(int(w.End(buf, i, 0, 1)))
		}
		if space, sent := w.Space(0); sent != 500 || space != (frame.Space{Worker: worker}) {
			t.Errorf("space %v sent %d", space, sent)
		}
	}
	q.Publish()
	for i, want := range []uint64{1000, 301} {
		s := account.Streams()[i]
		if s.Distinct != want || s.Duplicate+s.Reordered != 0 || !s.EndSeen || s.EndSent != want {
			t.Errorf("stream %d: %+v, want %d", i, s, want)
		}
	}
	if got := account.Totals(); got.Untagged != 50 || got.Corrupt != 0 {
		t.Errorf("%+v", got)
	}
}

func TestMixWriterAllocatesNothing(t *testing.T) {
	w, err := NewMixWriter(manyStreams(t, 1000), tenG, testConfig, 1)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, w.MaxLen())
	if n := testing.AllocsPerRun(5000, func() { w.Next(buf, 0, 1) }); n != 0 {
		t.Errorf("%v allocations per frame", n)
	}
}
