package bpf

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"linerate/internal/frame"
	"linerate/internal/wire"
)

// liveStream is a stream of one frame size.
func liveStream(t testing.TB, size string, v6 bool, vlans, flows int) frame.Stream {
	t.Helper()
	sizes, err := wire.ParseSizes(size)
	must(t, err)
	st := frame.Stack{SrcMAC: [6]byte(srcMAC), DstMAC: [6]byte(dstMAC), Src: netip.MustParseAddr("198.18.0.1"),
		Dst: netip.MustParseAddr("198.18.0.2"), SrcPort: 49184, DstPort: 7777, TTL: 64}
	if v6 {
		st.Src, st.Dst = netip.MustParseAddr("2001:2::1"), netip.MustParseAddr("2001:2::2")
	}
	for i := range vlans {
		st.VLANs = append(st.VLANs, frame.VLAN{ID: uint16(100 + i)})
	}
	return frame.Stream{ID: 5, Stack: st, Sizes: sizes, Flows: frame.Flows{Count: flows}}
}

func writer(t testing.TB, s frame.Stream) *frame.Writer {
	t.Helper()
	w, err := frame.NewWriter(frame.WriterConfig{Stream: s, Run: testRun, Worker: 2, Workers: 3, FirstFlow: 0, Stride: 1})
	must(t, err)
	return w
}

// newLive loads a program for a writer's frames.
func newLive(t testing.TB, w *frame.Writer) *Live {
	t.Helper()
	requireCaps(t)
	tmpl, err := w.Template()
	must(t, err)
	c := LiveConfig{IfIndex: 1, Template: tmpl.Frame, L3: tmpl.L3, Payload: tmpl.Payload, V6: tmpl.V6, MACs: tmpl.MACs,
		Fixed: tmpl.Fixed}
	for _, f := range tmpl.Flows {
		c.Flows = append(c.Flows, LiveFlow(f))
	}
	l, err := LoadLive(c)
	must(t, err)
	closing(t, l)
	return l
}

// What the program makes is what the Writer writes, byte for byte, on a page
// where nothing of the headers and the tag is as it should be.
func TestLiveWritesWhatTheWriterWrites(t *testing.T) {
	for _, c := range []struct {
		size         string
		v6           bool
		vlans, flows int
		from         uint64
	}{
		{"64", false, 0, 1, 0}, {"65", false, 0, 3, 0}, {"68", false, 1, 1, 0xfffe}, {"1518", false, 0, 7, 0},
		{"101", false, 2, 1, 1<<24 - 2}, {"84", true, 0, 2, 0}, {"1500", true, 2, 1, 1<<32 - 2}, {"127", true, 1, 5, 1<<40 - 5},
	} {
		name := fmt.Sprintf("%s v6 %v vlans %d flows %d from %d", c.size, c.v6, c.vlans, c.flows, c.from)
		w := writer(t, liveStream(t, c.size, c.v6, c.vlans, c.flows))
		l := newLive(t, w)
		must(t, l.Begin(LiveOffer{}))
		if c.from > 0 {
			must(t, l.set("progress", liveLiveProgress{Sent: c.from, CrcHigh: uint32(crcHigh(c.from))}))
		}
		sameFrames(t, name, w, l, c.from, c.flows)
	}
}

// crcHigh is what the upper three bytes of a sequence number contribute.
func crcHigh(seq uint64) uint16 {
	a, b, c := crcAfter(11), crcAfter(10), crcAfter(9)
	return a[byte(seq>>32)] ^ b[byte(seq>>24)] ^ c[byte(seq>>16)]
}

func sameFrames(t *testing.T, name string, w *frame.Writer, l *Live, from uint64, flows int) {
	t.Helper()
	checker := frame.NewChecker(frame.CheckerConfig{Run: testRun, PayloadCheck: true})
	want := make([]byte, w.MaxLen())
	for k := range 2*flows + 4 {
		n := w.Next(want, 0, 0)
		page := bytes.Clone(want[:n])
		for i := range page[:14] {
			page[i] ^= 0xff
		}
		copy(page[n-18:], make([]byte, 18))
		verdict, got := run(t, l.coll.Programs["live"], page, nil)
		if verdict != xdpRedirect {
			t.Fatalf("%s, frame %d: verdict %d", name, k, verdict)
		}
		if from == 0 && !bytes.Equal(got, want[:n]) {
			t.Fatalf("%s, frame %d:\ngot  %x\nwant %x", name, k, got, want[:n])
		}
		var c frame.Checked
		checker.Check(got, &c)
		if c.Class != frame.ClassGood || c.Tag.Seq != (from+uint64(k))&frame.MaxSeq {
			t.Fatalf("%s, frame %d: %v %v, tag %+v", name, k, c.Class, c.Reason, c.Tag)
		}
	}
}

// A count ends the offer, and what is not made is padding.
func TestLiveCounts(t *testing.T) {
	w := writer(t, liveStream(t, "64", false, 0, 1))
	l := newLive(t, w)
	must(t, l.Begin(LiveOffer{Count: 3}))
	page := make([]byte, 60)
	for range 5 {
		run(t, l.coll.Programs["live"], page, nil)
	}
	p, err := l.Progress()
	must(t, err)
	if p.Sent != 3 || p.Padding != 2 || !p.Done || p.Spoilt != 0 {
		t.Errorf("%+v, want 3 sent, 2 of padding, done", p)
	}
	run(t, l.coll.Programs["live"], page[:50], nil)
	if p, err = l.Progress(); err != nil || p.Spoilt != 1 {
		t.Errorf("a page that is too short: %+v, %v", p, err)
	}
}

// Permits are those of the time gone by, to the frame: at rates far under a
// frame a microsecond too, and over gaps of any length.
func TestLivePacesExactly(t *testing.T) {
	for _, c := range []struct {
		pps  float64
		gap  time.Duration
		want uint64
	}{{1, 10500 * time.Millisecond, 10}, {3, 10500 * time.Millisecond, 31}, {0.5, 15 * time.Second, 7},
		{7, 1000500 * time.Millisecond, 7003}, {1000.01, 100050 * time.Millisecond, 100051}} {
		l := newLive(t, writer(t, liveStream(t, "64", false, 0, 1)))
		must(t, l.Begin(LiveOffer{PPS: c.pps}))
		must(t, l.set("progress", liveLiveProgress{ClockNs: monotonicNs(t) - uint64(c.gap)}))
		run(t, l.coll.Programs["live"], make([]byte, 60), nil)
		p, err := l.Progress()
		must(t, err)
		var all liveLiveProgress
		must(t, l.coll.Variables["progress"].Get(&all))
		if got := all.Granted + p.Thrown; got != c.want {
			t.Errorf("%v pps for %s: %d permits, want %d", c.pps, c.gap, got, c.want)
		}
	}
}

func TestLiveRefusesNonsense(t *testing.T) {
	good := LiveConfig{Template: make([]byte, 60), L3: 14, Payload: 42, Flows: make([]LiveFlow, 1)}
	for name, edit := range map[string]func(*LiveConfig){
		"short":   func(c *LiveConfig) { c.Template = make([]byte, 59) },
		"long":    func(c *LiveConfig) { c.Template = make([]byte, MaxLiveFrame+1) },
		"flows":   func(c *LiveConfig) { c.Flows = nil },
		"stamp":   func(c *LiveConfig) { c.StampEvery = 3 },
		"payload": func(c *LiveConfig) { c.Payload = 43 },
	} {
		c := good
		edit(&c)
		var e *ConfigError
		if err := c.validate(); !asConfig(err, &e) {
			t.Errorf("%s: %v, want a ConfigError", name, err)
		}
	}
	if err := good.validate(); err != nil {
		t.Error(err)
	}
}
