package meter

import "linerate/internal/wire"

// Snapshot is the state of all workers at one time.
type Snapshot struct {
	AtNs int64 // CLOCK_MONOTONIC
	Tx   []TxCounts
	Rx   []RxCounts
}

// Take reads every worker. Receivers are read first: what has arrived was sent
// before. Any element may be nil: that worker counts nothing.
func Take(atNs int64, tx []*TxCounters, rx []*RxCounters) Snapshot {
	s := Snapshot{AtNs: atNs, Tx: make([]TxCounts, len(tx)), Rx: make([]RxCounts, len(rx))}
	for i, c := range rx {
		if c != nil {
			s.Rx[i] = c.Read()
		}
	}
	for i, c := range tx {
		if c != nil {
			s.Tx[i] = c.Read()
		}
	}
	return s
}

// Interval is what happened between two snapshots.
type Interval struct {
	StartNs, EndNs int64
	Tx             TxCounts   // over all senders
	Rx             RxCounts   // over all receivers
	TxQueues       []TxCounts // per sender
	RxQueues       []RxCounts // per receiver
	// Reset says that a counter began anew in between: what it had counted
	// between the first snapshot and the reset is missing.
	Reset bool
}

// Between is the difference of two snapshots, a before b. A counter that wrapped
// is followed through the wrap; one that was reset counts from 0.
func Between(a, b Snapshot) Interval {
	i := Interval{StartNs: a.AtNs, EndNs: b.AtNs}
	i.Reset = len(b.Tx) < len(a.Tx) || len(b.Rx) < len(a.Rx)
	for k, now := range b.Tx {
		var before TxCounts
		if k < len(a.Tx) {
			before = a.Tx[k]
		}
		d := i.txDelta(before, now)
		i.TxQueues = append(i.TxQueues, d)
		i.Tx.add(d)
	}
	for k, now := range b.Rx {
		var before RxCounts
		if k < len(a.Rx) {
			before = a.Rx[k]
		}
		d := i.rxDelta(before, now)
		i.RxQueues = append(i.RxQueues, d)
		i.Rx.add(d)
	}
	return i
}

func (i *Interval) txDelta(a, b TxCounts) TxCounts {
	return TxCounts{
		Offered:   i.delta(a.Offered, b.Offered),
		Submitted: i.delta(a.Submitted, b.Submitted),
		Completed: i.delta(a.Completed, b.Completed),
		Refused:   i.delta(a.Refused, b.Refused),
		Invalid:   i.delta(a.Invalid, b.Invalid),
		Bytes:     i.delta(a.Bytes, b.Bytes),
		Kicks:     i.delta(a.Kicks, b.Kicks),
		Again:     i.delta(a.Again, b.Again),
		Stalls:    i.delta(a.Stalls, b.Stalls),
		OffCPUNs:  i.delta(a.OffCPUNs, b.OffCPUNs),
	}
}

func (i *Interval) rxDelta(a, b RxCounts) RxCounts {
	return RxCounts{
		Taken: i.delta(a.Taken, b.Taken),
		Good:  i.delta(a.Good, b.Good),
		Bytes: i.delta(a.Bytes, b.Bytes),
		Wakes: i.delta(a.Wakes, b.Wakes),
	}
}

// delta is b - a modulo 2^64. No counter moves by half its range between two
// snapshots, so a difference that large is a step back: a reset.
func (i *Interval) delta(a, b uint64) uint64 {
	d := b - a
	if d >= 1<<63 {
		i.Reset = true
		return b
	}
	return d
}

func (t *TxCounts) add(d TxCounts) {
	t.Offered += d.Offered
	t.Submitted += d.Submitted
	t.Completed += d.Completed
	t.Refused += d.Refused
	t.Invalid += d.Invalid
	t.Bytes += d.Bytes
	t.Kicks += d.Kicks
	t.Again += d.Again
	t.Stalls += d.Stalls
	t.OffCPUNs += d.OffCPUNs
}

func (r *RxCounts) add(d RxCounts) {
	r.Taken += d.Taken
	r.Good += d.Good
	r.Bytes += d.Bytes
	r.Wakes += d.Wakes
}

// Rates is what one end did per second.
type Rates struct {
	PPS          wire.PPS
	L2BitsPerSec wire.BitsPerSec // FCS included
	L1BitsPerSec wire.BitsPerSec // and 20 bytes per frame
}

// Sent is the frames submitted that the device did not refuse. It refuses some
// of them later: an interval in which more were refused than submitted sent none.
func (i Interval) Sent() uint64 { return i.Tx.Submitted - min(i.Tx.Submitted, i.Tx.Refused) }

// SentBytes is the L2 bytes of the frames sent, FCS included. Nobody knows the
// sizes of the frames refused: they are taken to be as long as the others.
func (i Interval) SentBytes() float64 {
	if i.Tx.Submitted == 0 {
		return 0
	}
	return float64(i.Sent()) / float64(i.Tx.Submitted) * float64(i.Tx.Bytes)
}

// TxRates is the rate of the frames sent; ok is false for an interval without
// duration.
func (i Interval) TxRates() (r Rates, ok bool) {
	return i.rates(i.Sent(), i.SentBytes())
}

// RxRates is the rate of the frames taken; ok is false for an interval without
// duration.
func (i Interval) RxRates() (r Rates, ok bool) { return i.rates(i.Rx.Taken, float64(i.Rx.Bytes)) }

func (i Interval) rates(frames uint64, l2 float64) (Rates, bool) {
	if i.EndNs <= i.StartNs {
		return Rates{}, false
	}
	seconds := float64(i.EndNs-i.StartNs) / 1e9
	n := float64(frames)
	return Rates{
		PPS:          wire.PPS(n / seconds),
		L2BitsPerSec: wire.BitsPerSec(8 * l2 / seconds),
		L1BitsPerSec: wire.BitsPerSec(8 * (l2 + wire.L1OverheadBytes*n) / seconds),
	}, true
}
