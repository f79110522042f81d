package trial

import (
	"strings"
	"testing"
	"time"

	"linerate/internal/budget"
	"linerate/internal/engine"
	"linerate/internal/lab/veth"
	"linerate/internal/nettest"
	"linerate/internal/stream"
	"linerate/internal/wire"
)

// Faults that people reported of other tools, reproduced on veth: each must end
// in its name. The letters are those of the collection of public reports that
// the project keeps.
func TestPublicCases(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	for _, c := range []struct {
		name   string
		queues int
		set    func(t *testing.T, s *Spec)
		row    string // that must hold the frames,
		note   string // with this reason
		remark string
	}{
		{"C1 C6 one queue of two is read", 2, oneOfTwoQueues, budget.RowPassedToStack, "no_socket", ""},
		{"C3 the ring is too small", 1, smallRing, budget.RowRxRingFull, "", ""},
		{"C8 K7 frames of another run are left to the stack, and not dropped", 1, otherRun, budget.RowPassedToStack, "other_run", ""},
		{"D6 a kick moves a part of the ring only: again, not loss", 1, bigBatch, "", "", ""},
		{"K2 more than the line carries", 1, overLine, "", "", "line_rate_exceeded"},
		{"K3 K5 the rate asked is not reached", 1, tooFast, budget.RowUnsent, "", "rate_error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			lab := nettest.Lab(t, veth.Config{Queues: c.queues})
			s := spec(t, engine.XSK, lab.A(), lab.B())
			s.MaxRateError = 0.01
			c.set(t, &s)
			o := run(t, s)
			expect(t, o, map[string]uint64{"unexplained": 0})
			if c.row != "" && !named(o, c.row, c.note) {
				t.Errorf("no frames in %s (%s)\n%s", c.row, c.note, rowsText(o))
			}
			if c.remark != "" && !remarked(o, c.remark) {
				t.Errorf("no remark %s: %v", c.remark, o.Remarks)
			}
			if c.row == "" && c.remark == "" {
				expect(t, o, map[string]uint64{"sent": s.Count, "received": s.Count, "lost": 0})
			}
		})
	}
}

// The same of a file of streams: no frame is thrown away there, and the run
// gets longer instead (K3).
func TestStreamsTooFastFail(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	lab := nettest.Lab(t, veth.Config{})
	file, err := stream.Parse("f", []byte("streams: [{name: a, layers: [eth, ipv4, udp], frame: 64, rate: 10Mpps, count: 3000000}]"))
	if err != nil {
		t.Fatal(err)
	}
	for end, offered := range map[time.Duration]uint64{0: 3_000_000, 400 * time.Millisecond: 3_000_000} {
		s := spec(t, engine.XSK, lab.A(), lab.B())
		s.Streams, s.Count, s.Duration, s.MaxRateError = &Streams{Path: "f", Streams: file.Streams}, 0, end, 0.01
		o := run(t, s)
		expect(t, o, map[string]uint64{"offered": offered, "unexplained": 0})
		if !remarked(o, "rate_error") || o.Verdict != budget.Fail {
			t.Errorf("-t %s: verdict %s %v, remarks %v", end, o.Verdict, o.Reasons, o.Remarks)
		}
	}
}

// named says that a row holds frames and gives the reason.
func named(o *Outcome, row, note string) bool {
	for _, r := range o.Rows {
		if r.Row == row && r.Frames != nil && *r.Frames > 0 && strings.Contains(r.Note, note) {
			return true
		}
	}
	return false
}

func remarked(o *Outcome, code string) bool {
	for _, r := range o.Remarks {
		if r.Code == code {
			return true
		}
	}
	return false
}

func oneOfTwoQueues(_ *testing.T, s *Spec) {
	s.Tx.Queues = []engine.Queue{{ID: 0, CPU: -1}, {ID: 1, CPU: -1}}
	s.Stream.Flows.Count, s.MaxLoss, s.MaxRateError = 2, budget.AnyLoss(), 10
}

func smallRing(t *testing.T, s *Spec) {
	unbounded(t, s)
	s.RingSize, s.Count, s.MaxLoss = 64, 100_000, budget.AnyLoss()
}

func otherRun(_ *testing.T, s *Spec) {
	s.Steer.Run, s.MaxLoss, s.MaxRateError = 0x1111, budget.AnyLoss(), 10
}

func bigBatch(_ *testing.T, s *Spec) {
	s.Batch, s.Budget, s.RingSize, s.MaxRateError = 256, 256, 1<<14, 10
}

// overLine sends 1518 bytes without a bound through a port that calls itself
// 10 Mbit/s.
func overLine(t *testing.T, s *Spec) {
	unbounded(t, s)
	slow := *s.Tx.Port
	slow.Speed = 10e6
	s.Tx.Port, s.Count, s.MaxLoss = &slow, 20_000, budget.AnyLoss()
}

func tooFast(t *testing.T, s *Spec) {
	rate, err := wire.ParseRate("14Mpps")
	if err != nil {
		t.Fatal(err)
	}
	s.Rate, s.Count, s.MaxLoss = rate, 3_000_000, budget.AnyLoss()
}

func unbounded(t *testing.T, s *Spec) {
	t.Helper()
	sizes, err := wire.ParseSizes("1518")
	if err != nil {
		t.Fatal(err)
	}
	s.Stream.Sizes, s.Rate = sizes, wire.Rate{Kind: wire.RateMax}
}
