package report_test

import (
	"time"

	"linerate/internal/budget"
	"linerate/internal/report"
)

// The examples of the contract, from rows that a real run could have counted.
// Every one goes the way of a run: rows, Close, Tally, Judge.

const duration = int64(3e9)

func one(b budget.Boundary, k budget.Kind, row string, queue *int, n uint64, source, counter string) budget.Row {
	return budget.Row{Row: row, Boundary: b, Queue: queue, Direction: "a-b", Kind: k, Frames: budget.Count(n),
		Source: source, Counter: counter, Exact: true}
}

// counts is what happens on the veth path; the rest follows.
type counts struct {
	offered, unsent, ends uint64
	refused               uint64
	wire                  uint64 // lost between the devices, uncounted
	purged                uint64 // lost in the receiver's driver, uncounted
	ringFull              uint64
	untagged              uint64
}

func txRows(c counts) []budget.Row {
	q := budget.Queue(0)
	submitted := c.offered - c.unsent + c.ends
	rows := []budget.Row{
		one(budget.BoundaryOffer, budget.Checkpoint, budget.RowOffered, q, c.offered, "pace", "granted"),
		one(budget.BoundaryOffer, budget.Loss, budget.RowUnsent, q, c.unsent, "pace", "granted - written"),
		one(budget.BoundaryOffer, budget.Gain, budget.RowEndFrames, q, c.ends, "engine", "END frames"),
		one(budget.BoundaryOffer, budget.Checkpoint, budget.RowSubmitted, q, submitted, "xsk", "TX producer"),
		one(budget.TxKernel, budget.Checkpoint, budget.RowCompleted, q, submitted, "xsk", "completion consumer"),
		one(budget.TxKernel, budget.Loss, budget.RowDescriptorInvalid, q, 0, "xsk", "tx_invalid_descs"),
		one(budget.TxKernel, budget.Loss, budget.RowDeviceRefused, q, c.refused, "xsk", "sendto EBUSY"),
		one(budget.TxKernel, budget.Gain, budget.RowStackTx, nil, 0, "tracepoint", "net_dev_xmit"),
		one(budget.TxKernel, budget.Checkpoint, budget.RowDeviceTx, nil, submitted-c.refused, "stats64", "tx_packets"),
	}
	return rows
}

func rxRows(c counts) []budget.Row {
	q := budget.Queue(0)
	wire := c.offered - c.unsent + c.ends - c.refused - c.wire
	seen := wire - c.purged
	taken := seen - c.untagged - c.ringFull
	return []budget.Row{
		one(budget.Wire, budget.Checkpoint, budget.RowDeviceRx, nil, wire, "stats64", "rx_packets"),
		one(budget.RxDriver, budget.Loss, budget.RowXDPDrops, q, 0, "ethtool", "rx_queue_0_xdp_drops"),
		one(budget.RxDriver, budget.Checkpoint, budget.RowXDPSeen, q, seen, "bpf", "seen"),
		one(budget.RxXDP, budget.Loss, budget.RowPassedToStack, q, c.untagged, "bpf", "pass: not tagged"),
		one(budget.RxXDP, budget.Checkpoint, budget.RowRedirected, q, seen-c.untagged, "bpf", "redirected"),
		one(budget.RxSocket, budget.Loss, budget.RowFillEmpty, q, 0, "xsk", "rx_fill_ring_empty_descs"),
		one(budget.RxSocket, budget.Loss, budget.RowRxRingFull, q, c.ringFull, "xsk", "rx_ring_full"),
		one(budget.RxSocket, budget.Checkpoint, budget.RowTaken, q, taken, "xsk", "RX consumer"),
		one(budget.Verify, budget.Loss, budget.RowEndFrames, nil, c.ends, "verify", "END frames"),
		one(budget.Verify, budget.Loss, budget.RowDuplicate, nil, 0, "verify", "duplicate"),
		one(budget.Verify, budget.Loss, budget.RowCorrupt, nil, 0, "verify", "corrupt"),
		one(budget.Verify, budget.Loss, budget.RowForeignOtherRun, nil, 0, "verify", "other run"),
		one(budget.Verify, budget.Loss, budget.RowForeignUntagged, nil, 0, "verify", "untagged"),
		one(budget.Verify, budget.Loss, budget.RowForeignUnreadable, nil, 0, "verify", "unreadable"),
		one(budget.Verify, budget.Loss, budget.RowTooLate, nil, 0, "verify", "too late"),
		one(budget.Verify, budget.Checkpoint, budget.RowReceived, nil, taken-c.ends, "verify", "distinct"),
	}
}

// base is everything about a run but its frames.
func base(id, command string) report.Run {
	return report.Run{
		Schema: report.RunSchema, Version: "0.1.0", RunID: id,
		Started: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), DurationNs: report.Ptr(duration),
		Spec: map[string]any{"command": command, "frame": "64", "rate": "100kpps", "duration": "3s", "max_loss": "0"},
		Host: report.Host{Kernel: "6.18.0", CPU: "Example CPU @ 2.10GHz", Driver: "veth", DriverVersion: "1.0"},
	}
}

func end(endpoint string, frames uint64) *report.End {
	return &report.End{Endpoint: endpoint, Engine: "xsk", Mode: "copy", XDPMode: "native", Driver: "veth",
		Queues: []report.Queue{{ID: 0, CPU: report.Ptr(0), Frames: budget.Count(frames)}}}
}

// finish adds what follows from the rows.
func finish(run report.Run, s budget.Sequence, j budget.Judgement, events ...budget.Event) report.Run {
	run.Closed = budget.Close(run.Budget, events...)
	run.Frames = budget.Tally(run.Budget, s, run.Closed)
	j.Frames, j.Known = run.Frames, run.Closed.Known
	run.Verdict, run.Reasons = budget.Judge(j)
	f := run.Frames
	stream := report.Stream{ID: 0, Sent: f.Sent, Received: f.Received, Lost: f.Lost, Duplicate: f.Duplicate,
		Reordered: f.Reordered, Corrupt: f.Corrupt}
	run.Streams = []report.Stream{stream}
	perSecond := func(n *uint64) *float64 {
		if n == nil {
			return nil
		}
		return report.Ptr(float64(*n) / 3)
	}
	l1 := func(pps *float64, bytes float64) *float64 {
		if pps == nil {
			return nil
		}
		return report.Ptr(*pps * bytes * 8)
	}
	run.Rate.OfferedPPS, run.Rate.TxPPS, run.Rate.RxPPS = perSecond(f.Offered), perSecond(f.Sent), perSecond(f.Received)
	run.Rate.TxL1BitsPerSec, run.Rate.TxL2BitsPerSec = l1(run.Rate.TxPPS, 84), l1(run.Rate.TxPPS, 64)
	run.Rate.RxL1BitsPerSec = l1(run.Rate.RxPPS, 84)
	if run.Rate.TxL1BitsPerSec != nil {
		run.Rate.LineRateRatio = report.Ptr(*run.Rate.TxL1BitsPerSec / 10e9)
	}
	return run
}

func verified() budget.Sequence {
	return budget.Sequence{Reordered: budget.Count(0), ReorderedBetween: budget.Count(0)}
}

// both is a run with both ends in hand.
func both(id, command string, c counts) report.Run {
	run := base(id, command)
	run.Tx, run.Rx = end("lr-a/lr0", c.offered-c.unsent), end("lr-b/lr0", c.offered-c.unsent-c.refused-c.wire-c.purged)
	run.Budget = append(txRows(c), rxRows(c)...)
	run.Rate.Gap = &report.Gap{P50: report.Ptr(int64(10_010)), P99: report.Ptr(int64(11_200)), Max: report.Ptr(int64(412_000))}
	run.Rate.Stalls = &report.Stalls{Count: 2, SumNs: 650_000, LongestNs: 402_000}
	run.Rate.PacingErrorRatio = report.Ptr(0.0003)
	run.Latency = &report.Latency{Count: 4688, Min: report.Ptr(int64(2100)), P50: report.Ptr(int64(6400)),
		P90: report.Ptr(int64(9800)), P99: report.Ptr(int64(21_500)), P999: report.Ptr(int64(96_000)),
		Max: report.Ptr(int64(402_000)), Clock: "CLOCK_MONOTONIC", BiasNs: report.Ptr(int64(310)), NoStamp: budget.Count(0)}
	run.CPU = report.CPU{TxNsPerFrame: nil, RxNsPerFrame: nil, BusyCoreSeconds: report.Ptr(5.71), Method: "stat"}
	run.Warnings = []report.Warning{report.Warn(report.WarnCPUSharedSoftirq)}
	return run
}

func demo() report.Run {
	run := both("4c52", "demo", counts{offered: 300_000, ends: 10})
	return finish(run, verified(), budget.Judgement{RateError: report.Ptr(0.0003), MaxRateError: 0.01})
}

func blast() report.Run {
	c := counts{offered: 300_000, unsent: 12, ends: 10, refused: 3}
	run := base("77a0", "blast")
	run.Tx, run.Budget = end("eth1", c.offered-c.unsent), txRows(c)
	return finish(run, budget.Sequence{}, budget.Judgement{OneEnd: true})
}

func sink() report.Run {
	run := base("0b1e", "sink")
	c := counts{offered: 300_000, ends: 10, untagged: 4}
	run.Rx, run.Budget = end("eth1", c.offered), rxRows(c)
	s := verified()
	s.EndSent = budget.Count(300_000)
	// Four frames of somebody else were on the link: what the sender sent is
	// received all the same.
	for i, r := range run.Budget {
		if r.Kind == budget.Checkpoint && r.Row != budget.RowReceived {
			run.Budget[i].Frames = budget.Count(*r.Frames + 4)
		}
		if r.Row == budget.RowReceived || r.Row == budget.RowRedirected || r.Row == budget.RowTaken {
			run.Budget[i].Frames = budget.Count(map[string]uint64{
				budget.RowReceived: 300_000, budget.RowRedirected: 300_010, budget.RowTaken: 300_010}[r.Row])
		}
	}
	run.Warnings = []report.Warning{report.Warn(report.WarnNoLatencyClock, "the sender's clock is not this host's")}
	return finish(run, s, budget.Judgement{OneEnd: true})
}

func sinkNoEnd() report.Run {
	run := base("0b1f", "sink")
	c := counts{offered: 250_000}
	run.Rx, run.Budget = end("eth1", c.offered), rxRows(c)
	run.Warnings = []report.Warning{report.Warn(report.WarnTailUnknown, 17, 1, 1)}
	return finish(run, verified(), budget.Judgement{OneEnd: true, Invalid: report.Invalidating(run.Warnings)})
}

func overload() report.Run {
	c := counts{offered: 4_100_000, unsent: 208, ends: 10, refused: 95_278, ringFull: 1203}
	run := both("beef", "run", c)
	run.Spec = map[string]any{"command": "run", "frame": "64", "rate": "max", "duration": "3s", "max_loss": "any"}
	run.CPU.TxNsPerFrame, run.CPU.RxNsPerFrame = report.Ptr(612.0), report.Ptr(655.5)
	run.Warnings = []report.Warning{report.Warn(report.WarnLossAny, "--rate max")}
	run.Latency.IncludesOwnQueue = true
	run.Rate.PacingErrorRatio = nil
	return finish(run, verified(), budget.Judgement{MaxLoss: budget.AnyLoss()})
}

func lostOne() report.Run {
	run := both("1057", "run", counts{offered: 300_000, ends: 10, wire: 1})
	return finish(run, verified(), budget.Judgement{})
}

func linkDown() report.Run {
	event := budget.Event{Kind: "link_down", Limit: 256}
	run := both("d04e", "run", counts{offered: 300_000, unsent: 145_000, ends: 10, purged: 187})
	run.Budget = budget.Hold(run.Budget, event)
	run.Warnings = []report.Warning{report.Warn(report.WarnLinkEvent, "link down", "lr-b/lr0"),
		report.Warn(report.WarnHeldFrames, 187, "link down")}
	return finish(run, verified(), budget.Judgement{Invalid: report.Invalidating(run.Warnings)}, event)
}

// examples are the runs behind testdata/golden.
func examples() map[string]report.Run {
	return map[string]report.Run{"demo": demo(), "blast": blast(), "sink": sink(), "sink-no-end": sinkNoEnd(),
		"overload": overload(), "lost-one": lostOne(), "link-down": linkDown()}
}
