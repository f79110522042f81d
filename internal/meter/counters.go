// Package meter turns the counters of workers into snapshots, intervals and
// distributions.
//
// A worker counts in plain variables of its own and publishes them once per
// batch by atomic stores, on cache lines that no other worker writes. Anyone may
// read at any time.
package meter

import "sync/atomic"

// cacheLine is twice the line of current x86 and arm64 cores: the adjacent-line
// prefetcher pulls lines in pairs.
const cacheLine = 128

// TxCounts is what one sending worker has done since its start.
type TxCounts struct {
	Offered   uint64 // frames the pacer granted
	Submitted uint64 // frames written to the TX ring
	Completed uint64 // buffers back from the completion ring, refused ones too
	Refused   uint64 // frames the device refused (EBUSY in copy mode)
	Invalid   uint64 // descriptors the kernel rejected
	Bytes     uint64 // L2 bytes submitted, FCS included
	Kicks     uint64 // wake-up calls
	Again     uint64 // wake-up calls that the kernel answered with "later"
	Stalls    uint64 // gaps over 200 us between batches
	OffCPUNs  uint64 // sum of those gaps, nanoseconds
}

// RxCounts is what one receiving worker has done since its start.
type RxCounts struct {
	Taken uint64 // frames taken from the RX ring
	Good  uint64 // of them: good frames, duplicates too
	Bytes uint64 // L2 bytes of the frames taken, FCS included
	Wakes uint64 // wake-up calls
}

// counter is a count that one worker publishes. The plain copy spares the
// atomic store of what has not changed.
type counter struct {
	public atomic.Uint64
	last   uint64
}

func (c *counter) publish(n uint64) {
	if n != c.last {
		c.last = n
		c.public.Store(n)
	}
}

// TxCounters publishes the counts of one sending worker. The worker alone calls
// Publish; Read is anybody's. The zero value is ready.
type TxCounters struct {
	_ [cacheLine]byte

	offered, submitted, completed  counter
	refused, invalid, bytes        counter
	kicks, again, stalls, offCPUNs counter

	_ [cacheLine]byte
}

// Publish makes c visible. Every stage is stored before the next one and read
// after it, so that a reader never sees more frames leave a stage than entered.
func (t *TxCounters) Publish(c *TxCounts) {
	t.offered.publish(c.Offered)
	t.submitted.publish(c.Submitted)
	t.bytes.publish(c.Bytes)
	t.completed.publish(c.Completed)
	t.refused.publish(c.Refused)
	t.invalid.publish(c.Invalid)
	t.kicks.publish(c.Kicks)
	t.again.publish(c.Again)
	t.stalls.publish(c.Stalls)
	t.offCPUNs.publish(c.OffCPUNs)
}

// Read returns the counts last published.
func (t *TxCounters) Read() TxCounts {
	// Fields of a composite literal are evaluated in order: last stage first.
	return TxCounts{
		OffCPUNs:  t.offCPUNs.public.Load(),
		Stalls:    t.stalls.public.Load(),
		Again:     t.again.public.Load(),
		Kicks:     t.kicks.public.Load(),
		Invalid:   t.invalid.public.Load(),
		Refused:   t.refused.public.Load(),
		Completed: t.completed.public.Load(),
		Bytes:     t.bytes.public.Load(),
		Submitted: t.submitted.public.Load(),
		Offered:   t.offered.public.Load(),
	}
}

// RxCounters publishes the counts of one receiving worker. The worker alone
// calls Publish; Read is anybody's. The zero value is ready.
type RxCounters struct {
	_ [cacheLine]byte

	taken, good, bytes, wakes counter

	_ [cacheLine]byte
}

// Publish makes c visible, each stage before the next.
func (r *RxCounters) Publish(c *RxCounts) {
	r.taken.publish(c.Taken)
	r.good.publish(c.Good)
	r.bytes.publish(c.Bytes)
	r.wakes.publish(c.Wakes)
}

// Read returns the counts last published.
func (r *RxCounters) Read() RxCounts {
	return RxCounts{
		Wakes: r.wakes.public.Load(),
		Bytes: r.bytes.public.Load(),
		Good:  r.good.public.Load(),
		Taken: r.taken.public.Load(),
	}
}
