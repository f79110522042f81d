package engine

import (
	"errors"
	"testing"

	"linerate/bpf"
)

func TestSocketMode(t *testing.T) {
	for _, c := range []struct {
		zc   bool
		m    XDPMode
		want string
	}{{true, Native, "zerocopy"}, {false, Native, "copy"}, {false, Generic, "generic"}} {
		if got := socketMode(c.zc, c.m); got != c.want {
			t.Errorf("socketMode(%v, %s) = %s, want %s", c.zc, c.m, got, c.want)
		}
	}
}

func TestProgramCounts(t *testing.T) {
	c := programCounts([]bpf.QueueCounters{
		{Queue: 0, Frames: map[bpf.Reason]uint64{bpf.ReasonNoMeta: 2, bpf.ReasonOtherRun: 5}},
		{Queue: 7, Frames: map[bpf.Reason]uint64{bpf.ReasonNoMeta: 3}},
	})
	if c.NoMeta != 5 || c.Passed[0][string(bpf.ReasonOtherRun)] != 5 || c.Passed[7][string(bpf.ReasonOtherRun)] != 0 {
		t.Errorf("%+v", c)
	}
	for _, r := range bpf.PassReasons() {
		if _, ok := c.Passed[7][string(r)]; !ok {
			t.Errorf("no row for %s", r)
		}
	}
	if len(c.Seen) != 2 || len(c.Redirected) != 2 || len(c.Accounted) != 2 {
		t.Errorf("%+v", c)
	}
}

func TestCountsAfterClose(t *testing.T) {
	for _, r := range []Receiver{&xskReceiver{}, &dropReceiver{}, &asavieReceiver{}} {
		if _, err := r.Program(); !errors.Is(err, ErrClosed) {
			t.Errorf("%T: %v", r, err)
		}
	}
}
