package trial

import (
	"context"
	"testing"

	"linerate/internal/budget"
	"linerate/internal/engine"
	"linerate/internal/lab/veth"
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
