// Package metrics shows a run that is under way to Prometheus and whatever else
// reads OpenMetrics. It takes what the trial tells its observers once an
// interval: nothing on the data path knows of it.
package metrics

import (
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"linerate/internal/meter"
	"linerate/internal/trial"
	"linerate/internal/wire"
)

// Run says which run is shown; an end that is not in hand has no name.
type Run struct {
	ID, Version string
	Tx, Rx      string // endpoints
}

// totals are what the ends have done since the run began.
type totals struct {
	seconds                                  float64
	offered, sent, sentBytes, refused        float64
	received, receivedBytes                  float64
	sentPhysicalBytes, receivedPhysicalBytes float64
}

// Collector shows one run. Observe belongs to the trial's goroutine; Collect
// and Describe are anybody's.
type Collector struct {
	run  Run
	last atomic.Pointer[totals]

	info, elapsed *prometheus.Desc
	tx, rx        []series
}

// series is one counter of one end.
type series struct {
	desc  *prometheus.Desc
	value func(*totals) float64
}

// New returns a collector in which every counter of the run stands at 0.
func New(run Run) *Collector {
	c := &Collector{run: run,
		info: prometheus.NewDesc("linerate_run_info", "The run that is shown; the value is always 1.",
			nil, prometheus.Labels{"run_id": valid(run.ID), "version": valid(run.Version)}),
		elapsed: prometheus.NewDesc("linerate_elapsed_seconds", "How far into the run the counters were read.", nil, nil),
	}
	c.last.Store(&totals{})
	if run.Tx != "" {
		c.tx = []series{
			counter(run.Tx, "tx_offered_frames", "Frames that the offered load allowed.", func(t *totals) float64 { return t.offered }),
			counter(run.Tx, "tx_frames", "Frames submitted that the device did not refuse.", func(t *totals) float64 { return t.sent }),
			counter(run.Tx, "tx_refused_frames", "Frames that the device refused.", func(t *totals) float64 { return t.refused }),
			counter(run.Tx, "tx_bytes", "Bytes of the frames sent, FCS included (L2).", func(t *totals) float64 { return t.sentBytes }),
			counter(run.Tx, "tx_l1_bytes", "Bytes of the frames sent with preamble and gap (L1).", func(t *totals) float64 { return t.sentPhysicalBytes }),
		}
	}
	if run.Rx != "" {
		c.rx = []series{
			counter(run.Rx, "rx_frames", "Frames received.", func(t *totals) float64 { return t.received }),
			counter(run.Rx, "rx_bytes", "Bytes of the frames received, FCS included (L2).", func(t *totals) float64 { return t.receivedBytes }),
			counter(run.Rx, "rx_l1_bytes", "Bytes of the frames received with preamble and gap (L1).", func(t *totals) float64 { return t.receivedPhysicalBytes }),
		}
	}
	return c
}

// counter describes one counter; OpenMetrics wants its unit and then _total at
// the end of the name.
func counter(endpoint, name, help string, value func(*totals) float64) series {
	labels := prometheus.Labels{"endpoint": valid(endpoint)}
	return series{prometheus.NewDesc("linerate_"+name+"_total", help, nil, labels), value}
}

// valid makes a label value of a name: labels are UTF-8, names of files need not be.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// Observe takes what the trial has to tell: it is a trial.Observer.
func (c *Collector) Observe(p trial.Progress) {
	before := c.last.Load()
	t := sum(p.Total)
	t.seconds = float64(p.ElapsedNs) / 1e9
	// A frame that was sent may be refused later. A counter that went back
	// would look like a new one, so it waits.
	t.sent = max(t.sent, before.sent)
	t.sentBytes = max(t.sentBytes, before.sentBytes)
	t.sentPhysicalBytes = max(t.sentPhysicalBytes, before.sentPhysicalBytes)
	c.last.Store(&t)
}

// sum turns what happened since the beginning into the values shown, as the
// rates of an interval do.
func sum(i meter.Interval) totals {
	sent, received := float64(i.Sent()), float64(i.Rx.Taken)
	return totals{
		offered: float64(i.Tx.Offered), refused: float64(i.Tx.Refused),
		sent: sent, sentBytes: i.SentBytes(), sentPhysicalBytes: i.SentBytes() + wire.L1OverheadBytes*sent,
		received: received, receivedBytes: float64(i.Rx.Bytes),
		receivedPhysicalBytes: float64(i.Rx.Bytes) + wire.L1OverheadBytes*received,
	}
}

// Describe is part of prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	out <- c.info
	out <- c.elapsed
	for _, s := range append(c.tx[:len(c.tx):len(c.tx)], c.rx...) {
		out <- s.desc
	}
}

// Collect is part of prometheus.Collector: all values are of one moment, the
// end of the last interval.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	t := c.last.Load()
	out <- prometheus.MustNewConstMetric(c.info, prometheus.GaugeValue, 1)
	out <- prometheus.MustNewConstMetric(c.elapsed, prometheus.GaugeValue, t.seconds)
	for _, s := range append(c.tx[:len(c.tx):len(c.tx)], c.rx...) {
		out <- prometheus.MustNewConstMetric(s.desc, prometheus.CounterValue, s.value(t))
	}
}
