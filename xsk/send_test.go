package xsk

import (
	"testing"
	"time"
)

// tally is what a test's sender saw.
type tally struct {
	sent, completed, refused int
	codes                    map[KickCode]int
}

// sendAll sends n frames of length bytes and waits for their completions. It
// keeps at most half the UMEM in flight.
func sendAll(t *testing.T, s *Socket, n, length int) tally {
	t.Helper()
	res := tally{codes: map[KickCode]int{}}
	room := s.Umem().Frames() / 2
	deadline := time.Now().Add(5 * time.Second)
	for res.completed < n {
		batch := min(64, n-res.sent, room-(res.sent-res.completed))
		idx, got := s.Tx.Reserve(uint32(batch))
		for i := range got {
			addr := s.Umem().Chunk(res.sent)
			testFrame(s.Umem().Data(addr, uint32(length)), byte(res.sent))
			s.Tx.Set(idx+i, Desc{Addr: addr, Len: uint32(length)})
			res.sent++
		}
		s.Tx.Submit(got)
		if s.TxNeedsWakeup() && s.Tx.Pending() > 0 {
			r := s.KickTx()
			res.codes[r.Code]++
			if r.Code == KickRefused {
				res.refused++
			}
		}
		res.completed += reap(s)
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d completed, kicks %v", res.completed, n, res.codes)
		}
	}
	return res
}

func reap(s *Socket) int {
	_, got := s.Comp.Peek(256)
	s.Comp.Release(got)
	return int(got)
}

// receive takes n frames off the RX ring, checks them and recycles them.
func receive(t *testing.T, s *Socket, n, length int) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for seen := 0; seen < n; {
		idx, got := s.Rx.Peek(64)
		for i := range got {
			d := s.Rx.Get(idx + i)
			if !sameFrame(s.Umem().Data(d.Addr, d.Len), length, byte(seen)) {
				t.Fatalf("frame %d differs: %x", seen, s.Umem().Data(d.Addr, d.Len))
			}
			fidx, one := s.Fill.Reserve(1)
			if one == 1 {
				s.Fill.Set(fidx, s.Umem().Base(d.Addr))
				s.Fill.Submit(1)
			}
			seen++
		}
		s.Rx.Release(got)
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d received", seen, n)
		}
	}
}

func chunks(u *Umem, n int) (addrs []uint64) {
	for i := range n {
		addrs = append(addrs, u.Chunk(i))
	}
	return addrs
}

func TestEveryFrameSentCompletesAndArrives(t *testing.T) {
	v := newVeth(t, 1, 1500)
	txMem := openUmem(t, UmemConfig{Frames: 256, Chunk: 2048})
	rxMem := openUmem(t, UmemConfig{Frames: 512, Chunk: 4096, Headroom: 64})
	tx := openSocket(t, txMem, Config{IfIndex: v.tx, TxSize: 128})
	rx := openSocket(t, rxMem, Config{IfIndex: v.rx, RxSize: 512, Prefill: chunks(rxMem, 512)})
	v.redirect(t, false, rx)
	const n = 300
	res := sendAll(t, tx, n, 60)
	if res.sent != n || res.completed != n || res.refused != 0 {
		t.Fatalf("sent %d, completed %d, refused %d", res.sent, res.completed, res.refused)
	}
	receive(t, rx, n, 60)
	st, err := tx.Stats()
	must(t, err)
	if st.Tx != (RingCount{n, n}) || st.Comp != (RingCount{n, n}) || st.TxInvalidDescs != 0 {
		t.Fatalf("tx stats %+v", st)
	}
	if st.Kicks == 0 || tx.Tx.Faults()+tx.Comp.Faults() != 0 {
		t.Fatalf("kicks %d, faults %d, %d", st.Kicks, tx.Tx.Faults(), tx.Comp.Faults())
	}
	st, err = rx.Stats()
	must(t, err)
	if st.Rx != (RingCount{n, n}) || st.RxDropped != 0 || st.RxRingFull != 0 || !st.Extended {
		t.Fatalf("rx stats %+v", st)
	}
	if tx.ZeroCopied() || rx.ZeroCopied() {
		t.Fatal("veth has no zero-copy")
	}
}
