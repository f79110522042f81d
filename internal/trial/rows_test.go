package trial

import (
	"testing"

	"linerate/bpf"
	"linerate/internal/budget"
	"linerate/internal/engine"
	"linerate/internal/frame"
	"linerate/internal/nic"
	"linerate/internal/wire"
	"linerate/xsk"
)

// ixgbeAt is what an ixgbe says: by its driver it sent so many on queue 0, by
// the NIC itself so many.
func ixgbeAt(driver, hardware uint64) nic.Counters {
	return nic.Counters{Driver: ixgbe, Ethtool: map[string]uint64{"tx_queue_0_packets": driver, "tx_pkts_nic": hardware}}
}

// ixgbeTrial is a trial from one ixgbe to another, of 10 frames.
func ixgbeTrial(mtu, chunk int) *running {
	end := &End{Port: &nic.Port{Name: "eth1", Driver: ixgbe, MTU: mtu}, Endpoint: "eth1", Engine: engine.XSK, Chunk: chunk}
	r := &running{spec: Spec{Tx: end, Rx: end}, out: &Outcome{RxGranted: engine.Granted{Mode: "zerocopy"}}}
	r.out.Tx.Queues = []engine.TxQueue{{Submitted: 10, Completed: 10}}
	r.base.tx, r.last.tx = ixgbeAt(5, 7), ixgbeAt(15, 17)
	return r
}

// The driver counts what it took back, the NIC what it sent: two checkpoints.
func TestDriverAndNICMustAgree(t *testing.T) {
	for _, lost := range []uint64{0, 3} {
		r := ixgbeTrial(1500, 4096)
		r.last.tx = ixgbeAt(15, 17-lost)
		b := &builder{}
		r.offerRows(b)
		r.txKernelRows(b)
		if err := budget.Check(b.rows); err != nil {
			t.Error(err)
		}
		// 10 offered is not what this trial has; only the stage at hand counts.
		for _, res := range budget.Close(b.rows).Residuals {
			if res.From == budget.RowDeviceTx && res.To == budget.RowDeviceTx && res.Frames != int64(lost) {
				t.Errorf("%d frames vanished in the NIC: %d unexplained", lost, res.Frames)
			}
			if res.From == budget.RowCompleted && res.Frames != 0 {
				t.Errorf("completed to the driver's count: %d", res.Frames)
			}
		}
		if n := len(b.rows); b.rows[n-1].Counter != "tx_pkts_nic" || b.rows[n-2].Counter != "tx_queue_0_packets" {
			t.Errorf("last rows %+v", b.rows[n-2:])
		}
	}
}

// What no counter of the driver counts is none only under a condition.
func TestOverBufferRow(t *testing.T) {
	for _, c := range []struct {
		mtu, chunk int
		exact      bool
	}{{1500, 4096, true}, {3050, 4096, true}, {3051, 4096, false}, {1500, 2048, false}, {1002, 2048, true}} {
		r, b := ixgbeTrial(c.mtu, c.chunk), &builder{}
		r.programRows(b)
		if len(b.rows) != 1 || b.rows[0].Row != budget.RowOverBuffer || b.rows[0].Exact != c.exact || b.rows[0].Note == "" {
			t.Fatalf("MTU %d, chunk %d: %+v", c.mtu, c.chunk, b.rows)
		}
		if n := b.rows[0].Frames; (n != nil) != c.exact || n != nil && *n != 0 {
			t.Errorf("MTU %d, chunk %d: %v frames", c.mtu, c.chunk, n)
		}
		b.port(budget.RxDriver, budget.Checkpoint, budget.RowXDPSeen, budget.Count(0), "bpf", "seen", "")
		if err := budget.Check(b.rows); err != nil {
			t.Error(err)
		}
	}
	r, b := ixgbeTrial(1500, 2048), &builder{}
	r.out.RxGranted.Mode = "copy" // into the driver's own pages
	if r.programRows(b); len(b.rows) != 0 {
		t.Errorf("copy mode: %+v", b.rows)
	}
}

// The frames that would vanish are refused before they are sent.
func TestFrameLimitOfIxgbe(t *testing.T) {
	for _, c := range []struct {
		chunk int
		zc    xsk.ZeroCopy
		most  wire.FrameLen
	}{{2048, xsk.Prefer, 1028}, {2048, xsk.Require, 1028}, {2048, xsk.Forbid, 1796}, {4096, xsk.Prefer, 3072}, {4096, xsk.Forbid, 3072}} {
		r := ixgbeTrial(9000, c.chunk)
		rx := *r.spec.Rx
		rx.ZeroCopy = c.zc
		r.spec.Rx = &rx
		if got := r.spec.frameLimit(&rx); got.frame != c.most || got.why == "" {
			t.Errorf("chunk %d, zero-copy %v: %+v, want %d", c.chunk, c.zc, got, c.most)
		}
		r.spec.Stream = frame.Stream{Sizes: sizes(t, "64")}
		if err := r.spec.validateSize(&rx); err != nil {
			t.Error(err)
		}
		r.spec.Stream.Sizes = sizes(t, "4000")
		if err := r.spec.validateSize(&rx); err == nil {
			t.Errorf("chunk %d: a frame of 4000 bytes is let in", c.chunk)
		}
	}
}

func sizes(t *testing.T, s string) wire.Sizes {
	t.Helper()
	z, err := wire.ParseSizes(s)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// Frames of the run on a queue without a socket go to the stack. They are lost,
// and nobody else's.
func TestOurFramesAreNotForeign(t *testing.T) {
	r := &running{spec: Spec{Rx: &End{}}, out: &Outcome{}}
	r.rx = noReceiver{}
	reasons := map[string]uint64{}
	for _, reason := range bpf.PassReasons() {
		reasons[string(reason)] = 1
	}
	r.last.program.Passed = map[int]map[string]uint64{0: reasons, 1: {string(bpf.ReasonNoTag): 2}}
	r.base.program.Passed = map[int]map[string]uint64{0: {string(bpf.ReasonNoTag): 1}}
	r.addPassed()
	f := r.out.Frames.Foreign
	ours, unreadable := uint64(3), uint64(5)
	if *f.OtherRun != 1 || *f.Unreadable != unreadable || *f.Untagged != uint64(len(reasons))+1-1-ours-unreadable {
		t.Errorf("other run %d, unreadable %d, untagged %d", *f.OtherRun, *f.Unreadable, *f.Untagged)
	}
}

// noReceiver stands where only the presence of one counts.
type noReceiver struct{ engine.Receiver }

// An event may have emptied every ring, once, and no more than they hold.
func TestEventsHoldWhatTheRingsHold(t *testing.T) {
	queues := func(n int) *End { return &End{Queues: make([]engine.Queue, n)} }
	for _, c := range []struct {
		tx, rx *End
		want   uint64
	}{{queues(1), nil, 512 + 2048}, {nil, queues(3), 3 * (512 + 64)}, {queues(2), queues(1), 2*(512+2048) + 512 + 64}} {
		r := &running{spec: Spec{Tx: c.tx, Rx: c.rx, Budget: 2048, RingSize: 64}, out: &Outcome{}}
		if got := r.budgetEvents(); len(got) != 0 {
			t.Errorf("nothing happened: %v", got)
		}
		r.out.Events = []Event{{"a", "link down"}, {"a", "link up"}}
		got := r.budgetEvents()
		if len(got) != 2 || got[0].Limit != c.want || got[0].Kind != "link down" || got[1].Limit != 0 {
			t.Errorf("%v, want %d at once", got, c.want)
		}
	}
}
