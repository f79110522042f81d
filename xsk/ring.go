package xsk

import "sync/atomic"

// Indices are the three shared words of a ring. They lie in memory that the
// kernel (or, in a test, another goroutine) writes at the same time.
type Indices struct {
	Producer *uint32
	Consumer *uint32
	Flags    *uint32
}

func (ix Indices) complete() bool {
	return ix.Producer != nil && ix.Consumer != nil && ix.Flags != nil
}

// checkRing refuses what mask indexing could not serve.
func checkRing(ix Indices, size int) error {
	if size <= 0 || size&(size-1) != 0 || uint64(size) > 1<<31 {
		return &ConfigError{"ring size", size, "a power of two"}
	}
	if !ix.complete() {
		return &ConfigError{"ring indices", "nil", "three words"}
	}
	return nil
}

// producer is our end of a ring that the kernel consumes (TX, fill).
// All fields belong to the owner goroutine; the pointed-to words are shared.
// The padding keeps two queues' cached indices off one cache line.
type producer struct {
	_         [64]byte
	prod      *uint32
	cons      *uint32
	flags     *uint32
	reserved  uint32 // next index to hand out
	submitted uint32 // what *prod holds
	limit     uint32 // last accepted *cons, plus size
	size      uint32
	mask      uint32
	produced  uint64 // submitted, extended to 64 bits
	consumed  uint64 // last accepted *cons, extended
	faults    uint64
	_         [64]byte
}

func newProducer(ix Indices, size int) producer {
	p := producer{prod: ix.Producer, cons: ix.Consumer, flags: ix.Flags}
	p.size, p.mask = uint32(size), uint32(size-1)
	p.submitted = atomic.LoadUint32(p.prod)
	p.reserved = p.submitted
	p.limit = p.submitted + p.size
	// A fresh ring is empty; one taken over half-way is accepted if sane.
	if cons := atomic.LoadUint32(p.cons); p.submitted-cons <= p.size {
		p.limit = cons + p.size
	}
	return p
}

// Reserve hands out up to n free entries, the first at idx. Fewer than n, or
// none, when the kernel has not consumed enough; the caller Sets each and then
// Submits them.
func (p *producer) Reserve(n uint32) (idx, got uint32) {
	if p.limit-p.reserved < n {
		n = min(n, p.reload())
	}
	p.reserved += n
	return p.reserved - n, n
}

// reload takes the kernel's consumer index into account, if it is possible:
// it may only move forward and never past what was submitted.
func (p *producer) reload() (free uint32) {
	cons := atomic.LoadUint32(p.cons)
	last := p.limit - p.size
	if cons-last > p.submitted-last {
		p.faults++
		return p.limit - p.reserved
	}
	p.consumed += uint64(cons - last)
	p.limit = cons + p.size
	return p.limit - p.reserved
}

// Submit publishes the first n reserved entries. More than were reserved is
// cut down and counted as a fault: it would publish stale entries.
func (p *producer) Submit(n uint32) {
	if n > p.reserved-p.submitted {
		n = p.cut()
	}
	p.submitted += n
	p.produced += uint64(n)
	atomic.StoreUint32(p.prod, p.submitted)
}

func (p *producer) cut() uint32 {
	p.faults++
	return p.reserved - p.submitted
}

// Cancel gives back the last n reserved entries that were not submitted.
func (p *producer) Cancel(n uint32) {
	p.reserved -= min(n, p.reserved-p.submitted)
}

// NeedsWakeup reads the flags word: the kernel waits for a system call.
// Call it after Submit, never before.
func (p *producer) NeedsWakeup() bool {
	return atomic.LoadUint32(p.flags)&ringNeedsWakeup != 0
}

// Size is the number of entries.
func (p *producer) Size() uint32 { return p.size }

// Produced counts entries submitted since the ring was made.
func (p *producer) Produced() uint64 { return p.produced }

// Consumed counts entries the kernel has taken; it reads the shared index.
func (p *producer) Consumed() uint64 {
	p.reload()
	return p.consumed
}

// Pending counts entries submitted and not yet taken by the kernel.
func (p *producer) Pending() uint32 {
	p.reload()
	return p.submitted - (p.limit - p.size)
}

// Faults counts impossible values found in the shared index and Submits of
// more than was reserved. Anything but 0 means corrupted shared memory or a bug.
func (p *producer) Faults() uint64 { return p.faults }

// detach points the ring at memory of its own that is always full, so that a
// late call after Close finds no entry instead of an unmapped page.
func (p *producer) detach() {
	word := new([3]uint32)
	p.prod, p.cons, p.flags = &word[0], &word[1], &word[2]
	p.size, p.mask = 0, 0
	p.reserved, p.submitted, p.limit = 0, 0, 0
}

// consumer is our end of a ring that the kernel produces (RX, completion).
type consumer struct {
	_        [64]byte
	prod     *uint32
	cons     *uint32
	flags    *uint32
	peeked   uint32 // next index to hand out
	released uint32 // what *cons holds
	seen     uint32 // last accepted *prod
	size     uint32
	mask     uint32
	produced uint64 // seen, extended to 64 bits
	consumed uint64 // released, extended
	faults   uint64
	_        [64]byte
}

func newConsumer(ix Indices, size int) consumer {
	c := consumer{prod: ix.Producer, cons: ix.Consumer, flags: ix.Flags}
	c.size, c.mask = uint32(size), uint32(size-1)
	c.released = atomic.LoadUint32(c.cons)
	c.peeked, c.seen = c.released, c.released
	return c
}

// Peek hands out up to n filled entries, the first at idx. It looks at the
// shared index only when nothing is left of the last look.
func (c *consumer) Peek(n uint32) (idx, got uint32) {
	idx, got = c.peeked, c.seen-c.peeked
	if got == 0 {
		got = c.reload()
	}
	got = min(got, n)
	c.peeked += got
	return idx, got
}

// reload takes the kernel's producer index into account, if it is possible:
// it may only move forward and never more than size past what was released.
func (c *consumer) reload() (avail uint32) {
	prod := atomic.LoadUint32(c.prod)
	if prod-c.seen > c.size-(c.seen-c.released) {
		c.faults++
		return c.seen - c.peeked
	}
	c.produced += uint64(prod - c.seen)
	c.seen = prod
	return c.seen - c.peeked
}

// Release gives the first n peeked entries back to the kernel. More than were
// peeked is cut down and counted as a fault.
func (c *consumer) Release(n uint32) {
	if n > c.peeked-c.released {
		n = c.cut()
	}
	c.released += n
	c.consumed += uint64(n)
	atomic.StoreUint32(c.cons, c.released)
}

func (c *consumer) cut() uint32 {
	c.faults++
	return c.peeked - c.released
}

// Cancel puts back the last n peeked entries that were not released.
func (c *consumer) Cancel(n uint32) {
	c.peeked -= min(n, c.peeked-c.released)
}

// NeedsWakeup reads the flags word.
func (c *consumer) NeedsWakeup() bool {
	return atomic.LoadUint32(c.flags)&ringNeedsWakeup != 0
}

// Size is the number of entries.
func (c *consumer) Size() uint32 { return c.size }

// Produced counts entries the kernel has filled; it reads the shared index.
func (c *consumer) Produced() uint64 {
	c.reload()
	return c.produced
}

// Consumed counts entries released since the ring was made.
func (c *consumer) Consumed() uint64 { return c.consumed }

// Available counts entries filled and not yet peeked.
func (c *consumer) Available() uint32 { return c.reload() }

// Faults counts impossible values found in the shared index and Releases of
// more than was peeked.
func (c *consumer) Faults() uint64 { return c.faults }

// detach is as for the producer: a ring that is always empty.
func (c *consumer) detach() {
	word := new([3]uint32)
	c.prod, c.cons, c.flags = &word[0], &word[1], &word[2]
	c.size, c.mask = 0, 0
	c.peeked, c.released, c.seen = 0, 0, 0
}
