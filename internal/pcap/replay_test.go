package pcap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"slices"
	"testing"
	"time"
)

// capture saves a file of n frames, 1 ms apart, in so many flows.
func capture(t testing.TB, n, flows int) string {
	t.Helper()
	var records []record
	for i := range n {
		records = append(records, record{ns: 1e18 + int64(i)*1e6, data: udp(60+i%100, uint16(1000+i%flows), uint16(i))})
	}
	return save(t, classic(binary.LittleEndian, true, 1, records...))
}

func load(t testing.TB, c Config) *Replay {
	t.Helper()
	p, err := Load(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// drain takes all that a source gives.
func drain(t testing.TB, s Source) (marks []int, at []int64) {
	t.Helper()
	for until := time.Now().Add(10 * time.Second); !s.Done(); {
		if time.Now().After(until) {
			t.Fatal("no end")
		}
		n := s.Ready(7)
		if n == 0 {
			time.Sleep(time.Millisecond)
			continue
		}
		_, next := s.Due(-1, 1)
		at = append(at, next)
		for _, b := range s.Batch(1) {
			marks = append(marks, int(binary.BigEndian.Uint16(b[len(b)-2:])))
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return marks, at
}

// TestSources: every frame comes once a loop, in the order of the file within
// each worker, all of a flow from one worker, at its time.
func TestSources(t *testing.T) {
	const n, flows, loops = 3000, 7, 3
	path := capture(t, n, flows)
	for name, stream := range map[string]bool{"memory": false, "stream": true} {
		t.Run(name, func(t *testing.T) {
			p := load(t, Config{Path: path, Workers: 2, Loops: loops, Speed: 2, Stream: stream})
			if p.Frames != n || p.SpanNs != (n-1)*1e6/2 || p.Longest.Len != 159 || p.LongestL3.Len != 145 {
				t.Errorf("%d frames over %d ns, longest %+v", p.Frames, p.SpanNs, p.Longest)
			}
			worker, total := map[int]int{}, 0
			for w, s := range p.Sources() {
				marks, at := drain(t, s)
				total += len(marks)
				loop, all := s.Share()
				if uint64(len(marks)) != all || all != loops*loop || loop != p.Shares[w].Frames || loop == 0 {
					t.Errorf("worker %d: %d frames, said %d in loops of %d", w, len(marks), all, loop)
				}
				one := marks[:loop]
				if !slices.IsSorted(one) || !slices.Equal(one, marks[loop:2*loop]) || !slices.Equal(one, marks[2*loop:]) {
					t.Errorf("worker %d: out of order", w)
				}
				for i, m := range marks {
					if had, ok := worker[m%flows]; ok && had != w {
						t.Fatalf("flow %d is of worker %d and %d", m%flows, had, w)
					}
					worker[m%flows] = w
					lap := int64(i) / int64(loop)
					if want := lap*n*5e5 + int64(m)*5e5; at[i] != want {
						t.Fatalf("frame %d of loop %d is due at %d, want %d", m, lap, at[i], want)
					}
				}
			}
			if total != n*loops {
				t.Errorf("%d frames, want %d", total, n*loops)
			}
		})
	}
}

// TestDue: frames whose time is up, and no more than asked for.
func TestDue(t *testing.T) {
	p := load(t, Config{Path: capture(t, 10, 1), Workers: 1, Loops: 2})
	s := p.Sources()[0]
	for _, c := range []struct {
		since int64
		most  int
		n     int
		next  int64
	}{{-1, 64, 0, 0}, {0, 64, 1, 1e6}, {3.5e6, 64, 4, 4e6}, {3.5e6, 2, 2, 2e6}, {9e6, 64, 10, 10e6}, {0, 0, 0, 0}} {
		if n, next := s.Due(c.since, c.most); n != c.n || next != c.next {
			t.Errorf("Due(%d, %d) = %d, %d; want %d, %d", c.since, c.most, n, next, c.n, c.next)
		}
	}
	for range 10 {
		s.Batch(1)
	}
	if n, next := s.Due(10e6, 64); n != 1 || next != 11e6 {
		t.Errorf("second loop: %d, %d", n, next)
	}
	if got := s.Ready(64); got != 10 {
		t.Errorf("the last loop has %d ready, want 10", got)
	}
}

// TestTimesNeverRunBack: a capture that was put together out of order keeps its
// order.
func TestTimesNeverRunBack(t *testing.T) {
	path := save(t, ngOf(t, record{ns: 5e9, data: udp(60, 1, 0)}, record{ns: 4e9, data: udp(60, 1, 1)}, record{ns: 6e9, data: udp(60, 1, 2)}))
	_, at := drain(t, load(t, Config{Path: path, Workers: 1, Loops: 1}).Sources()[0])
	if !slices.Equal(at, []int64{0, 0, 1e9}) {
		t.Errorf("due at %v", at)
	}
}

func TestLoadErrors(t *testing.T) {
	if _, err := Load(Config{Path: "/no/such/file", Workers: 1}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	var limit *LimitError
	if _, err := Load(Config{Path: capture(t, 100, 1), Workers: 1, Limit: 2000}); !errors.As(err, &limit) || limit.Frames == 0 || limit.Frames > 30 {
		t.Errorf("limit: %v", err)
	}
	var bad *Error
	if _, err := Load(Config{Path: save(t, classic(binary.LittleEndian, true, 1)), Workers: 1}); !errors.As(err, &bad) || bad.Offset != 24 {
		t.Errorf("no frame: %v", err)
	}
	stop := errors.New("stop")
	if _, err := Load(Config{Path: capture(t, 5000, 1), Workers: 1, Stream: true, Stop: func() error { return stop }}); !errors.Is(err, stop) {
		t.Errorf("stopped: %v", err)
	}
	if _, err := Load(Config{Path: capture(t, 1, 1), Speed: -1, Workers: 1}); err == nil {
		t.Error("a negative speed passes")
	}
}

// TestStreamStops: a reader that nobody listens to ends with Close.
func TestStreamStops(t *testing.T) {
	p := load(t, Config{Path: capture(t, 20000, 64), Workers: 2, Stream: true})
	for _, s := range p.Sources() {
		for s.Ready(1) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	p.Close()
	p.Close()
}

// TestReplayAllocatesNothing: not a preloaded frame, nor a streamed one once
// the blocks have their size.
func TestReplayAllocatesNothing(t *testing.T) {
	s := load(t, Config{Path: capture(t, 1000, 1), Workers: 1}).Sources()[0]
	if n := testing.AllocsPerRun(1000, func() {
		s.Ready(64)
		s.Due(never, 64)
		s.Batch(64)
	}); n != 0 {
		t.Errorf("%v allocations a batch", n)
	}
}

// TestFlowHash: both directions of a flow are one, and flows differ.
func TestFlowHash(t *testing.T) {
	there, back, other := udp(60, 1000, 0), udp(60, 7777, 0), udp(60, 1001, 0)
	copy(back[26:], there[30:34])
	copy(back[30:], there[26:30])
	copy(back[36:], there[34:36])
	if flowHash(there) != flowHash(back) || flowHash(there) == flowHash(other) {
		t.Error("the two directions differ, or two flows are the same")
	}
	tag := func(b []byte) []byte { return slices.Concat(b[:12], []byte{0x81, 0, 0, 5}, b[12:]) }
	if flowHash(tag(there)) != flowHash(there) || l3Len(tag(there)) != 46 {
		t.Error("a VLAN tag makes another flow")
	}
	fragment := bytes.Clone(there)
	fragment[20] = 0x20
	rest := bytes.Clone(other)
	rest[21] = 8
	if flowHash(fragment) != flowHash(rest) {
		t.Error("fragments of one packet are of two flows")
	}
	six := make([]byte, 64)
	six[12], six[13], six[20], six[14+8+15], six[14+24+15], six[55] = 0x86, 0xdd, protoTCP, 1, 2, 9
	reply := bytes.Clone(six)
	reply[14+8+15], reply[14+24+15], reply[55], reply[57] = 2, 1, 0, 9
	if flowHash(six) != flowHash(reply) || flowHash(six) == flowHash(make([]byte, 64)) {
		t.Error("IPv6: the two directions differ")
	}
}
