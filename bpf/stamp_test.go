package bpf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func monotonicNs(t testing.TB) uint64 {
	t.Helper()
	var ts unix.Timespec
	must(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts))
	return uint64(ts.Nano())
}

// The stamp is bound to the identity of the frame that it was made for.
func TestSteerStamp(t *testing.T) {
	for _, match := range []Match{MatchTag, MatchAll} {
		s := newSteer(t, SteerConfig{Match: match, Stamp: true})
		must(t, s.SetSocket(0, xskFD(t)))
		for _, c := range []struct {
			name     string
			frame    []byte
			identity uint64
		}{
			{"long", udp4(t, longTag()), LongIdentity(testStream, testSeq)},
			{"QinQ", udp4(t, longTag(), 1, 2), LongIdentity(testStream, testSeq)},
			{"IPv6", udp6(t, longTag()), LongIdentity(testStream, testSeq)},
			{"short", udp4(t, padded(17, shortTag())), ShortIdentity(3<<4|5, 0x89abcdef)},
			{"untagged", arp(t), 0},
		} {
			if match == MatchTag && c.identity == 0 {
				continue
			}
			checkStamp(t, s, c.name, c.frame, c.identity)
		}
	}
}

func checkStamp(t *testing.T, s *Steer, name string, frame []byte, identity uint64) {
	t.Helper()
	before := monotonicNs(t)
	verdict, out := run(t, s.Program(), frame, nil)
	after := monotonicNs(t)
	if verdict != xdpRedirect || len(out) != StampBytes+len(frame) || !bytes.Equal(out[StampBytes:], frame) {
		t.Fatalf("%s: verdict %d, out % x", name, verdict, out)
	}
	ns, ok := Stamp(out[:StampBytes], identity)
	if !ok || ns < before || ns > after {
		t.Errorf("%s: stamp %d, %v; want %d to %d", name, ns, ok, before, after)
	}
	if _, ok := Stamp(out[:StampBytes], identity+1); ok {
		t.Errorf("%s: stamp taken for another frame's", name)
	}
}

func TestStamp(t *testing.T) {
	const ns, identity = 12345, 1<<63 | 7
	var meta []byte
	meta = binary.NativeEndian.AppendUint64(meta, ns)
	meta = binary.NativeEndian.AppendUint64(meta, 0x4c52_5354_414d_5031^identity)
	if got, ok := Stamp(append(make([]byte, 240), meta...), identity); got != ns || !ok {
		t.Errorf("at the end of the headroom: %d, %v", got, ok)
	}
	for n := range len(meta) {
		if _, ok := Stamp(meta[:n], identity); ok {
			t.Errorf("stamp in %d bytes", n)
		}
	}
	if LongIdentity(0xffff, 1<<40-1) != 1<<56-1 || LongIdentity(0, 1<<40) != 0 {
		t.Error("long identity is not 56 bits")
	}
	if ShortIdentity(0xff, 1<<32-1) != 1<<63|1<<40-1 {
		t.Error("short identity is not 40 bits and the mark")
	}
}

// Where there is no room for metadata the frame goes on without.
func TestSteerNoRoomForStamp(t *testing.T) {
	s := newSteer(t, SteerConfig{Stamp: true})
	must(t, s.SetSocket(0, xskFD(t)))
	frame := udp4(t, longTag())
	before, err := s.Counters()
	must(t, err)
	var verdict uint32
	// The most metadata that Run takes differs from kernel to kernel.
	for _, room := range []int{252, 216, 32} {
		in := append(make([]byte, room), frame...)
		opts := ebpf.RunOptions{Data: in, DataOut: make([]byte, len(in)+256),
			Context: &xdpMD{Data: uint32(room), DataEnd: uint32(len(in))}}
		if verdict, err = s.Program().Run(&opts); !errors.Is(err, unix.EINVAL) {
			break
		}
	}
	must(t, err)
	moved := difference(t, before, s.Counters, 0)
	want := map[Reason]uint64{ReasonSeen: 1, ReasonRedirected: 1, ReasonNoMeta: 1}
	if d := cmp.Diff(want, moved); d != "" || verdict != xdpRedirect {
		t.Errorf("verdict %d, counters (-want +got):\n%s", verdict, d)
	}
}

// The stamp written before a frame arrives before the frame in the socket's UMEM.
func TestSteerStampArrives(t *testing.T) {
	for _, mode := range []Mode{ModeNative, ModeGeneric} {
		p := newPair(t, 1, 1500)
		b := p.B.Attrs().Index
		s := newSteer(t, SteerConfig{Stamp: true})
		a, err := Attach(s.Program(), b, mode)
		must(t, err)
		closing(t, a)
		x := openXSK(t, b)
		x.refill(8)
		must(t, s.SetSocket(0, x.fd))
		for seq := range uint64(8) {
			frame := udp4(t, longTag())
			binary.BigEndian.PutUint32(frame[49:], uint32(seq)) // low 32 of 40 bits
			before := monotonicNs(t)
			stackSend(t, p.A.Attrs().Index, frame, 1)
			meta, got := x.receive(t)
			ns, ok := Stamp(meta, LongIdentity(testStream, 0x12<<32|seq))
			if !ok || ns < before || ns > monotonicNs(t) || !cmp.Equal(got, frame) {
				t.Errorf("%s, frame %d: stamp %d, %v", mode, seq, ns, ok)
			}
		}
	}
}

func FuzzStamp(f *testing.F) {
	f.Add(make([]byte, 16), uint64(0))
	f.Add(make([]byte, 15), uint64(1))
	f.Fuzz(func(t *testing.T, meta []byte, identity uint64) {
		if ns, ok := Stamp(meta, identity); ok {
			tail := meta[len(meta)-16:]
			if binary.NativeEndian.Uint64(tail) != ns || binary.NativeEndian.Uint64(tail[8:])^stampMagic != identity {
				t.Errorf("stamp %d of % x", ns, tail)
			}
		}
	})
}

func TestStampAllocatesNothing(t *testing.T) {
	meta := make([]byte, 256)
	if n := testing.AllocsPerRun(100, func() { Stamp(meta, 1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
