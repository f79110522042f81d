package main

import (
	"fmt"
	"net"
	"time"

	"linerate/internal/engine"
	"linerate/internal/frame"
	"linerate/internal/nic"
	"linerate/internal/report"
	"linerate/internal/trial"
	"linerate/internal/wire"
)

// newRunID names a run: its start and the id that its frames carry.
func newRunID(s trial.Spec) string {
	return fmt.Sprintf("%s-%04x", time.Now().UTC().Format("20060102T150405.000"), uint16(s.Run))
}

// runDocument turns an outcome into the document of the contract.
func runDocument(id string, o *trial.Outcome) report.Run {
	d := report.Run{
		Schema: report.RunSchema, Version: version, RunID: id, Started: o.Started.UTC(),
		DurationNs: report.Ptr(int64(o.Measured)), Spec: specDocument(o.Spec),
		Frames: o.Frames, Budget: o.Rows, Verdict: o.Verdict, Reasons: o.Reasons, Closed: o.Closed,
		Host: hostDocument(o.Spec),
	}
	if o.Spec.Tx != nil {
		d.Tx = endDocument(o.Spec.Tx, o.TxGranted)
		for _, q := range o.Tx.Queues {
			d.Tx.Queues = append(d.Tx.Queues, queueDocument(q.Queue, q.Submitted))
		}
	}
	if o.Spec.Rx != nil {
		d.Rx = endDocument(o.Spec.Rx, o.RxGranted)
		for _, q := range o.Rx.Queues {
			doc := queueDocument(q.Queue, q.Taken)
			if o.Predicted != nil {
				doc.Predicted = report.Ptr(o.Predicted[q.Queue.ID])
			}
			d.Rx.Queues = append(d.Rx.Queues, doc)
		}
	}
	d.Rate = rateDocument(o)
	d.Latency = latencyDocument(o)
	d.Streams = streamDocuments(o)
	d.CPU = report.CPU{BusyCoreSeconds: o.Busy}
	if o.Busy != nil {
		d.CPU.Method = "stat"
	}
	for _, r := range o.Remarks {
		d.Warnings = append(d.Warnings, report.Warn(report.Code(r.Code), r.Args...))
	}
	return d
}

func endDocument(e *trial.End, g engine.Granted) *report.End {
	return &report.End{Endpoint: e.Endpoint, Engine: string(e.Engine), Mode: report.Text(g.Mode),
		XDPMode: report.Text(g.XDPMode), Driver: report.Text(e.Port.Driver)}
}

func queueDocument(q engine.Queue, frames uint64) report.Queue {
	d := report.Queue{ID: q.ID, Frames: &frames}
	if q.CPU >= 0 {
		d.CPU = report.Ptr(q.CPU)
	}
	return d
}

func hostDocument(s trial.Spec) report.Host {
	f := nic.HostFacts()
	e := s.Tx
	if e == nil {
		e = s.Rx
	}
	return report.Host{Kernel: report.Text(f.Kernel), CPU: report.Text(f.CPU), Driver: report.Text(e.Port.Driver),
		DriverVersion: report.Text(e.Port.DriverVersion), Firmware: report.Text(e.Port.Firmware), PCI: report.Text(e.Port.PCI)}
}

func rateDocument(o *trial.Outcome) report.Rate {
	r := report.Rate{OfferedPPS: o.Rate.OfferedPPS, TxPPS: o.Rate.TxPPS, RxPPS: o.Rate.RxPPS, PacingErrorRatio: o.Rate.PacingError}
	if o.Rate.TxPPS != nil {
		r.TxL2BitsPerSec = report.Ptr(*o.Rate.TxPPS * o.Rate.TxMeanFrame * 8)
		r.TxL1BitsPerSec = report.Ptr(*o.Rate.TxPPS * (o.Rate.TxMeanFrame + wire.L1OverheadBytes) * 8)
		if speed := float64(o.Spec.Tx.Port.Speed); speed > 0 {
			r.LineRateRatio = report.Ptr(*r.TxL1BitsPerSec / speed)
		}
	}
	if o.Rate.RxPPS != nil {
		r.RxL1BitsPerSec = report.Ptr(*o.Rate.RxPPS * (o.Rate.RxMeanFrame + wire.L1OverheadBytes) * 8)
	}
	if g := o.Rx.Gaps; g != nil {
		r.Gap = &report.Gap{P50: &g.P50, P99: &g.P99, Max: &g.Max}
	}
	if o.Spec.Tx != nil {
		r.Stalls = &report.Stalls{Count: o.Rate.StallCount, SumNs: o.Rate.StallNs, LongestNs: o.Rate.LongestStall}
	}
	return r
}

func latencyDocument(o *trial.Outcome) *report.Latency {
	if o.Spec.Tx == nil || o.Spec.Rx == nil || o.Spec.Action != trial.Verify {
		return nil // the ends need not share a clock
	}
	if len(o.Rx.Queues) == 0 {
		return nil // the receiver took it along
	}
	l := &report.Latency{NoStamp: report.Ptr(o.Rx.NoStamp)}
	h := o.Rx.Latency
	if h == nil {
		return l
	}
	l.Count, l.Min, l.Max = h.Count, &h.Min, &h.Max
	l.P50, l.P90, l.P99, l.P999 = &h.P50, &h.P90, &h.P99, &h.P999
	l.Clock = "CLOCK_MONOTONIC"
	var bias, batches, own uint64
	for _, q := range o.Tx.Queues {
		bias += q.BiasNs * q.Batches
		batches += q.Batches
		own += q.OwnQueue
	}
	if batches > 0 {
		l.BiasNs = report.Ptr(int64(bias / batches))
	}
	l.IncludesOwnQueue = own > 0
	return l
}

// streamDocuments joins what each stream's workers sent with what came of it.
func streamDocuments(o *trial.Outcome) []report.Stream {
	if o.Spec.Streams != nil && (o.Spec.Rx == nil || o.Spec.Action != trial.Verify) {
		return sentStreams(o.SentByStream)
	}
	s := report.Stream{ID: int(o.Spec.Stream.ID)}
	if o.Spec.Tx != nil && o.Spec.Rx != nil || o.Spec.Tx != nil {
		s.Sent = o.Frames.Sent
	}
	if o.Spec.Rx == nil || o.Spec.Action != trial.Verify {
		return []report.Stream{s}
	}
	var out []report.Stream
	for _, t := range o.Rx.Streams {
		d := report.Stream{ID: int(t.Stream), Received: report.Ptr(t.Distinct), Duplicate: report.Ptr(t.Duplicate),
			Reordered: report.Ptr(t.Reordered), Corrupt: report.Ptr(t.Corrupt)}
		if o.Spec.Streams != nil {
			d.Sent, d.Lost = sentOf(o.SentByStream, t)
		} else if int(t.Stream) == s.ID && s.Sent != nil {
			d.Sent, d.Lost = s.Sent, o.Frames.Lost
		} else if t.EndSeen {
			d.Sent = report.Ptr(t.EndSent)
			d.Lost = report.Ptr(t.EndSent - min(t.EndSent, t.Distinct+t.Corrupt+t.TooLate))
		}
		out = append(out, d)
	}
	if len(out) == 0 && s.Sent != nil {
		s.Received, s.Lost = o.Frames.Received, o.Frames.Lost
		out = append(out, s)
	}
	return out
}

// sentStreams are the streams of a file of which only the sending is known.
func sentStreams(sent []uint64) (out []report.Stream) {
	for i, n := range sent {
		out = append(out, report.Stream{ID: i, Sent: report.Ptr(n)})
	}
	return out
}

// sentOf is what was sent and lost of a stream of a file, nil where not known.
func sentOf(sent []uint64, t frame.StreamTotals) (n, lost *uint64) {
	if int(t.Stream) >= len(sent) {
		return nil, nil
	}
	n = &sent[t.Stream]
	return n, report.Ptr(*n - min(*n, t.Distinct+t.Corrupt+t.TooLate))
}

// specDocument is what was asked for, by the names of the flags.
func specDocument(s trial.Spec) map[string]any {
	d := map[string]any{
		"duration_ns": int64(s.Duration), "count": s.Count, "warmup_ns": int64(s.Warmup), "settle_ns": int64(s.Settle),
		"interval_ns": int64(s.Interval), "batch": s.Batch, "budget": s.Budget, "ring": s.RingSize, "action": s.Action, "seed": s.Seed,
		"max_loss": s.MaxLoss.String(), "max_rate_error_ratio": s.MaxRateError, "trace_drops": s.TraceDrops,
		"payload_check": s.PayloadCheck,
	}
	if s.Reflector != nil {
		d["reflector"] = s.Reflector.Endpoint
	}
	if s.Foreign != "" {
		d["foreign"] = s.Foreign
	}
	if s.Capture != nil {
		d["capture"] = s.Capture.String()
	}
	if r := s.Replay; r != nil {
		d["pcap"], d["loops"], d["pcap_stream"] = r.Path, r.Loops, r.Stream
		if r.Timed {
			d["pcap_speed"] = r.Speed
		} else {
			d["rate"] = s.Rate.String()
		}
		return d
	}
	if s.Streams != nil {
		d["streams"], d["stream_count"] = s.Streams.Path, len(s.Streams.Streams)
		return d
	}
	if s.Tx != nil {
		d["answer"] = len(s.Tx.Answers) > 0 || s.Rx != nil && len(s.Rx.Answers) > 0
		st := s.Stream.Stack
		d["frame"], d["rate"], d["flows"] = s.Stream.Sizes.String(), s.Rate.String(), s.Stream.Flows.Count
		d["src_mac"], d["dst_mac"] = macText(st.SrcMAC), macText(st.DstMAC)
		d["src_ip"], d["dst_ip"] = st.Src.String(), st.Dst.String()
		d["next_hop"] = hopDocument(s.Via, st.DstMAC)
		d["src_port"], d["dst_port"] = st.SrcPort, st.DstPort
		var vlans []uint16
		for _, v := range st.VLANs {
			vlans = append(vlans, v.ID)
		}
		d["vlan"] = vlans
	}
	return d
}

func macText(m [6]byte) string {
	return net.HardwareAddr(m[:]).String()
}

func intervalDocument(id string, p trial.Progress) report.Interval {
	i := report.Interval{Schema: report.IntervalSchema, RunID: id,
		StartNs: p.ElapsedNs - (p.Last.EndNs - p.Last.StartNs), EndNs: p.ElapsedNs}
	if r, ok := p.Last.TxRates(); ok && p.HasTx {
		i.Tx = &report.TxInterval{Offered: &p.Last.Tx.Offered, Sent: report.Ptr(p.Last.Sent()), Refused: &p.Last.Tx.Refused,
			PPS: report.Ptr(float64(r.PPS)), L1BitsPerSec: report.Ptr(float64(r.L1BitsPerSec)), L2BitsPerSec: report.Ptr(float64(r.L2BitsPerSec))}
	}
	if r, ok := p.Last.RxRates(); ok && p.HasRx {
		i.Rx = &report.RxInterval{Received: &p.Last.Rx.Taken,
			PPS: report.Ptr(float64(r.PPS)), L1BitsPerSec: report.Ptr(float64(r.L1BitsPerSec)), L2BitsPerSec: report.Ptr(float64(r.L2BitsPerSec))}
	}
	return i
}
