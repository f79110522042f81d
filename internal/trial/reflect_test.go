package trial

import (
	"testing"

	"linerate/internal/budget"
	"linerate/internal/engine"
	"linerate/internal/lab/veth"
	"linerate/internal/nettest"
)

// reflectSpec sends from one port, has the other send everything back, and
// verifies at the first.
func reflectSpec(t *testing.T, tx engine.Name, lab *veth.Lab) Spec {
	t.Helper()
	s := spec(t, engine.XSK, lab.A(), lab.B())
	s.Tx.Engine, s.Reflector = tx, s.Rx
	back := *s.Tx
	back.Engine = engine.XDP
	s.Rx = &back
	return s
}

// What is sent back is verified at its sender, and every counter on the way
// takes part in the sum.
func TestReflectedFramesAreAccountedFor(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	for _, tx := range []engine.Name{engine.XSK, engine.Live} {
		t.Run(string(tx), func(t *testing.T) {
			lab := nettest.Lab(t, veth.Config{})
			base := reflectSpec(t, tx, lab)
			o := run(t, base)
			expect(t, o, map[string]uint64{"sent": 2000, "received": 2000, "lost": 0, "corrupt": 0, "unexplained": 0})
			if o.Rx.Latency == nil {
				t.Error("no round trip was timed")
			}
			for _, row := range []string{budget.RowReflectorRx, budget.RowReflectorSeen, budget.RowReflectorPassed,
				budget.RowReflected, budget.RowReflectError} {
				s := base
				s.Tamper = Tamper{Row: row, Offset: 7}
				noticed(t, run(t, s), row, 7)
			}
		})
	}
}
