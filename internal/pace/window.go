package pace

// grant is what one call of Due handed out, and when.
type grant struct {
	at int64
	n  int64
}

// maxGrants bounds the memory of a window. Above it grants are merged into the
// latest, which makes the window hold back more, never less.
const maxGrants = 2048

// window remembers the grants of the last 100 us, exactly: a bucket of tokens
// would either bunch what is on time or bend the gaps behind a late frame.
type window struct {
	ring  []grant // length is a power of two
	head  uint64  // next to write
	tail  uint64  // oldest
	held  int64   // sum of n from tail to head
	limit int64
}

func newWindow(limit int64) window {
	size := int64(1)
	for size < limit && size < maxGrants {
		size *= 2
	}
	return window{ring: make([]grant, size), limit: limit}
}

// room returns how many permits the 100 us up to now, now included, still take.
func (w *window) room(now int64) int64 {
	mask := uint64(len(w.ring) - 1)
	for w.tail != w.head && w.ring[w.tail&mask].at <= now-int64(Window) {
		w.held -= w.ring[w.tail&mask].n
		w.tail++
	}
	return w.limit - w.held
}

// add records a grant.
func (w *window) add(now, n int64) {
	mask := uint64(len(w.ring) - 1)
	w.held += n
	if w.head-w.tail == uint64(len(w.ring)) {
		last := &w.ring[(w.head-1)&mask]
		last.at, last.n = now, last.n+n
		return
	}
	w.ring[w.head&mask] = grant{now, n}
	w.head++
}

// frees returns when the oldest grant leaves the window. It holds one.
func (w *window) frees() int64 {
	return w.ring[w.tail&uint64(len(w.ring)-1)].at + int64(Window)
}
