package trial

import (
	"context"
	"testing"
	"time"

	"linerate/internal/budget"
	"linerate/internal/engine"
	"linerate/internal/lab/veth"
	"linerate/internal/neighbor"
	"linerate/internal/nettest"
)

// Through a router the wire is no cable, and still every counter on both sides
// of it has to fit: each falsified by 7 shows as 7.
func TestBudgetNoticesEveryCounterThroughARouter(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	lab := nettest.Router(t, veth.Config{})
	s := spec(t, engine.XSK, lab.A(), lab.B())
	s.Count = 500
	st := &s.Stream.Stack
	st.Dst = addr(nettest.RouterB4)
	hop, err := s.Tx.Port.Resolve(context.Background(), st.Dst)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Tx.Port.Prime(context.Background(), st.Dst); err != nil {
		t.Fatal(err)
	}
	st.DstMAC, s.Via = hop.MAC, &hop
	expect(t, run(t, s), map[string]uint64{"sent": 500, "received": 500, "lost": 0, "unexplained": 0})
	for _, row := range []string{budget.RowDeviceTx, budget.RowDUTLost, budget.RowDUTOwn, budget.RowDeviceRx, budget.RowXDPSeen, budget.RowReceived} {
		s.Tamper = Tamper{Row: row, Offset: 7}
		noticed(t, run(t, s), row, 7)
	}
}

// What is answered and announced during a trial is in the budget of a cable and
// of a router, and not in the offered load.
func TestAnswersAreAccountedFor(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	for _, router := range []bool{false, true} {
		build, dst := nettest.Lab, "198.18.0.2"
		if router {
			build, dst = nettest.Router, nettest.RouterB4
		}
		lab := build(t, veth.Config{})
		s := spec(t, engine.XSK, lab.A(), lab.B())
		s.Stream.Stack.Src, s.Stream.Stack.Dst = addr("198.18.0.10"), addr(dst)
		hop, err := s.Tx.Port.Resolve(context.Background(), addr(dst))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Tx.Port.Prime(context.Background(), addr(dst)); err != nil {
			t.Fatal(err)
		}
		s.Stream.Stack.DstMAC, s.Via = hop.MAC, &hop
		s.Tx.Answers = []neighbor.Range{{Lo: addr("198.18.0.10"), Hi: addr("198.18.0.10")}}
		s.AnnounceEvery = 20 * time.Millisecond
		o := run(t, s)
		expect(t, o, map[string]uint64{"sent": 2000, "received": 2000, "lost": 0, "unexplained": 0})
		var rows []uint64
		for _, r := range o.Rows {
			if r.Row == budget.RowNeighborTx {
				rows = append(rows, value(t, r.Row, r.Frames))
			}
		}
		if len(rows) == 0 || rows[0] == 0 || router != (len(rows) == 2) {
			t.Errorf("router %v: %s %v", router, budget.RowNeighborTx, rows)
		}
		s.Tamper = Tamper{Row: budget.RowNeighborTx, Offset: 7}
		noticed(t, run(t, s), budget.RowNeighborTx, 7)
	}
}
