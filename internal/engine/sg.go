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
// place and then laid over as many chunks as it needs. No frame is made, and no
// sequence number used up, that has no room.
func (w *xskTx) putPieces(fw *frame.Writer, n int, now int64) (sent int, bytes uint64) {
	for ; sent < n; sent++ {
		idx, ok := w.reserve(w.per)
		if !ok {
			break
		}
		size := fw.Next(w.made, w.madeLen, uint64(now))
		w.madeLen = size
		w.lay(idx, w.made[:size])
		bytes += uint64(size) + wire.FCSBytes
	}
	return sent, bytes
}

// reserve takes n entries of the TX ring if there are chunks for them too.
func (w *xskTx) reserve(n int) (idx uint32, ok bool) {
	idx, got := w.sock.Tx.Reserve(uint32(n))
	if int(got) < n || len(w.free) < n {
		w.sock.Tx.Cancel(got)
		return 0, false
	}
	return idx, true
}

// lay submits one frame as a chain of descriptors, from the reserved entry idx
// on, and gives back the entries of w.per that it does not need.
func (w *xskTx) lay(idx uint32, b []byte) {
	need := pieces(len(b), int(w.chunk))
	for k := range need {
		c := w.free[len(w.free)-1]
		w.free = w.free[:len(w.free)-1]
		at := uint64(c) * w.chunk
		n := copy(w.mem[at:at+w.chunk], b)
		b = b[n:]
		d := xsk.Desc{Addr: at, Len: uint32(n)}
		w.state[c] = last
		if len(b) > 0 {
			d.Options = xsk.OptContinued
			w.state[c] = piece
		}
		w.sock.Tx.Set(idx+uint32(k), d)
	}
	w.sock.Tx.Cancel(uint32(w.per - need))
	w.sock.Tx.Submit(uint32(need))
	w.laid[w.laidAt%len(w.laid)] = uint8(need)
	w.laidAt++
}

// heldFrames is how many frames the n descriptors submitted last come to: the
// kernel takes all of a chain or nothing.
func (w *xskTx) heldFrames(n int) (frames uint64) {
	for at := w.laidAt; n > 0 && at > 0 && frames < uint64(len(w.laid)); frames++ {
		at--
		n -= int(w.laid[at%len(w.laid)])
	}
	return frames
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
