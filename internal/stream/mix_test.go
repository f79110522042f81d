package stream

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"linerate/internal/wire"
)

const tenG = wire.Speed(10_000_000_000)

// streamsOf reads streams of 64-byte frames from the rest of their keys.
func streamsOf(t testing.TB, keys ...string) []*Stream {
	t.Helper()
	var b strings.Builder
	b.WriteString("streams:\n")
	for i, k := range keys {
		fmt.Fprintf(&b, "  - {name: s%d, layers: [eth, ipv4, udp], frame: 64, %s}\n", i, k)
	}
	f, err := Parse("f", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return f.Streams
}

type sent struct {
	at     uint64
	stream int
	k      uint64
}

func take(m *Mix, n int) (all []sent) {
	for range n {
		stream, k, at, ok := m.Next()
		if !ok {
			break
		}
		all = append(all, sent{at, stream, k})
	}
	return all
}

func mustMix(t testing.TB, streams []*Stream, worker, workers int) *Mix {
	t.Helper()
	m, err := NewMix(streams, tenG, worker, workers)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// byHand is what a Mix has to give, computed frame by frame and sorted.
func byHand(streams []*Stream, frames int) (all []sent) {
	for i, s := range streams {
		pps := s.Rate.Value
		for k := range uint64(frames) {
			at := float64(s.Start) + float64(k)*(1e9/pps)
			if s.Burst.Size != 0 {
				at += float64(k/s.Burst.Size) * float64(s.Burst.Gap)
			}
			if s.Count != 0 && k >= s.Count || s.Time != 0 && uint64(at) >= uint64(s.Start+s.Time) {
				break
			}
			all = append(all, sent{uint64(at), i, k})
		}
	}
	slices.SortFunc(all, func(a, b sent) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.stream, b.stream), cmp.Compare(a.k, b.k))
	})
	return all
}

var mixed = []string{
	"rate: 1000pps", "rate: 3333pps, start: 1ms", "rate: 1000pps, count: 7", "rate: 100kpps, burst: {size: 5, gap: 3ms}",
	"rate: 7pps", "rate: 1000pps, time: 20ms", "rate: 1Mpps, count: 30, start: 5ms", "rate: 999.5pps, burst: {size: 2, gap: 1ms}, start: 2ms",
}

// The order and the times are those computed by hand; and workers that share
// the streams together send the same.
func TestMixIsThatByHand(t *testing.T) {
	const frames = 300
	streams := streamsOf(t, mixed...)
	want := byHand(streams, 10*frames)[:frames]
	if diff := firstDifference(take(mustMix(t, streams, 0, 1), frames), want); diff != "" {
		t.Error(diff)
	}
	var shared []sent
	for worker := range 3 {
		shared = append(shared, take(mustMix(t, streams, worker, 3), frames)...)
	}
	slices.SortFunc(shared, func(a, b sent) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.stream, b.stream), cmp.Compare(a.k, b.k))
	})
	if diff := firstDifference(shared[:frames], want); diff != "" {
		t.Error("three workers:", diff)
	}
}

func firstDifference(got, want []sent) string {
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			return fmt.Sprintf("frame %d of %d: got %v, want %v", i, len(got), got[min(i, len(got)-1)], want[i])
		}
	}
	return ""
}

// A thousand streams of different rates each get theirs, exactly, and all end.
func TestMixOfAThousand(t *testing.T) {
	var keys []string
	for i := range MaxStreams {
		keys = append(keys, fmt.Sprintf("rate: %dpps, time: 1s", 1+i))
	}
	m := mustMix(t, streamsOf(t, keys...), 0, 1)
	if m.Duration() != time.Second {
		t.Errorf("duration %v", m.Duration())
	}
	got, last := make([]int, MaxStreams), uint64(0)
	for {
		next, _ := m.Peek()
		stream, k, at, ok := m.Next()
		if !ok {
			break
		}
		if at < last || at != next || k != uint64(got[stream]) {
			t.Fatalf("stream %d: frame %d at %d, after %d; peeked %d, had %d", stream, k, at, last, next, got[stream])
		}
		last = at
		got[stream]++
	}
	for i, n := range got {
		if n != 1+i && n != 2+i { // a last frame may round down to just before the end
			t.Errorf("stream %d: %d frames, want %d", i, n, 1+i)
		}
	}
	if _, ok := m.Peek(); ok {
		t.Error("a frame after the end")
	}
}

// A year of frames does not drift.
func TestMixDoesNotDrift(t *testing.T) {
	m := mustMix(t, streamsOf(t, "rate: 3Mpps"), 0, 1)
	m.plans[0].k = 3_000_000 * 86400
	m.heap[0].at = m.plans[0].due()
	if _, _, at, _ := m.Next(); math.Abs(float64(at)-86400e9) > 100 {
		t.Errorf("after a day: %d ns", at)
	}
}

// Streams of rate max share what is left, and alone take turns by their share
// of the wire.
func TestMixRateMax(t *testing.T) {
	m := mustMix(t, streamsOf(t, "rate: 50%", "rate: max", "rate: max"), 0, 1)
	var n [3]int
	for _, s := range take(m, 4000) {
		n[s.stream]++
	}
	if m.Unlimited() || n[0] < 1999 || n[0] > 2001 || n[1] < 999 || n[1] > 1001 {
		t.Errorf("frames %v, want 2000, 1000, 1000", n)
	}
	streams := streamsOf(t, "rate: max", "rate: max")
	streams[1].sizes = []wire.FrameLen{64 + 84}
	if m = mustMix(t, streams, 0, 1); !m.Unlimited() {
		t.Error("not unlimited")
	}
	n = [3]int{}
	for _, s := range take(m, 3000) {
		n[s.stream]++
	}
	if n[0] < 1999 || n[0] > 2001 {
		t.Errorf("frames %v, want 2000, 1000", n)
	}
}

func TestMixRefusals(t *testing.T) {
	for _, c := range []struct {
		speed wire.Speed
		keys  []string
		says  string
	}{
		{tenG, []string{"rate: 60%", "rate: 60%"}, "together ask for 120 % of the line"},
		{tenG, []string{"rate: 100%", "rate: max"}, "leave nothing"},
		{0, []string{"rate: 1pps", "rate: max"}, "is unknown"},
		{0, []string{"rate: 1%"}, "link speed"},
		{tenG, []string{"rate: 20Mpps"}, "above line rate"},
		{tenG, []string{"rate: 60%, time: 1s", "rate: 60%, start: 999ms"}, "120 %"},
		{tenG, []string{"rate: 60%, time: 1s", "rate: 60%, start: 1s"}, ""},
		{tenG, []string{"rate: 60%, count: 100", "rate: 60%, start: 1s"}, ""},
		{0, []string{"rate: 20Mpps", "rate: 20Mpps"}, ""},
	} {
		_, err := NewMix(streamsOf(t, c.keys...), c.speed, 0, 1)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v, want %q", c.keys, err, c.says)
		}
	}
	_, err := NewMix(streamsOf(t, "rate: 20Mpps"), tenG, 0, 1)
	if !errors.As(err, new(*wire.AboveLineRateError)) {
		t.Errorf("%T", err)
	}
}

func manyStreams(t testing.TB, n int) []*Stream {
	var keys []string
	for i := range n {
		keys = append(keys, fmt.Sprintf("rate: %dpps", 100+7*i))
	}
	return streamsOf(t, keys...)
}

func TestMixAllocatesNothing(t *testing.T) {
	m := mustMix(t, manyStreams(t, 1000), 0, 1)
	if n := testing.AllocsPerRun(5000, func() { m.Next() }); n != 0 {
		t.Errorf("%v allocations per frame", n)
	}
}

func BenchmarkMix(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("streams=%d", n), func(b *testing.B) {
			m := mustMix(b, manyStreams(b, n), 0, 1)
			b.ReportAllocs()
			for b.Loop() {
				m.Next()
			}
		})
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, c := range []struct{ name, layers, frame string }{
		{"udp4-64", "[eth, ipv4, udp]", "64"},
		{"udp4-64-flows=65536", "[eth, ipv4, udp: {src: {from: 0, count: 256}, dst: {from: 0, count: 256, every: 256}}]", "64"},
		{"udp6-1518", "[eth, ipv6, udp]", "1518"},
		{"vxlan-tcp-150", "[eth, ipv4, udp: {src: {from: 1, to: 999, random: true}}, vxlan, eth, ipv6, tcp: {seq: {from: 0, count: 1000}}]", "150"},
	} {
		b.Run(c.name, func(b *testing.B) {
			f, err := Parse("f", []byte("streams: [{name: a, layers: "+c.layers+", frame: "+c.frame+"}]"))
			if err != nil {
				b.Fatal(err)
			}
			w := NewBuilder(f.Streams[0], testConfig)
			buf := make([]byte, w.MaxLen())
			b.ReportAllocs()
			for k := uint64(0); b.Loop(); k++ {
				w.Build(buf, k, k, k)
			}
		})
	}
}

// What is owed at a time is what Next would give until then, bursts, starts,
// ends and workers included.
func TestMixOwed(t *testing.T) {
	streams := streamsOf(t, "rate: 1003pps, burst: {size: 7, gap: 3ms}, time: 2s", "rate: 17pps, start: 500ms, count: 20", "rate: 400pps")
	for worker := range 3 {
		for _, at := range []uint64{0, 1, 499e6, 500e6, 1e9, 2e9 - 1, 2e9, 5e9} {
			asked, counted := mustMix(t, streams, worker, 3), mustMix(t, streams, worker, 3)
			for range 11 { // some are gone already
				asked.Next()
				counted.Next()
			}
			n := uint64(0)
			for next, ok := counted.Peek(); ok && next <= at; next, ok = counted.Peek() {
				counted.Next()
				n++
			}
			if got := asked.Owed(at); got != n {
				t.Errorf("worker %d, %d ns: owed %d, want %d", worker, at, got, n)
			}
		}
	}
}
