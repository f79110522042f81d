package engine

import "testing"

// A sink sleeps for frames to gather only while they flow, and only where the
// ring holds what comes meanwhile.
func TestGather(t *testing.T) {
	for _, c := range []struct {
		taken uint64
		ring  int
		want  bool
	}{{gatherFrames, gatherRing, true}, {gatherFrames - 1, gatherRing, false}, {gatherFrames, gatherRing / 2, false}} {
		l := newRxLoop(Queue{})
		l.counts.Taken = c.taken
		if got := l.gather(c.ring); got != c.want {
			t.Errorf("%d frames, ring of %d: %v, want %v", c.taken, c.ring, got, c.want)
		}
		if l.gather(c.ring) {
			t.Errorf("%d frames, ring of %d: gathers with nothing new", c.taken, c.ring)
		}
	}
}
