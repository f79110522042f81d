package pcap

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Mode is which frames a capture keeps.
type Mode string

// Modes of a capture.
const (
	First Mode = "first" // the first N
	Last  Mode = "last"  // the last N
	Bad   Mode = "bad"   // the first N that are corrupt, foreign or duplicate
)

// Keep is which frames a capture keeps, and how many.
type Keep struct {
	Mode Mode
	N    int
}

// ParseKeep reads first:N, last:N or bad:N.
func ParseKeep(s string) (Keep, error) {
	mode, number, ok := strings.Cut(s, ":")
	n, err := strconv.ParseUint(number, 10, 31)
	k := Keep{Mode(mode), int(n)}
	if !ok || err != nil || n == 0 || k.Mode != First && k.Mode != Last && k.Mode != Bad {
		return Keep{}, fmt.Errorf("%q: want first:N, last:N or bad:N", s)
	}
	return k, nil
}

// String is what ParseKeep reads.
func (k Keep) String() string { return fmt.Sprintf("%s:%d", k.Mode, k.N) }

// slotCost is what a slot of a Ring takes besides the frame's bytes.
const slotCost = 16

// Memory is how much the rings of so many queues take for frames up to maxLen.
func (k Keep) Memory(queues, maxLen int) int64 {
	return int64(queues) * int64(k.N) * int64(maxLen+slotCost)
}

// slot is what is known of a kept frame.
type slot struct {
	ns  int64
	len uint32 // of the frame; what is over the slot is cut
	why uint16
}

// Ring keeps frames of one queue in memory that is taken once. Its Take never
// waits and never allocates. It belongs to one goroutine.
type Ring struct {
	keep  Keep
	size  int
	mem   []byte
	slots []slot
	seen  uint64 // frames offered to Take
	last  int64
}

// NewRing makes a ring for frames up to maxLen bytes. Its memory is touched now
// and not when the first frames come.
func NewRing(k Keep, maxLen int) *Ring {
	r := &Ring{keep: k, size: maxLen, mem: make([]byte, k.N*maxLen), slots: make([]slot, k.N)}
	for i := 0; i < len(r.mem); i += 4096 {
		r.mem[i] = 1
	}
	return r
}

// Take keeps a frame if the mode wants it. ns is its time on any clock, and not
// less than that of the frame before; why is what the caller calls the reason.
func (r *Ring) Take(ns int64, why uint16, frame []byte) {
	n := r.seen
	r.seen++
	at := int(n)
	if n >= uint64(r.keep.N) {
		if r.keep.Mode != Last {
			return
		}
		at = int(n % uint64(r.keep.N))
	}
	r.last = max(r.last, ns)
	r.slots[at] = slot{r.last, uint32(len(frame)), why}
	copy(r.mem[at*r.size:(at+1)*r.size], frame)
}

// Kept is one frame that a Ring has kept.
type Kept struct {
	Ns   int64
	Why  uint16
	Data []byte // in the ring's memory
	Len  int    // more than Data where that was cut
}

// kept gives the frames in the order they came.
func (r *Ring) kept() []Kept {
	n := min(r.seen, uint64(r.keep.N))
	out := make([]Kept, 0, n)
	for k := r.seen - n; k < r.seen; k++ {
		at := int(k % uint64(r.keep.N))
		s := r.slots[at]
		out = append(out, Kept{s.ns, s.why, r.mem[at*r.size:][:min(int(s.len), r.size)], int(s.len)})
	}
	return out
}

// Gather joins the rings of all queues by time, each in its own order, and
// tells how many frames that the mode wanted were not kept.
func Gather(rings []*Ring) (kept []Kept, lost uint64) {
	if len(rings) == 0 {
		return nil, 0
	}
	for _, r := range rings {
		lost += r.seen
		kept = append(kept, r.kept()...)
	}
	slices.SortStableFunc(kept, func(a, b Kept) int { return cmp.Compare(a.Ns, b.Ns) })
	k := rings[0].keep
	if over := len(kept) - k.N; over > 0 {
		if k.Mode == Last {
			kept = kept[over:]
		} else {
			kept = kept[:k.N]
		}
	}
	return kept, lost - uint64(len(kept))
}

// WriteKept writes kept frames: add is what their clock is behind ns since 1970,
// and comment puts a reason into words.
func WriteKept(to io.Writer, application, iface string, kept []Kept, add int64, comment func(why uint16) string) error {
	w, err := NewWriter(to, application, iface)
	if err != nil {
		return err
	}
	for _, k := range kept {
		if err := w.Write(k.Ns+add, k.Data, k.Len, comment(k.Why)); err != nil {
			return err
		}
	}
	return w.Flush()
}
