package trial

import (
	"testing"
	"time"

	"linerate/internal/budget"
	"linerate/internal/engine"
	"linerate/internal/lab/veth"
	"linerate/internal/nettest"
	"linerate/internal/wire"
)

// boxSpec is a trial through a fault box, of frames with a payload to damage.
func boxSpec(t *testing.T, eng engine.Name, b *nettest.Box) Spec {
	t.Helper()
	s := spec(t, eng, b.A(), b.B())
	sizes, err := wire.ParseSizes("128")
	if err != nil {
		t.Fatal(err)
	}
	rate, err := wire.ParseRate("5kpps")
	if err != nil {
		t.Fatal(err)
	}
	s.Stream.Sizes, s.Rate = sizes, rate
	s.Settle = 300 * time.Millisecond // the box forwards in user space
	return s
}

// What the box does to so many frames must come out as exactly so many: what
// nobody counted as unexplained, at the wire and nowhere else.
func TestFaultBox(t *testing.T) {
	const n, seed = 7, 42
	frames := nettest.Pick(seed, n, 1900)
	apart := []uint64{10, 20, 30, 40, 50, 60, 70} // neighbours must not both be swapped
	for _, c := range []struct {
		name string
		rule nettest.Rule
		want map[string]uint64
	}{
		{"none", nettest.Rule{Fault: nettest.Drop}, map[string]uint64{"received": 2000, "unexplained": 0}},
		{"one", nettest.Rule{Fault: nettest.Drop, Frames: []uint64{1000}}, map[string]uint64{"received": 1999, "lost": 1, "unexplained": 1}},
		{"drop", nettest.Rule{Fault: nettest.Drop, Frames: frames}, map[string]uint64{"received": 2000 - n, "lost": n, "unexplained": n}},
		{"duplicate", nettest.Rule{Fault: nettest.Duplicate, Frames: frames}, map[string]uint64{"received": 2000, "lost": 0, "duplicate": n, "unexplained": 0}},
		{"swap", nettest.Rule{Fault: nettest.Swap, Frames: apart}, map[string]uint64{"received": 2000, "lost": 0, "duplicate": 0, "reordered": n, "unexplained": 0}},
		{"delay", nettest.Rule{Fault: nettest.Delay, Frames: []uint64{100}, Behind: 50}, map[string]uint64{"received": 2000, "lost": 0, "reordered": 1, "unexplained": 0}},
		{"payload", nettest.Rule{Fault: nettest.Corrupt, Part: nettest.Payload, Frames: frames}, map[string]uint64{"received": 2000 - n, "lost": 0, "corrupt": n, "unexplained": 0}},
		{"checksum", nettest.Rule{Fault: nettest.Corrupt, Part: nettest.Checksum, Frames: frames}, map[string]uint64{"received": 2000 - n, "lost": 0, "corrupt": n, "unexplained": 0}},
		{"tag", nettest.Rule{Fault: nettest.Corrupt, Part: nettest.Tag, Frames: frames}, map[string]uint64{"received": 2000 - n, "lost": n, "unexplained": 0}},
		{"magic", nettest.Rule{Fault: nettest.Corrupt, Part: nettest.Magic, Frames: frames}, map[string]uint64{"received": 2000 - n, "lost": n, "untagged": n, "unexplained": 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, eng := range []engine.Name{engine.XSK, engine.Asavie, engine.XDP} { // the box's own ports take no live frames
				t.Run(string(eng), func(t *testing.T) { throughBox(t, eng, seed, c.rule, c.want) })
			}
		})
	}
}

func throughBox(t *testing.T, eng engine.Name, seed uint64, rule nettest.Rule, want map[string]uint64) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	box := nettest.FaultBox(t, nettest.BoxConfig{Seed: seed, Rules: []nettest.Rule{rule}})
	o := run(t, boxSpec(t, eng, box))
	expect(t, o, want)
	clean := want["unexplained"] == 0 && want["lost"] == 0 && want["duplicate"] == 0 && want["corrupt"] == 0
	if pass := o.Verdict == budget.Pass; pass != clean {
		t.Errorf("verdict %s %v", o.Verdict, o.Reasons)
	}
	for _, r := range o.Closed.Residuals {
		if r.Frames != 0 && r.Boundary != budget.Wire {
			t.Errorf("%d frames unexplained at %s (%s to %s), not at the wire", r.Frames, r.Boundary, r.From, r.To)
		}
	}
}

// The same at a rate that a forwarder in user space could not follow.
func TestFaultBoxInTheKernel(t *testing.T) {
	const n = 100
	eachEngine(t, func(t *testing.T, eng engine.Name, _, _ string) {
		for name, c := range map[string]struct {
			rules nettest.XDPRules
			want  map[string]uint64
		}{
			"drop":    {nettest.XDPRules{DropFirst: n}, map[string]uint64{"sent": 30000, "lost": n, "unexplained": n}},
			"corrupt": {nettest.XDPRules{CorruptFirst: n}, map[string]uint64{"sent": 30000, "lost": 0, "corrupt": n, "unexplained": 0}},
		} {
			t.Run(name, func(t *testing.T) {
				box := nettest.FaultBox(t, nettest.BoxConfig{XDP: &c.rules})
				s := boxSpec(t, eng, box)
				var err error
				if s.Rate, err = wire.ParseRate("100kpps"); err != nil {
					t.Fatal(err)
				}
				s.Count, s.RingSize = 30000, 1<<15
				expect(t, run(t, s), c.want)
			})
		}
	})
}

// With the receiver's NAPI on another core, the veth ring overflows: the
// device refuses frames, says so, and every one of them is in the budget.
func TestOverflowIsRefused(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP, nettest.ThreadedNAPI)
	lab := nettest.Lab(t, veth.Config{})
	for _, eng := range engines {
		t.Run(string(eng), func(t *testing.T) {
			s := spec(t, eng, lab.A(), lab.B())
			s.Rate = wire.Rate{Kind: wire.RateMax}
			s.MaxLoss = budget.AnyLoss()
			s.Count, s.Duration, s.Budget, s.Batch = 0, 2*time.Second, 2048, 256
			s.Attached = func() error { return lab.SetThreadedNAPI(veth.B, true) }
			o := run(t, s)
			refused := value(t, "refused", o.Frames.Refused)
			if refused == 0 {
				t.Fatalf("no frame was refused\n%s", rowsText(o))
			}
			if dropped := value(t, "tx_dropped", o.TxDropped); dropped != refused {
				t.Errorf("refused %d, the device dropped %d", refused, dropped)
			}
			expect(t, o, map[string]uint64{"unexplained": 0})
			if o.Verdict != budget.Pass {
				t.Errorf("verdict %s %v", o.Verdict, o.Reasons)
			}
		})
	}
}
