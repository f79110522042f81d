package bpf

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"linerate/internal/frame"
	"linerate/internal/meter"
)

func asConfig(err error, e **ConfigError) bool { return errors.As(err, e) }

func newVerify(t testing.TB, cfg VerifyConfig) *Verify {
	t.Helper()
	requireCaps(t)
	v, err := LoadVerify(cfg)
	must(t, err)
	closing(t, v)
	must(t, v.Arm(true))
	return v
}

// Verify judges as the sink does what is ours and what is not.
func TestVerifyVerdicts(t *testing.T) {
	v := newVerify(t, VerifyConfig{})
	judgesAsSteer(t, v.Program(), v.QueueCounters, xdpDrop)
	must(t, v.Arm(false))
	moved := counted(t, v.QueueCounters, 0, func() { run(t, v.Program(), udp4(t, longTag()), nil) })
	if d := cmp.Diff(map[Reason]uint64{ReasonSeen: 1, ReasonNoSocket: 1}, moved); d != "" {
		t.Errorf("not armed (-want +got):\n%s", d)
	}
}

// The program and the judge of what it finds doubtful come to what the userspace
// verifier comes to alone, on equal inputs: good frames of several stacks,
// duplicates, swaps, jumps, and every kind of damage.
func TestVerifyIsTheCheckersEqual(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 1))
		frames := traffic(t, rng)
		v := newVerify(t, VerifyConfig{SinkConfig: SinkConfig{Match: MatchAll, Run: testRun}})
		alone, beside := frame.NewAccount(), frame.NewAccount()
		q, doubtful := alone.Queue(0), beside.Queue(0)
		one, two := frame.NewChecker(frame.CheckerConfig{Run: testRun}), frame.NewChecker(frame.CheckerConfig{Run: testRun})
		var c frame.Checked
		for _, b := range frames {
			one.Check(b, &c)
			q.Count(&c)
			run(t, v.Program(), b, nil)
			judged(t, v, func(b []byte) {
				two.Check(b, &c)
				doubtful.Count(&c)
			})
		}
		q.Publish()
		doubtful.Publish()
		got := beside.Totals()
		for _, s := range programSpaces(t, v) {
			got.AddSpace(s)
		}
		want := alone.Totals()
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("seed %d (-userspace +program):\n%s", seed, d)
		}
		if want.Distinct < 500 || want.Duplicate == 0 || want.Reordered == 0 || want.Corrupt == 0 || want.TooLate == 0 {
			t.Errorf("seed %d: the traffic lacks something: %+v", seed, want)
		}
		all, err := v.Counters()
		must(t, err)
		if all[0].Good < want.Distinct*9/10 {
			t.Errorf("seed %d: the program itself found only %d of %d good", seed, all[0].Good, want.Distinct)
		}
	}
}

// judged takes what the program found doubtful.
func judged(t *testing.T, v *Verify, f func(b []byte)) {
	t.Helper()
	for {
		_, n, b, ok, err := v.Doubtful(0)
		must(t, err)
		if !ok {
			return
		}
		if n != len(b) {
			t.Errorf("a frame of %d bytes is shown as %d", n, len(b))
		}
		f(b)
	}
}

func programSpaces(t *testing.T, v *Verify) (all []frame.SpaceTotals) {
	t.Helper()
	views, err := v.Views()
	must(t, err)
	for _, w := range views {
		all = append(all, frame.SpaceTotals{Space: frame.SpaceOf(w.Key), Distinct: w.Distinct, Duplicate: w.Duplicate,
			Reordered: w.Reordered, ReorderedBetween: w.ReorderedBetween, TooLate: w.TooLate, Implausible: w.Implausible})
	}
	return all
}

// traffic is frames of four stacks in random disorder.
func traffic(t *testing.T, rng *rand.Rand) (all [][]byte) {
	t.Helper()
	for i, c := range []struct {
		size         string
		v6           bool
		vlans, flows int
	}{{"64", false, 0, 3}, {"333", false, 1, 1}, {"84", true, 0, 9}, {"1518", true, 2, 1}} {
		s := liveStream(t, c.size, c.v6, c.vlans, c.flows)
		s.ID = uint16(i)
		w := writer(t, s)
		for k := range 200 {
			b := make([]byte, w.MaxLen())
			b = b[:w.Next(b, 0, 0)]
			all = append(all, b)
			switch {
			case k == 150: // 65,536 ahead, which takes the place of one that then comes
				late := b
				for range 65535 {
					w.Next(make([]byte, w.MaxLen())[:w.MaxLen()], 0, 0)
				}
				next := make([]byte, w.MaxLen())
				all = append(all, next[:w.Next(next, 0, 0)], late)
			case rng.IntN(10) == 0:
				all = append(all, b)
			case rng.IntN(10) == 0:
				bad := append([]byte(nil), b...)
				bad[rng.IntN(len(bad))] ^= 1 << rng.IntN(8)
				all = append(all, bad)
			case rng.IntN(20) == 0:
				all = append(all, b[:len(b)-rng.IntN(40)])
			case k == 190:
				end := make([]byte, w.MaxLen())
				all = append(all, end[:w.End(end, w.Seq(), 0)])
			}
			if n := len(all); n > 3 && rng.IntN(8) == 0 {
				all[n-1], all[n-2] = all[n-2], all[n-1]
			}
		}
	}
	return all
}

// A run that was not known is judged outside until it is.
func TestVerifyLearnsTheRun(t *testing.T) {
	v := newVerify(t, VerifyConfig{})
	w := writer(t, liveStream(t, "64", false, 0, 1))
	next := func() {
		b := make([]byte, w.MaxLen())
		run(t, v.Program(), b[:w.Next(b, 0, 0)], nil)
	}
	next()
	shown := 0
	judged(t, v, func([]byte) { shown++ })
	must(t, v.SetRun(testRun))
	next()
	judged(t, v, func([]byte) { shown += 10 })
	all, err := v.Counters()
	must(t, err)
	if shown != 1 || all[0].Good != 1 || all[0].Judged != 1 {
		t.Errorf("shown %d, good %d, judged %d, want 1 each", shown, all[0].Good, all[0].Judged)
	}
}

// A stamped frame is timed, 1 in so many.
func TestVerifyTimes(t *testing.T) {
	v := newVerify(t, VerifyConfig{SinkConfig: SinkConfig{Run: testRun}, LatencyEvery: 4})
	w, err := frame.NewWriter(frame.WriterConfig{Stream: liveStream(t, "64", false, 0, 1), Run: testRun, StampEvery: 1})
	must(t, err)
	for range 8 {
		b := make([]byte, w.MaxLen())
		run(t, v.Program(), b[:w.Next(b, 0, monotonicNs(t)-uint64(time.Second))], nil)
	}
	h := meter.NewHistogram()
	must(t, v.Latency(h.AddCell))
	if l, _ := h.Summary(); l.Count != 2 || l.Min < 999e6 || l.Max > 10e9 || l.Mean < 999e6 || l.Mean > float64(l.Max) {
		t.Errorf("%+v, want 2 times of a second and little more", l)
	}
}

// Frames of more sequence spaces than there is room for have a name.
func TestVerifyRunsOutOfSpaces(t *testing.T) {
	v := newVerify(t, VerifyConfig{SinkConfig: SinkConfig{Run: testRun}, Spaces: 2})
	for id := range uint16(4) {
		s := liveStream(t, "64", false, 0, 1)
		s.ID = id
		w := writer(t, s)
		b := make([]byte, w.MaxLen())
		run(t, v.Program(), b[:w.Next(b, 0, 0)], nil)
	}
	l, err := v.Losses()
	must(t, err)
	if views := programSpaces(t, v); len(views) != 2 || l.NoSpace != 2 {
		t.Errorf("%d spaces, %d frames without, want 2 and 2", len(views), l.NoSpace)
	}
}
