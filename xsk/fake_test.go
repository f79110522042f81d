package xsk

import (
	"sync/atomic"
	"testing"
)

// shm is the memory of a ring as the kernel sees it. The test's kernel works on
// it with its own arithmetic, not with the code under test.
type shm[T any] struct {
	prod, cons, flags uint32
	ring              []T
}

func newShm[T any](size int, start uint32) *shm[T] {
	return &shm[T]{prod: start, cons: start, ring: make([]T, size)}
}

func (m *shm[T]) indices() Indices { return Indices{&m.prod, &m.cons, &m.flags} }

// filled is how many entries a consumer may take, seen from the kernel's side.
func (m *shm[T]) filled() int {
	return int(atomic.LoadUint32(&m.prod) - atomic.LoadUint32(&m.cons))
}

// take consumes one entry as the kernel does.
func (m *shm[T]) take() T {
	cons := atomic.LoadUint32(&m.cons)
	v := m.ring[int(cons)%len(m.ring)]
	atomic.StoreUint32(&m.cons, cons+1)
	return v
}

// put produces one entry as the kernel does.
func (m *shm[T]) put(v T) {
	prod := atomic.LoadUint32(&m.prod)
	m.ring[int(prod)%len(m.ring)] = v
	atomic.StoreUint32(&m.prod, prod+1)
}

// nearWrap is a start index 16 before the 32 bits run out.
const nearWrap = 0xFFFFFFF0

// rings is a set of four with the kernel's side of each.
type rings struct {
	txMem   *shm[Desc]
	compMem *shm[uint64]
	fillMem *shm[uint64]
	rxMem   *shm[Desc]
	tx      *DescProducer
	comp    *AddrConsumer
	fill    *AddrProducer
	rx      *DescConsumer
}

func newRings(t testing.TB, size int, start uint32) *rings {
	t.Helper()
	r := &rings{
		txMem: newShm[Desc](size, start), compMem: newShm[uint64](size, start),
		fillMem: newShm[uint64](size, start), rxMem: newShm[Desc](size, start),
	}
	var errs [4]error
	r.tx, errs[0] = NewDescProducer(r.txMem.indices(), r.txMem.ring)
	r.comp, errs[1] = NewAddrConsumer(r.compMem.indices(), r.compMem.ring)
	r.fill, errs[2] = NewAddrProducer(r.fillMem.indices(), r.fillMem.ring)
	r.rx, errs[3] = NewDescConsumer(r.rxMem.indices(), r.rxMem.ring)
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// complete moves up to n entries from TX to completion.
func (r *rings) complete(n int) (moved int) {
	for moved < n && r.txMem.filled() > 0 && r.compMem.filled() < len(r.compMem.ring) {
		r.compMem.put(r.txMem.take().Addr)
		moved++
	}
	return moved
}

// deliver moves up to n buffers from fill to RX, with a length that names them.
func (r *rings) deliver(n int) (moved int) {
	for moved < n && r.fillMem.filled() > 0 && r.rxMem.filled() < len(r.rxMem.ring) {
		addr := r.fillMem.take()
		r.rxMem.put(Desc{Addr: addr, Len: uint32(addr % 1500)})
		moved++
	}
	return moved
}
