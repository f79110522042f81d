package bpf

import (
	"bytes"
	"fmt"
	"testing"

	"linerate/internal/frame"
)

func newReflect(t testing.TB, cfg SinkConfig) *Reflect {
	t.Helper()
	requireCaps(t)
	r, err := LoadReflect(cfg)
	must(t, err)
	closing(t, r)
	return r
}

const xdpTx = 3

// A reflected frame is good where it comes back, with addresses and ports
// swapped; reflected twice it is what it was.
func TestReflectedFramesVerify(t *testing.T) {
	r := newReflect(t, SinkConfig{Run: testRun})
	for _, c := range []struct {
		size  string
		v6    bool
		vlans int
	}{{"64", false, 0}, {"64", false, 1}, {"65", false, 0}, {"333", false, 2}, {"84", true, 0}, {"76", true, 0}, {"200", true, 1}, {"1501", true, 2}} {
		name := fmt.Sprintf("%s v6 %v vlans %d", c.size, c.v6, c.vlans)
		s := liveStream(t, c.size, c.v6, c.vlans, 3)
		s.ID = 0
		w, err := frame.NewWriter(frame.WriterConfig{Stream: s, Run: testRun}) // its first frame has the identity 0
		must(t, err)
		for range 3 {
			b := make([]byte, w.MaxLen())
			b = b[:w.Next(b, 0, 12345)]
			verdict, back := run(t, r.Program(), b, nil)
			if verdict != xdpTx || bytes.Equal(b, back) || !bytes.Equal(b[:6], back[6:12]) {
				t.Fatalf("%s: verdict %d\n%x\n%x", name, verdict, b, back)
			}
			var was, is frame.Checked
			frame.NewChecker(frame.CheckerConfig{Run: testRun, PayloadCheck: true}).Check(b, &was)
			frame.NewChecker(frame.CheckerConfig{Run: testRun, PayloadCheck: true}).Check(back, &is)
			if is.Class != frame.ClassGood || is != was {
				t.Fatalf("%s: %v %v, %+v, was %+v", name, is.Class, is.Reason, is.Tag, was.Tag)
			}
			if _, again := run(t, r.Program(), back, nil); !bytes.Equal(again, b) {
				t.Fatalf("%s: reflected twice\n%x\n%x", name, b, again)
			}
		}
	}
}

// A damaged frame comes back as damaged.
func TestReflectKeepsDamage(t *testing.T) {
	r := newReflect(t, SinkConfig{Run: testRun})
	w := writer(t, liveStream(t, "128", false, 0, 1))
	b := make([]byte, w.MaxLen())
	b = b[:w.Next(b, 0, 0)]
	for _, at := range []int{50, 41, len(b) - 1, len(b) - 10} { // payload, checksum, tag check, sequence
		bad := bytes.Clone(b)
		bad[at] ^= 1
		_, back := run(t, r.Program(), bad, nil)
		var was, is frame.Checked
		frame.NewChecker(frame.CheckerConfig{Run: testRun}).Check(bad, &was)
		frame.NewChecker(frame.CheckerConfig{Run: testRun}).Check(back, &is)
		if was.Class != frame.ClassCorrupt || is.Class != was.Class || is.Reason != was.Reason {
			t.Errorf("byte %d damaged: %v %v, came back as %v %v", at, was.Class, was.Reason, is.Class, is.Reason)
		}
	}
}

// Reflect judges as the sink does what is ours.
func TestReflectVerdicts(t *testing.T) {
	r := newReflect(t, SinkConfig{})
	// UDP behind extension headers or options is left to the stack, and counted there.
	judgesAsSteer(t, r.Program(), r.QueueCounters, xdpTx, ReasonExtChain)
}
