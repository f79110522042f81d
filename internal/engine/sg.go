package engine

import (
	"linerate/internal/frame"
	"linerate/internal/wire"
	"linerate/xsk"
)

// maxFragments is how many buffers the kernel joins into one frame: the linear
// part and MAX_SKB_FRAGS (17) more.
const maxFragments = 18

// pieces is how many chunks a frame of n bytes takes.
func pieces(n, chunk int) int { return (n + chunk - 1) / chunk }

// putPieces writes frames that are longer than a chunk: each is made in one
// place and then laid over as many chunks as it needs.
func (w *xskTx) putPieces(fw *frame.Writer, n int, now int64) (sent int, bytes uint64) {
	for range n {
		size := fw.Next(w.whole, w.wholeLen, uint64(now))
		w.wholeLen = size
		if !w.lay(w.whole[:size]) {
			break
		}
		sent++
		bytes += uint64(size) + wire.FCSBytes
	}
	return sent, bytes
}

// lay submits one frame as a chain of descriptors; false when there is no room
// for all of them.
func (w *xskTx) lay(b []byte) bool {
	need := pieces(len(b), int(w.chunk))
	idx, got := w.sock.Tx.Reserve(uint32(need))
	if int(got) < need || len(w.free) < need {
		w.sock.Tx.Cancel(got)
		return false
	}
	for k := range need {
		c := w.free[len(w.free)-1]
		w.free = w.free[:len(w.free)-1]
		at := uint64(c) * w.chunk
		n := copy(w.mem[at:at+w.chunk], b)
		b = b[n:]
		d := xsk.Desc{Addr: at, Len: uint32(n)}
		if len(b) > 0 {
			d.Options = xsk.OptContinued
		}
		w.last[c] = len(b) == 0
		w.sock.Tx.Set(idx+uint32(k), d)
	}
	w.sock.Tx.Submit(uint32(need))
	return true
}

// join collects a frame of several buffers; whole is nil until its last piece
// is there. The stamp lies before the first.
func (w *xskRx) join(meta, piece []byte, more bool) (m, whole []byte) {
	if len(w.joined) == 0 {
		if !more {
			return meta, piece
		}
		copy(w.joinedMeta[:], meta)
	}
	if len(w.joined)+len(piece) <= cap(w.joined) {
		w.joined = append(w.joined, piece...)
	}
	if more {
		return nil, nil
	}
	whole = w.joined
	w.joined = w.joined[:0]
	return w.joinedMeta[:], whole
}
