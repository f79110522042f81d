package xsk

import "testing"

// One burst through the TX and the completion ring, kernel's side free of cost.
func BenchmarkTxBurst64(b *testing.B) {
	r := newRings(b, 256, nearWrap)
	for b.Loop() {
		idx, got := r.tx.Reserve(64)
		for i := range got {
			r.tx.Set(idx+i, Desc{Addr: uint64(i), Len: 60})
		}
		r.tx.Submit(got)
		if r.tx.NeedsWakeup() {
			b.Fatal("nobody asked")
		}
		r.txMem.cons = r.txMem.prod
		r.compMem.prod += got
		idx, got = r.comp.Peek(64)
		var sum uint64
		for i := range got {
			sum += r.comp.Get(idx + i)
		}
		sink = sum
		r.comp.Release(got)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/frame")
}

func BenchmarkUmemData(b *testing.B) {
	u := &Umem{mem: make([]byte, 1<<20), chunk: 4096, frames: 256}
	i := 0
	for b.Loop() {
		sink += uint64(len(u.Data(u.Chunk(i), 60)))
		i++
	}
}

func BenchmarkNowNs(b *testing.B) {
	for b.Loop() {
		sink = uint64(NowNs())
	}
}

var sink uint64
