package engine

import (
	"testing"

	"linerate/internal/wire"
	"linerate/xsk"
)

// shm is the memory of one ring; the test is the kernel on its other side.
type shm[T any] struct {
	prod, cons, flags uint32
	ring              []T
}

func (m *shm[T]) indices() xsk.Indices {
	return xsk.Indices{Producer: &m.prod, Consumer: &m.cons, Flags: &m.flags}
}

func (m *shm[T]) filled() int { return int(m.prod - m.cons) }

func (m *shm[T]) take() T {
	v := m.ring[int(m.cons)%len(m.ring)]
	m.cons++
	return v
}

func (m *shm[T]) put(v T) {
	m.ring[int(m.prod)%len(m.ring)] = v
	m.prod++
}

// rings are a socket's four rings without a socket.
type rings struct {
	tx, rx     shm[xsk.Desc]
	comp, fill shm[uint64]
	sock       *xsk.Socket
}

func newRings(t testing.TB, size, fill int) *rings {
	t.Helper()
	r := &rings{sock: &xsk.Socket{}}
	r.tx.ring, r.rx.ring = make([]xsk.Desc, size), make([]xsk.Desc, size)
	r.comp.ring, r.fill.ring = make([]uint64, size), make([]uint64, fill)
	var errs [4]error
	r.sock.Tx, errs[0] = xsk.NewDescProducer(r.tx.indices(), r.tx.ring)
	r.sock.Comp, errs[1] = xsk.NewAddrConsumer(r.comp.indices(), r.comp.ring)
	r.sock.Fill, errs[2] = xsk.NewAddrProducer(r.fill.indices(), r.fill.ring)
	r.sock.Rx, errs[3] = xsk.NewDescConsumer(r.rx.indices(), r.rx.ring)
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// complete gives up to n descriptors back, as a kernel that sends does.
func (r *rings) complete(n int) {
	for ; n > 0 && r.tx.filled() > 0; n-- {
		r.comp.put(r.tx.take().Addr)
	}
}

// txOver is a sending queue over rings in memory.
func txOver(t testing.TB, budget, chunk int, longest wire.BufLen) (*xskTx, *rings) {
	t.Helper()
	r := newRings(t, budget, budget)
	c := Config{Budget: budget, Chunk: chunk, MaxLen: longest, Batch: 64}
	w := layOut(c)
	w.sock, w.mem = r.sock, make([]byte, budget*chunk)
	w.tx = newTxLoop(Queue{}, c, w)
	return w, r
}

// rxOver is a receiving queue over rings in memory, its buffers not yet given
// to the kernel: the test fills descriptors itself.
func rxOver(t testing.TB, size, chunk int) (*xskRx, *rings) {
	t.Helper()
	u, err := xsk.NewUmem(xsk.UmemConfig{Frames: 2 * size, Chunk: chunk})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	})
	r := newRings(t, size, 2*size)
	w := &xskRx{rx: newRxLoop(Queue{}), umem: u, sock: r.sock, batch: 64, joined: make([]byte, 0, maxFragments*chunk)}
	w.mem = u.Data(0, uint32(2*size*chunk))
	return w, r
}
