package bpf

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"
)

func newSink(t testing.TB, cfg SinkConfig) *Sink {
	t.Helper()
	requireCaps(t)
	s, err := LoadSink(cfg)
	must(t, err)
	closing(t, s)
	return s
}

// The sink judges as steer does, but drops what is ours.
func TestSinkVerdicts(t *testing.T) {
	for _, frags := range []bool{false, true} {
		s := newSink(t, SinkConfig{Frags: frags})
		judgesAsSteer(t, s.Program(), s.QueueCounters, xdpDrop)
	}
}

// judgesAsSteer runs the cases of frames: what steer redirects has the verdict
// given, and each frame moves its own counter and no other.
func judgesAsSteer(t *testing.T, prog *ebpf.Program, queues func() ([]QueueCounters, error), ours uint32, leaves ...Reason) {
	t.Helper()
	for _, c := range frameCases(t) {
		reason, want := c.reason, uint32(xdpPass)
		if reason == ReasonRedirected {
			reason, want = ReasonDropped, ours
		}
		var verdict uint32
		moved := counted(t, queues, 0, func() { verdict, _ = run(t, prog, c.frame, nil) })
		for _, r := range leaves {
			if reason == ReasonDropped && moved[r] == 1 {
				reason, want = r, xdpPass
			}
		}
		if d := cmp.Diff(map[Reason]uint64{ReasonSeen: 1, reason: 1}, moved); d != "" || verdict != want {
			t.Errorf("%s: verdict %d, counters (-want +got):\n%s", c.name, verdict, d)
		}
	}
}

// classes runs frames through a fresh sink and returns what it says of queue 0.
func classes(t *testing.T, cfg SinkConfig, frames ...[]byte) (SinkCounters, *Sink) {
	t.Helper()
	s := newSink(t, cfg)
	for _, f := range frames {
		run(t, s.Program(), f, nil)
	}
	all, err := s.Counters()
	must(t, err)
	q := all[0]
	dropZero(q.Sizes)
	dropZero(q.Protocols)
	return q, s
}

func dropZero[K comparable](m map[K]uint64) {
	for k, n := range m {
		if n == 0 {
			delete(m, k)
		}
	}
}

// A size class is judged with the 4 bytes of FCS that XDP does not see.
func TestSinkSizes(t *testing.T) {
	for class, sizes := range map[SizeClass][]int{
		"under_64": {63}, "64": {64}, "65_127": {65, 127}, "128_255": {128, 255}, "256_511": {256, 511},
		"512_1023": {512, 1023}, "1024_1518": {1024, 1518}, "over_1518": {1519, 9018},
	} {
		for _, size := range sizes {
			frame := append(udp4(t, nil), make([]byte, 9018)...)[:size-4]
			q, _ := classes(t, SinkConfig{Match: MatchAll, Frags: true}, frame)
			if d := cmp.Diff(map[SizeClass]uint64{class: 1}, q.Sizes); d != "" || q.Bytes != uint64(size) {
				t.Errorf("%d: %d bytes, classes (-want +got):\n%s", size, q.Bytes, d)
			}
		}
	}
}

func TestSinkProtocols(t *testing.T) {
	tcp6 := patched(udp6(t, nil), 20, 6)
	for p, frame := range map[Protocol][]byte{
		"other":      patched(arp(t), 12, 0x88, 0xcc),
		"arp":        arp(t),
		"ipv4_udp":   udp4(t, longTag(), 7, 8),
		"ipv4_tcp":   tcp(t, nil),
		"ipv4_other": patched(tcp(t, nil), 23, 1),
		"ipv6_udp":   udp6Ext(t, nil, hopByHop),
		"ipv6_tcp":   tcp6,
		"ipv6_other": patched(tcp6, 20, 58),
	} {
		q, _ := classes(t, SinkConfig{Match: MatchAll}, frame, frame)
		if d := cmp.Diff(map[Protocol]uint64{p: 2}, q.Protocols); d != "" {
			t.Errorf("%s (-want +got):\n%s", p, d)
		}
	}
}

// Streams are counted over their workers; untagged frames are in none.
func TestSinkStreams(t *testing.T) {
	long := udp4(t, longTag())
	_, s := classes(t, SinkConfig{Match: MatchAll},
		long, patched(long, 46, 0x51, 0x23), // worker 5
		patched(long, 46, 0x3f, 0xff), patched(long, 46, 0x30, 0x00),
		udp4(t, padded(17, shortTag())), arp(t), patched(long, 42, 0, 0))
	got, err := s.Streams()
	must(t, err)
	want := []StreamCounters{{0, 1, 64}, {5, 1, 64}, {0x123, 2, 128}, {0xfff, 1, 64}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestSinkLose(t *testing.T) {
	long := udp4(t, longTag())
	q, s := classes(t, SinkConfig{LoseBeforeSeen: 1, LoseAfterSeen: 1}, long, long, long)
	streams, err := s.Streams()
	must(t, err)
	if q.Seen() != 2 || q.Dropped() != 1 || q.Bytes != 64 || len(streams) != 1 || streams[0].Frames != 1 {
		t.Errorf("%+v, streams %+v", q, streams)
	}
}
