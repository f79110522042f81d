package trial

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"linerate/bpf"
	"linerate/internal/engine"
	"linerate/internal/lab/veth"
	"linerate/internal/nettest"
	"linerate/internal/pcap"
)

// saveFlows writes a capture of n frames of so many bytes, 1 us apart, in 16
// flows: the form that every replayer reads.
func saveFlows(t testing.TB, n, size int) string {
	t.Helper()
	b := []byte{0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0}
	le := binary.LittleEndian
	for i := range n {
		f := bytes.Repeat([]byte{byte(i)}, size)
		copy(f, "\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01\x08\x00\x45\x00\x00\x00\x00\x00\x00\x00\x40\x11\x00\x00\xc6\x12\x00\x01\xc6\x12\x00\x02")
		binary.BigEndian.PutUint16(f[16:], uint16(size-14))
		binary.BigEndian.PutUint16(f[34:], uint16(1000+i%16))
		binary.BigEndian.PutUint16(f[36:], 7777)
		binary.BigEndian.PutUint32(f[38:], uint32(size-34)<<16)
		b = le.AppendUint32(le.AppendUint32(b, 1_700_000_000), uint32(i))
		b = append(le.AppendUint32(le.AppendUint32(b, uint32(size)), uint32(size)), f...)
	}
	path := filepath.Join(t.TempDir(), "flows.pcap")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// replayOf is a trial that sends a capture without end into XDP_DROP.
func replayOf(b *testing.B, lab *veth.Lab, path string, stream bool) Spec {
	b.Helper()
	s := openSpec(b, engine.XSK, lab, "64", 1)
	r, err := pcap.Load(pcap.Config{Path: path, Workers: 1, Stream: stream})
	if err != nil {
		b.Fatal(err)
	}
	s.Replay = &Replay{Replay: r, Path: path, Stream: stream}
	s.Steer.Match, s.Steer.Run = bpf.MatchAll, 0
	return s
}

// tcpreplay sends the capture from memory, as fast as it can, from the same
// core as our sender.
func tcpreplay(b *testing.B, path string, lab *veth.Lab, file string) float64 {
	b.Helper()
	cmd := exec.Command("taskset", "-c", "0", path, "-K", "--topspeed", "--loop=100000000", "-i", veth.Interface, file)
	s := openSpec(b, engine.XSK, lab, "64", 1)
	s.Tx, s.Steer.Match, s.Steer.Run = nil, bpf.MatchAll, 0
	return receiving(b, s, cmd, lab)
}

// BenchmarkVethReplay sets a replay from memory beside tcpreplay, where that is
// installed, beside one from disk, and beside frames that we write ourselves.
func BenchmarkVethReplay(b *testing.B) {
	nettest.Require(b, nettest.Root, nettest.AFXDP)
	for _, c := range []struct {
		frame string
		size  int
	}{{"64", 60}, {"1518", 1514}} {
		b.Run(c.frame, func(b *testing.B) {
			lab, file := nettest.Lab(b, veth.Config{}), saveFlows(b, 10_000, c.size)
			names := []string{"replay", "written", "streamed"}
			arms := []func() float64{
				func() float64 { return rate(b, replayOf(b, lab, file, false)) },
				func() float64 { return rate(b, openSpec(b, engine.XSK, lab, c.frame, 1)) },
				func() float64 { return rate(b, replayOf(b, lab, file, true)) },
			}
			if path, err := exec.LookPath("tcpreplay"); err == nil {
				names = append(names, "tcpreplay")
				arms = append(arms, func() float64 { return tcpreplay(b, path, lab, file) })
			}
			for range b.N {
				compare(b, names, arms)
			}
		})
	}
}

// TestReplayIsAccountedFor: a capture passes every boundary of the budget, and
// a loss that nobody counts shows where it was.
func TestReplayIsAccountedFor(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	lab := nettest.Lab(t, veth.Config{})
	file := saveFlows(t, 500, 100)
	for _, c := range []struct {
		fault       engine.Fault
		unexplained uint64
	}{{engine.Fault{}, 0}, {engine.Fault{LoseAfterSeen: 3}, 3}} {
		s := spec(t, engine.XSK, lab.A(), lab.B())
		r, err := pcap.Load(pcap.Config{Path: file, Workers: 1, Loops: 2})
		if err != nil {
			t.Fatal(err)
		}
		s.Replay, s.Action, s.Count, s.Fault = &Replay{Replay: r, Path: file, Loops: 2}, Count, 0, c.fault
		s.Steer.Match, s.Steer.Run, s.Steer.Stamp = bpf.MatchAll, 0, false
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		o, err := Run(ctx, s, nil)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if got := value(t, "sent", o.Frames.Sent); got != 1000 {
			t.Errorf("sent %d, want 1000", got)
		}
		if got := value(t, "unexplained", o.Frames.Unexplained); got != c.unexplained || o.Frames.Received != nil || o.Frames.Lost != nil {
			t.Errorf("unexplained %d, want %d; received %v, lost %v\n%s", got, c.unexplained, o.Frames.Received, o.Frames.Lost, rowsText(o))
		}
	}
}
