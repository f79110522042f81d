package bpf

import (
	"bytes"
	"errors"
	"os"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each receive queue has its own socket and counters; a queue that was not
// announced passes its frames.
func TestSteerQueues(t *testing.T) {
	idx := newPair(t, 4, 1500).A.Attrs().Index
	s := newSteer(t, SteerConfig{Queues: 3})
	a, err := Attach(s.Program(), idx, ModeNative) // registers the device's queues for Run
	must(t, err)
	closing(t, a)
	must(t, s.SetSocket(0, xskFD(t)))
	must(t, s.SetSocket(2, xskFD(t)))
	frame := udp4(t, longTag())
	for _, c := range []struct {
		queue, counted int
		reason         Reason
	}{
		{0, 0, ReasonRedirected}, {1, 1, ReasonNoSocket}, {2, 2, ReasonRedirected}, {3, OtherQueues, ReasonNoQueue},
	} {
		md := &xdpMD{DataEnd: uint32(len(frame)), IngressIfindex: uint32(idx), RxQueueIndex: uint32(c.queue)}
		var verdict uint32
		moved := counted(t, s.Counters, c.counted, func() { verdict, _ = run(t, s.Program(), frame, md) })
		if d := cmp.Diff(map[Reason]uint64{ReasonSeen: 1, c.reason: 1}, moved); d != "" || verdict != verdictOf(c.reason) {
			t.Errorf("queue %d: verdict %d, counters (-want +got):\n%s", c.queue, verdict, d)
		}
	}
	var config *ConfigError
	for _, queue := range []int{-1, 3} {
		if err := s.SetSocket(queue, xskFD(t)); !errors.As(err, &config) {
			t.Errorf("socket of queue %d: %v", queue, err)
		}
	}
}

// All 128 queues have a counter.
func TestSteerMaxQueues(t *testing.T) {
	s := newSteer(t, SteerConfig{Queues: MaxQueues})
	must(t, s.SetSocket(MaxQueues-1, xskFD(t)))
	all, err := s.Counters()
	must(t, err)
	if len(all) != MaxQueues+1 || all[127].Queue != 127 || all[128].Queue != OtherQueues || len(all[0].Frames) != len(reasons) {
		t.Errorf("%d entries, last %+v", len(all), all[len(all)-1])
	}
}

// A frame of several buffers is judged by a tag beyond the first one.
func TestSteerFrags(t *testing.T) {
	long, short := padded(8950, longTag()), padded(8950, shortTag())
	for _, stamp := range []bool{false, true} {
		s := newSteer(t, SteerConfig{Frags: true, Stamp: stamp})
		// A kernel without fragments must not meet the other variant, nor the reverse.
		if len(s.coll.Programs) != 1 {
			t.Errorf("loaded %v", s.coll.Programs)
		}
		must(t, s.SetSocket(0, xskFD(t)))
		for _, c := range []frameCase{
			{"long", udp4(t, long), ReasonRedirected},
			{"short", udp4(t, short), ReasonRedirected},
			{"IPv6", udp6(t, long), ReasonRedirected},
			{"untagged", udp4(t, make([]byte, 8950)), ReasonNoTag},
			{"cut", udp4(t, long)[:8991], ReasonTruncated},
			{"cut short", udp4(t, short)[:8991], ReasonTruncated},
			{"cut in the first buffer", udp4(t, long)[:3000], ReasonTruncated},
		} {
			checkFragsFrame(t, s, c, stamp)
		}
		checkBoundary(t, s)
	}
}

func checkFragsFrame(t *testing.T, s *Steer, c frameCase, stamped bool) {
	t.Helper()
	var verdict uint32
	var out []byte
	moved := counted(t, s.Counters, 0, func() { verdict, out = run(t, s.Program(), c.frame, nil) })
	if d := cmp.Diff(map[Reason]uint64{ReasonSeen: 1, c.reason: 1}, moved); d != "" || verdict != verdictOf(c.reason) {
		t.Errorf("%s: verdict %d, counters (-want +got):\n%s", c.name, verdict, d)
	}
	if stamped && c.reason == ReasonRedirected {
		out = out[StampBytes:]
	}
	if !bytes.Equal(out, c.frame) {
		t.Errorf("%s: the frame changed", c.name)
	}
}

// checkBoundary moves the tag over every place where buffers can meet.
func checkBoundary(t *testing.T, s *Steer) {
	t.Helper()
	for n := 3300; n < 4200; n++ {
		frame := udp4(t, padded(n, longTag()))
		if verdict, _ := run(t, s.Program(), frame, nil); verdict != xdpRedirect {
			t.Errorf("payload of %d: verdict %d", n, verdict)
		}
	}
}

// Loading, attaching and closing leaves no descriptor behind.
func TestNoDescriptorLeak(t *testing.T) {
	idx := newPair(t, 1, 1500).A.Attrs().Index
	cycle := func() {
		steer, err := LoadSteer(SteerConfig{Queues: 4})
		must(t, err)
		sink, err := LoadSink(SinkConfig{})
		must(t, err)
		pass, err := LoadPass()
		must(t, err)
		trace, err := LoadTrace([]int{idx})
		must(t, err)
		must(t, trace.Attach())
		must(t, trace.AttachDrops())
		a, err := Attach(steer.Program(), idx, ModeNative)
		must(t, err)
		_, err = Attach(pass.Program(), idx, ModeNative)
		if err == nil {
			t.Fatal("attached twice")
		}
		for _, c := range []interface{ Close() error }{a, steer, sink, pass, trace, a, steer, sink, pass, trace} {
			must(t, c.Close())
		}
	}
	cycle() // whatever is opened once for good
	// The garbage collector would close what was forgotten.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	before := descriptors(t)
	for range 30 {
		cycle()
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
	wantXDP(t, idx, ModeNone)
}

func descriptors(t *testing.T) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(fds)
}
