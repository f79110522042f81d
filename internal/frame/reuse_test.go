package frame

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"linerate/internal/wire"
)

// TestReusedBuffersHoldWholeFrames: whatever a buffer carried before, Next and
// End leave in it what they would in a fresh one.
func TestReusedBuffersHoldWholeFrames(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		v6, vlans := rapid.Bool().Draw(r, "v6"), rapid.IntRange(0, 2).Draw(r, "vlans")
		_, short := LeastFrame(testStream(t, "64", v6, vlans).Stack)
		drawn := rapid.SliceOfN(rapid.IntRange(int(short), 200), 1, 6).Draw(r, "sizes")
		sizes := strings.ReplaceAll(strings.Trim(fmt.Sprint(drawn), "[]"), " ", ",")
		s := testStream(t, sizes, v6, vlans)
		s.Flows = Flows{Count: rapid.IntRange(1, 6).Draw(r, "flows"),
			SrcPorts: PortRange{10, 11}, DstMACs: MACRange{[6]byte{4}, [6]byte{4, 0, 0, 0, 0, 2}}}
		c := WriterConfig{Stream: s, Run: 9, StampEvery: rapid.IntRange(0, 3).Draw(r, "stamp")}
		used, fresh := mustWriter(t, c), mustWriter(t, c)
		start := rapid.SampledFrom([]uint64{0, 0xfffe, 0xfffffe, 0xfffffffe, 0xfffffffffe}).Draw(r, "start")
		for _, w := range []*Writer{used, fresh} {
			w.seq = start
			w.keepHigh(start)
		}
		var bufs [3][]byte
		var prev [3]wire.BufLen
		for i := range bufs {
			bufs[i] = bytes.Repeat([]byte{0xff}, int(used.MaxLen()))
		}
		for i := range 40 {
			k := rapid.IntRange(0, 2).Draw(r, "buffer")
			clean := make([]byte, fresh.MaxLen())
			var a, b wire.BufLen
			if rapid.IntRange(0, 7).Draw(r, "end") == 0 {
				a, b = used.End(bufs[k], start+uint64(i), 77), fresh.End(clean, start+uint64(i), 77)
			} else {
				a, b = used.Next(bufs[k], prev[k], uint64(i)*99), fresh.Next(clean, 0, uint64(i)*99)
			}
			prev[k] = a
			if a != b || !bytes.Equal(bufs[k][:a], clean[:b]) {
				r.Fatalf("step %d:\n used % x\nfresh % x", i, bufs[k][:a], clean[:b])
			}
		}
	})
}

// TestSequenceCarries crosses every place where a kept part of the check must
// be renewed, and compares with the plain way.
func TestSequenceCarries(t *testing.T) {
	for _, sizes := range []string{"64", "68"} {
		for _, at := range []uint64{1 << 16, 1 << 24, 1 << 32, 1<<40 - 2} {
			w := mustWriter(t, WriterConfig{Stream: testStream(t, sizes, false, 1), Run: 1, StampEvery: 1})
			w.seq = at - 2
			w.keepHigh(w.seq)
			k := NewChecker(CheckerConfig{Run: 1, PayloadCheck: true})
			buf := make([]byte, w.MaxLen())
			var prev wire.BufLen
			for i := range uint64(4) {
				prev = w.Next(buf, prev, i<<12)
				var c Checked
				k.Check(buf[:prev], &c)
				want := (at - 2 + i) & MaxSeq
				if c.Short {
					want &= 0xffffffff
				}
				if c.Class != ClassGood || c.Tag.Seq != want {
					t.Fatalf("size %s: seq %d: %v %v %d", sizes, at-2+i, c.Class, c.Reason, c.Tag.Seq)
				}
			}
		}
	}
}

// TestChecksumNeverZero runs past a sum that comes out as 0.
func TestChecksumNeverZero(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		w := mustWriter(t, WriterConfig{Stream: testStream(t, "85", v6, 0), Run: 1})
		buf := make([]byte, w.MaxLen())
		at, ones := w.l4+6, 0
		var prev wire.BufLen
		for range 400_000 {
			prev = w.Next(buf, prev, 0)
			switch binary.BigEndian.Uint16(buf[at:]) {
			case 0:
				t.Fatalf("ipv6 %v: frame %d has checksum 0", v6, w.Seq()-1)
			case 0xffff:
				ones++
				var c Checked
				if NewChecker(CheckerConfig{Run: 1}).Check(buf[:prev], &c); c.Class != ClassGood {
					t.Fatalf("checksum 0xffff: %v %v", c.Class, c.Reason)
				}
				buf[at], buf[at+1] = 0, 0 // the same sum, but it says "none"
				if NewChecker(CheckerConfig{Run: 1}).Check(buf[:prev], &c); c.Reason != ReasonL4 {
					t.Fatalf("checksum 0: %v %v", c.Class, c.Reason)
				}
			}
		}
		if ones == 0 {
			t.Fatal("the case did not occur: the test shows nothing")
		}
	}
}

// TestEveryFlowMeetsEverySize, and each flow and size keeps its share.
func TestEveryFlowMeetsEverySize(t *testing.T) {
	for _, n := range []int{1, 5, 4, 12, 18} {
		s := testStream(t, "imix", false, 0)
		s.Flows.Count = n
		w := mustWriter(t, WriterConfig{Stream: s})
		buf := make([]byte, w.MaxLen())
		seen := map[string]int{}
		for range 12 * n * 2 {
			l := w.Next(buf, 0, 0)
			seen[fmt.Sprint("flow ", binary.BigEndian.Uint16(buf[w.l4:]))]++
			seen[fmt.Sprint("both ", binary.BigEndian.Uint16(buf[w.l4:]), l)]++
		}
		if want := n + 3*n; len(seen) != want {
			t.Errorf("%d flows: %d flows and pairs, want %d", n, len(seen), want)
		}
		for k, got := range seen {
			if k[:4] == "flow" && got != 24 {
				t.Errorf("%d flows: %s sent %d, want 24", n, k, got)
			}
		}
	}
}

// TestWorkersShareFlows: every flow is one worker's, and shares are even.
func TestWorkersShareFlows(t *testing.T) {
	s := testStream(t, "64", false, 0)
	s.Flows.Count = 10
	owner := map[uint16]uint8{}
	for i := range uint8(4) {
		w := mustWriter(t, WriterConfig{Stream: s, Worker: i, Workers: 4})
		if n := w.FlowCount(); n != 2 && n != 3 {
			t.Errorf("worker %d has %d flows of 10", i, n)
		}
		buf := make([]byte, w.MaxLen())
		for range 2 * w.FlowCount() {
			w.Next(buf, 0, 0)
			port := binary.BigEndian.Uint16(buf[w.l4:])
			if o, ok := owner[port]; ok && o != i {
				t.Errorf("port %d of workers %d and %d", port, o, i)
			}
			owner[port] = i
		}
	}
	if len(owner) != 10 {
		t.Errorf("%d flows sent of 10", len(owner))
	}
	s.Flows.Count = 2 // fewer flows than workers
	if w := mustWriter(t, WriterConfig{Stream: s, Worker: 3, Workers: 4}); w.FlowCount() != 1 {
		t.Errorf("worker 3 of 4 has %d flows of 2, want 1", w.FlowCount())
	}
}

func TestEndFrame(t *testing.T) {
	for _, sizes := range []string{"64", "68", "1518"} { // behind a VLAN tag 64 is short
		s := testStream(t, sizes, false, 1)
		w := mustWriter(t, WriterConfig{Stream: s, Run: 5, Worker: 1, Workers: 2})
		buf := make([]byte, w.MaxLen())
		n := w.End(buf, 1<<33+7, 640)
		decode(t, buf[:n])
		want := Tag{Run: 5, Space: Space{1, 3}, Seq: 1<<33 + 7, TimeNs: 640, Flags: FlagEnd | FlagStamp}
		if sizes == "64" {
			want.Flags |= FlagShort
		}
		var c Checked
		NewChecker(CheckerConfig{Run: 5, PayloadCheck: true}).Check(buf[:n], &c)
		if n.Frame() != 68 || c.Class != ClassEnd || c.Tag != want || w.Seq() != 0 {
			t.Errorf("%s: END of %d bytes, seq %d: %+v, want %+v", sizes, n.Frame(), w.Seq(), c, want)
		}
	}
}

func TestShortBufferTakesNothing(t *testing.T) {
	w := mustWriter(t, WriterConfig{Stream: testStream(t, "128", false, 0)})
	buf := make([]byte, w.MaxLen()-1)
	if n, e := w.Next(buf, 0, 0), w.End(buf, 0, 0); n != 0 || e != 0 || w.Seq() != 0 {
		t.Errorf("wrote %d and %d bytes into too short a buffer, seq %d", n, e, w.Seq())
	}
}

func TestHotPathsAllocateNothing(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		s := testStream(t, "imix", v6, 1)
		if v6 {
			s = testStream(t, "88,594,1518", v6, 1)
		}
		s.Flows.Count = 5
		w := mustWriter(t, WriterConfig{Stream: s, StampEvery: 2})
		k := NewChecker(CheckerConfig{PayloadCheck: true})
		q := NewAccount().Queue(0)
		buf := make([]byte, w.MaxLen())
		var prev wire.BufLen
		var c Checked
		run := func() {
			prev = w.Next(buf, prev, w.Seq())
			k.Check(buf[:prev], &c)
			q.Count(&c)
			q.Publish()
			k.Check(buf[:prev-1], &c)
			q.Count(&c)
		}
		run()
		if n := testing.AllocsPerRun(1000, run); n != 0 {
			t.Errorf("ipv6 %v: %v allocations per frame", v6, n)
		}
	}
}

// TestGoldenFrames pins the bytes on the wire.
func TestGoldenFrames(t *testing.T) {
	for _, c := range []struct{ sizes, want string }{
		{"64", golden64}, {"65", golden65},
	} {
		vlans := 0
		if c.sizes == "65" {
			vlans = 1
		}
		w := mustWriter(t, WriterConfig{Stream: testStream(t, c.sizes, false, vlans), Run: 0x1234, StampEvery: 1})
		buf := make([]byte, w.MaxLen())
		n := w.Next(buf, 0, 1_000_000)
		if got := fmt.Sprintf("%x", buf[:n]); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.sizes, got, c.want)
		}
	}
}

const (
	golden64 = "020000000002020000000001" + "0800" + // Ethernet
		"45b8002e000040004011addfc6120001c6120002" + "c0201e61001af84d" + // IPv4, UDP
		"4c52123400030000000000" + "00003d09" + "02" + "34fa" // long tag: seq 0, 1 ms
	golden65 = "020000000002020000000001" + "81000064" + "0800" +
		"45b8002b000040004011ade2c6120001c6120002" + "c0201e610017e825" +
		"0001020304" + "4c53340300000000" + "6c50" // pattern, short tag
)
