package xsk

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// Frames go round through a kernel in another goroutine; run under -race, this
// also shows that the descriptors are handed over by the indices alone.
func TestRingsAgainstAKernelInAnotherGoroutine(t *testing.T) {
	const total = 20000
	r := newRings(t, 64, nearWrap)
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !stop.Load() {
			if r.complete(7)+r.deliver(5) == 0 {
				runtime.Gosched()
			}
		}
	})
	var sent, done, filled, got uint64
	for done < total || got < total {
		idx, n := r.tx.Reserve(uint32(min(16, total-sent)))
		for i := range n {
			r.tx.Set(idx+i, Desc{Addr: sent, Len: 60})
			sent++
		}
		r.tx.Submit(n)
		idx, n = r.fill.Reserve(uint32(min(16, total-filled)))
		for i := range n {
			r.fill.Set(idx+i, filled)
			filled++
		}
		r.fill.Submit(n)
		idx, n = r.comp.Peek(16)
		for i := range n {
			if addr := r.comp.Get(idx + i); addr != done {
				t.Fatalf("completion %d is %d", done, addr)
			}
			done++
		}
		r.comp.Release(n)
		idx, n = r.rx.Peek(16)
		for i := range n {
			if d := r.rx.Get(idx + i); d.Addr != got || d.Len != uint32(got%1500) {
				t.Fatalf("frame %d is %+v", got, d)
			}
			got++
		}
		r.rx.Release(n)
		runtime.Gosched()
	}
	stop.Store(true)
	wg.Wait()
	for name, c := range map[string][3]uint64{
		"tx":   {r.tx.Produced(), r.tx.Consumed(), r.tx.Faults()},
		"comp": {r.comp.Produced(), r.comp.Consumed(), r.comp.Faults()},
		"fill": {r.fill.Produced(), r.fill.Consumed(), r.fill.Faults()},
		"rx":   {r.rx.Produced(), r.rx.Consumed(), r.rx.Faults()},
	} {
		if c != [3]uint64{total, total, 0} {
			t.Errorf("%s counts %v, want %d %d 0", name, c, total, total)
		}
	}
}

func TestReserveIsBoundedByTheKernel(t *testing.T) {
	for _, start := range []uint32{0, nearWrap, 0xFFFFFFFF} {
		r := newRings(t, 8, start)
		if idx, n := r.tx.Reserve(100); idx != start || n != 8 {
			t.Fatalf("start %#x: reserved %d at %#x", start, n, idx)
		}
		if _, n := r.tx.Reserve(1); n != 0 {
			t.Fatalf("start %#x: %d reserved beyond the ring", start, n)
		}
		r.tx.Submit(5)
		if r.complete(3) != 3 || r.tx.Pending() != 2 {
			t.Fatalf("start %#x: pending %d", start, r.tx.Pending())
		}
		if idx, n := r.tx.Reserve(100); idx != start+8 || n != 3 {
			t.Fatalf("start %#x: then reserved %d at %#x", start, n, idx)
		}
		r.tx.Cancel(4)
		if idx, n := r.tx.Reserve(4); idx != start+7 || n != 4 {
			t.Fatalf("start %#x: after cancel %d at %#x", start, n, idx)
		}
	}
}

func TestSubmitAndReleaseOfMoreThanWasHeld(t *testing.T) {
	r := newRings(t, 8, nearWrap)
	r.tx.Reserve(2)
	r.tx.Submit(5)
	if r.txMem.filled() != 2 || r.tx.Faults() != 1 || r.tx.Produced() != 2 {
		t.Fatalf("published %d, faults %d, produced %d", r.txMem.filled(), r.tx.Faults(), r.tx.Produced())
	}
	r.complete(2)
	r.comp.Peek(1)
	r.comp.Release(2)
	if r.compMem.filled() != 1 || r.comp.Faults() != 1 || r.comp.Consumed() != 1 {
		t.Fatalf("left %d, faults %d, consumed %d", r.compMem.filled(), r.comp.Faults(), r.comp.Consumed())
	}
	r.tx.Cancel(9)
	r.comp.Cancel(9)
	if _, n := r.tx.Reserve(9); n != 8 {
		t.Fatalf("after cancel of too many: %d free", n)
	}
}

func TestPeekedEntriesCanBePutBack(t *testing.T) {
	r := newRings(t, 8, nearWrap)
	for i := range uint64(6) {
		r.compMem.put(i)
	}
	if idx, n := r.comp.Peek(4); idx != nearWrap || n != 4 {
		t.Fatalf("peeked %d at %#x", n, idx)
	}
	r.comp.Cancel(1)
	if idx, n := r.comp.Peek(9); n != 3 || r.comp.Get(idx) != 3 {
		t.Fatalf("peeked %d, first %d", n, r.comp.Get(idx))
	}
	r.comp.Release(6)
	if r.compMem.filled() != 0 || r.comp.Available() != 0 {
		t.Fatalf("left %d, available %d", r.compMem.filled(), r.comp.Available())
	}
}

// Whatever stands in a shared index, nothing is handed out beyond the ring and
// the impossible value is counted.
func TestImpossibleIndicesAreCountedAndIgnored(t *testing.T) {
	for _, garbage := range []uint32{1, 9, 0x7FFFFFFF, 0x80000000, nearWrap - 1, nearWrap + 9, nearWrap + 12} {
		r := newRings(t, 8, nearWrap)
		r.tx.Reserve(8)
		r.tx.Submit(8)
		r.txMem.cons = garbage
		if _, n := r.tx.Reserve(8); n != 0 || r.tx.Faults() == 0 || r.tx.Consumed() != 0 {
			t.Errorf("consumer %#x: %d reserved, faults %d", garbage, n, r.tx.Faults())
		}
		r.compMem.prod = garbage
		if _, n := r.comp.Peek(8); n != 0 || r.comp.Faults() == 0 || r.comp.Produced() != 0 {
			t.Errorf("producer %#x: %d peeked, faults %d", garbage, n, r.comp.Faults())
		}
		r.comp.Get(garbage)
		r.tx.Set(garbage, Desc{})
		// Once it makes sense again, so does the ring.
		r.txMem.cons, r.compMem.prod = nearWrap+3, nearWrap+2
		if _, n := r.tx.Reserve(8); n != 3 {
			t.Errorf("consumer %#x mended: %d reserved, want 3", garbage, n)
		}
		if _, n := r.comp.Peek(8); n != 2 {
			t.Errorf("producer %#x mended: %d peeked, want 2", garbage, n)
		}
	}
}

func TestTakenOverRingKeepsWhatIsPending(t *testing.T) {
	m := newShm[Desc](8, nearWrap)
	m.prod += 5
	p, err := NewDescProducer(m.indices(), m.ring)
	if err != nil {
		t.Fatal(err)
	}
	if _, n := p.Reserve(8); n != 3 {
		t.Fatalf("%d free beside 5 pending", n)
	}
}

func TestRingRefusesBadMemory(t *testing.T) {
	m := newShm[Desc](8, 0)
	a := newShm[uint64](8, 0)
	noFlags := Indices{&m.prod, &m.cons, nil}
	for name, err := range map[string]error{
		"no entries": second(NewDescProducer(m.indices(), nil)),
		"three":      second(NewDescConsumer(m.indices(), m.ring[:3])),
		"six":        second(NewAddrProducer(a.indices(), a.ring[:6])),
		"no flags":   second(NewDescProducer(noFlags, m.ring)),
		"no words":   second(NewAddrConsumer(Indices{}, a.ring)),
	} {
		if _, ok := err.(*ConfigError); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestDetachedRingsHaveNothingToGive(t *testing.T) {
	r := newRings(t, 8, nearWrap)
	r.compMem.ring[0], r.rxMem.ring[0].Addr = 5, 5
	r.tx.detach()
	r.comp.detach()
	r.fill.detach()
	r.rx.detach()
	r.txMem.prod, r.compMem.prod, r.rxMem.prod = 3, 3, 3
	_, n1 := r.tx.Reserve(4)
	_, n2 := r.comp.Peek(4)
	_, n3 := r.fill.Reserve(4)
	_, n4 := r.rx.Peek(4)
	if n1+n2+n3+n4 != 0 {
		t.Fatalf("handed out %d %d %d %d", n1, n2, n3, n4)
	}
	r.tx.Set(7, Desc{Addr: 9})
	r.tx.Submit(1)
	r.fill.Set(7, 1)
	r.fill.Submit(1)
	r.rx.Release(1)
	if r.comp.Get(0) != 0 || r.comp.Get(7) != 0 || r.rx.Get(0).Addr != 0 || r.txMem.ring[7] != (Desc{}) {
		t.Fatal("a detached ring still shows the old entries")
	}
	if r.txMem.prod != 3 || r.tx.NeedsWakeup() || r.rx.NeedsWakeup() {
		t.Fatal("a detached ring touched the old memory")
	}
}

func TestNeedsWakeupIsOneBit(t *testing.T) {
	r := newRings(t, 8, 0)
	r.txMem.flags, r.rxMem.flags = 0xFFFFFFFE, 1
	if r.tx.NeedsWakeup() || !r.rx.NeedsWakeup() {
		t.Fatal("flags misread")
	}
}

func TestHotPathAllocatesNothing(t *testing.T) {
	r := newRings(t, 256, nearWrap)
	if n := testing.AllocsPerRun(200, func() { r.lap(64) }); n != 0 {
		t.Fatalf("%v allocations per batch", n)
	}
	if r.tx.Produced() == 0 || r.rx.Consumed() != r.comp.Consumed() {
		t.Fatalf("laps moved %d, %d", r.tx.Produced(), r.rx.Consumed())
	}
	var w Watchdog
	u := &Umem{mem: make([]byte, 4096), chunk: 4096, frames: 1}
	n := testing.AllocsPerRun(200, func() {
		w.Due(NowNs(), 1, 0)
		u.Data(u.Base(u.Chunk(3)), 60)
	})
	if n != 0 {
		t.Fatalf("%v allocations per frame", n)
	}
}

// lap sends and receives n frames once round.
func (r *rings) lap(n uint32) {
	idx, got := r.tx.Reserve(n)
	for i := range got {
		r.tx.Set(idx+i, Desc{Addr: uint64(i), Len: 60})
	}
	r.tx.Submit(got)
	idx, got = r.fill.Reserve(n)
	for i := range got {
		r.fill.Set(idx+i, uint64(i))
	}
	r.fill.Submit(got)
	r.complete(int(n))
	r.deliver(int(n))
	idx, got = r.comp.Peek(n)
	for i := range got {
		r.comp.Get(idx + i)
	}
	r.comp.Release(got)
	idx, got = r.rx.Peek(n)
	for i := range got {
		r.rx.Get(idx + i)
	}
	r.rx.Release(got)
}
