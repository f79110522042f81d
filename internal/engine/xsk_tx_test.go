package engine

import (
	"bytes"
	"slices"
	"testing"

	"linerate/internal/frame"
	"linerate/internal/wire"
)

func TestPieces(t *testing.T) {
	for _, c := range []struct{ n, chunk, want int }{
		{60, 4096, 1}, {4095, 4096, 1}, {4096, 4096, 1}, {4097, 4096, 2}, {8996, 4096, 3}, {8996, 2048, 5},
	} {
		if got := pieces(c.n, c.chunk); got != c.want {
			t.Errorf("pieces(%d, %d) = %d, want %d", c.n, c.chunk, got, c.want)
		}
	}
}

// sentFrames takes what stands in the TX ring as the kernel would: chains
// joined, each descriptor completed.
func sentFrames(w *xskTx, r *rings) (all [][]byte) {
	var b []byte
	for r.tx.filled() > 0 {
		d := r.tx.take()
		b = append(b, w.mem[d.Addr:d.Addr+uint64(d.Len)]...)
		if d.Options == 0 {
			all, b = append(all, b), nil
		}
		r.comp.put(d.Addr)
	}
	return all
}

// TestPutReachesTheRing checks every byte, over many laps of a small ring, with
// frames of one chunk and of several.
func TestPutReachesTheRing(t *testing.T) {
	for _, c := range []struct {
		sizes   string
		longest wire.BufLen
		chunk   int
	}{{"64", 60, 2048}, {"imix", 1514, 2048}, {"64,9018,2052", 9014, 2048}} {
		t.Run(c.sizes, func(t *testing.T) {
			w, r := txOver(t, 64, c.chunk, c.longest)
			fw, oracle := newWriter(t, c.sizes), newWriter(t, c.sizes)
			for turn := range 50 {
				n := min(w.room(), 1+turn%9)
				sent, bytesSent := w.put(fw, n, int64(turn))
				if sent != n {
					t.Fatalf("turn %d: sent %d of %d", turn, sent, n)
				}
				got := sentFrames(w, r)
				if len(got) != n {
					t.Fatalf("turn %d: %d frames in the ring, want %d", turn, len(got), n)
				}
				total := uint64(0)
				for _, b := range got {
					total += uint64(len(b)) + wire.FCSBytes
					if want := fresh(oracle, uint64(turn)); !bytes.Equal(b, want) {
						t.Fatalf("turn %d: got % x\nwant % x", turn, b, want)
					}
				}
				if total != bytesSent {
					t.Errorf("turn %d: %d bytes counted, %d sent", turn, bytesSent, total)
				}
				if done := w.reap(); done != n {
					t.Fatalf("turn %d: reaped %d frames of %d", turn, done, n)
				}
			}
		})
	}
}

// TestFullRing: with no room nothing is written and no sequence number is used
// up, and the room is back after the completions.
func TestFullRing(t *testing.T) {
	for _, c := range []struct {
		sizes   string
		longest wire.BufLen
		room    int
	}{{"64", 60, 64}, {"9018", 9014, 12}} {
		t.Run(c.sizes, func(t *testing.T) {
			w, r := txOver(t, 64, 2048, c.longest)
			fw := newWriter(t, c.sizes)
			if got := w.room(); got != c.room {
				t.Fatalf("room %d, want %d", got, c.room)
			}
			if sent, _ := w.put(fw, c.room+5, 1); sent != c.room {
				t.Errorf("sent %d, want %d", sent, c.room)
			}
			if fw.Seq() != uint64(c.room) {
				t.Errorf("%d sequence numbers used for %d frames", fw.Seq(), c.room)
			}
			if h := w.held(); h != uint64(c.room) {
				t.Errorf("held %d frames, want %d", h, c.room)
			}
			if _, ok := w.putEnd(fw, 1, 1); ok {
				t.Error("an END frame went into a full ring")
			}
			r.complete(64)
			if got := w.reap(); got != c.room || w.room() != c.room || w.held() != 0 {
				t.Errorf("reaped %d, room %d, held %d", got, w.room(), w.held())
			}
			// A refused END must not have left a hole in the ring.
			fw, oracle := newWriter(t, c.sizes), newWriter(t, c.sizes)
			w.fresh()
			w.put(fw, 1, 7)
			got := sentFrames(w, r)
			if len(got) != 1 || !bytes.Equal(got[0], fresh(oracle, 7)) {
				t.Errorf("after a full ring: %d frames, not the one written", len(got))
			}
		})
	}
}

// TestStrayCompletions: what the kernel completes twice, or never had, gives no
// chunk away.
func TestStrayCompletions(t *testing.T) {
	w, r := txOver(t, 64, 2048, 60)
	fw := newWriter(t, "64")
	w.put(fw, 4, 1)
	first := r.tx.ring[0].Addr
	unsent := uint64(w.free[0]) * w.chunk
	for _, addr := range []uint64{first, first, unsent, 1 << 40, ^uint64(0)} {
		r.comp.put(addr)
	}
	if got := w.reap(); got != 1 {
		t.Errorf("%d frames completed, want 1", got)
	}
	if len(w.free) != 61 {
		t.Errorf("%d chunks free, want 61", len(w.free))
	}
	free := slices.Clone(w.free)
	slices.Sort(free)
	if len(slices.Compact(free)) != len(w.free) {
		t.Errorf("a chunk is free twice: %v", w.free)
	}
}

func TestPutEnd(t *testing.T) {
	for sizes, longest := range map[string]wire.BufLen{"64": 60, "9018": 9014} {
		w, r := txOver(t, 64, 2048, longest)
		fw := newWriter(t, sizes)
		w.put(fw, 3, 1)
		sentFrames(w, r)
		w.reap()
		n, ok := w.putEnd(fw, 3, 5)
		got := sentFrames(w, r)
		if !ok || len(got) != 1 || n != uint64(len(got[0]))+wire.FCSBytes {
			t.Fatalf("%s: ok %v, %d frames, %d bytes", sizes, ok, len(got), n)
		}
		var c frame.Checked
		frame.NewChecker(frame.CheckerConfig{Run: testRun}).Check(got[0], &c)
		if c.Class != frame.ClassEnd || c.Tag.Seq != 3 {
			t.Errorf("%s: class %v, count %d", sizes, c.Class, c.Tag.Seq)
		}
		if w.reap() != 1 {
			t.Errorf("%s: the END frame does not complete", sizes)
		}
	}
}

// TestTxDoesNotAllocate covers the whole cycle of a batch.
func TestTxDoesNotAllocate(t *testing.T) {
	for _, c := range []struct {
		sizes   string
		longest wire.BufLen
	}{{"imix", 1514}, {"9018", 9014}} {
		w, r := txOver(t, 256, 2048, c.longest)
		fw := newWriter(t, c.sizes)
		w.tx.pacer = pacerOf(t)
		allocs := testing.AllocsPerRun(200, func() {
			w.tx.send(fw, 16)
			r.complete(256)
			w.tx.reap(1)
			w.tx.publish()
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations per batch", c.sizes, allocs)
		}
	}
}
