package nettest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pipeWay is a way whose output can be read back, without any interface.
func pipeWay(t *testing.T, rules ...Rule) (*way, func() []uint32) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fds[0]); unix.Close(fds[1]) })
	w := newWay(BoxConfig{Port: defaultPort, Rules: rules}, AtoB, fds[0], fds[0])
	return w, func() (seq []uint32) {
		buf := make([]byte, 4096)
		for {
			n, err := unix.Read(fds[1], buf)
			if err != nil || n == 0 {
				return seq
			}
			seq = append(seq, seqOf(buf[vnetHeader:n]))
		}
	}
}

func (w *way) feed(frames ...uint32) {
	for _, i := range frames {
		w.take(append(make([]byte, vnetHeader), udpFrame(i, 100, defaultPort)...))
		w.release(false)
	}
}

func TestHeldFramesGoOutWhenItIsQuiet(t *testing.T) {
	w, out := pipeWay(t, Rule{Fault: Swap, Frames: []uint64{2}}, Rule{Fault: Delay, Behind: 9, Frames: []uint64{1}})
	w.feed(1, 2)
	if got := out(); len(got) != 0 {
		t.Errorf("%v went out already", got)
	}
	w.release(true)
	if got := out(); !slices.Equal(got, []uint32{1, 2}) || len(w.held) != 0 {
		t.Errorf("%v, %d held", got, len(w.held))
	}
}

// TestTimedFrameIsNotReleasedEarly: a quiet line does not shorten a delay.
func TestTimedFrameIsNotReleasedEarly(t *testing.T) {
	w, out := pipeWay(t, Rule{Fault: Delay, Hold: time.Hour, Frames: []uint64{1}})
	w.feed(1, 2)
	w.release(true)
	if got := out(); !slices.Equal(got, []uint32{2}) {
		t.Errorf("%v, want 2 only", got)
	}
	w.held[0].until = time.Now().Add(-time.Second)
	w.release(false)
	if got := out(); !slices.Equal(got, []uint32{1}) {
		t.Errorf("%v, want 1", got)
	}
}

func TestHeldFrameIsACopy(t *testing.T) {
	w, out := pipeWay(t, Rule{Fault: Swap, Frames: []uint64{1}})
	buf := append(make([]byte, vnetHeader), udpFrame(1, 100, defaultPort)...)
	w.take(buf)
	copy(buf[vnetHeader:], udpFrame(2, 100, defaultPort)) // the next frame in the same buffer
	w.take(buf)
	w.release(false)
	if got := out(); !slices.Equal(got, []uint32{2, 1}) {
		t.Errorf("%v, want 2, 1", got)
	}
}

// TestSendWaitsForRoom: a full ring is not a loss. The pipe takes a few hundred
// frames, and the reader starts only then.
func TestSendWaitsForRoom(t *testing.T) {
	w, out := pipeWay(t)
	const n = 2000
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range uint32(n) {
			w.feed(i + 1)
		}
	}()
	var got []uint32
	for fed := false; !fed; {
		select {
		case <-done:
			fed = true
		case <-time.After(time.Millisecond):
		}
		got = append(got, out()...)
	}
	if err := w.verdict(AtoB); err != nil || len(got) != n || !slices.IsSorted(got) {
		t.Errorf("%d frames came out, want %d; %v", len(got), n, err)
	}
}

func TestSendCountsWhatItLost(t *testing.T) {
	w, _ := pipeWay(t)
	w.out = -1
	for range 9 {
		w.feed(1)
	}
	err := w.verdict(BtoA)
	if err == nil || !errors.Is(err, unix.EBADF) || !strings.Contains(err.Error(), "b to a: lost 9 frames") {
		t.Errorf("%v", err)
	}
	if w.counts.Counted != 9 || w.counts.Sent != 0 || len(w.errs) != 5 {
		t.Errorf("%+v, %d errors kept", w.counts, len(w.errs))
	}
}
