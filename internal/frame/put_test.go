package frame

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// PutTag is AppendTag in another place, for both forms and both families.
func TestPutTag(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 2000 {
		addr := make([]byte, [...]int{12, 36}[n%2])
		for i := range addr {
			addr[i] = byte(r.Uint32())
		}
		short := n%4 < 2
		tag := Tag{Run: Run(r.Uint32()), Space: Space{Worker: uint8(r.Uint32() % 16), Stream: uint16(r.Uint32() % 16)},
			Seq: r.Uint64() & MaxSeq, TimeNs: r.Uint64() &^ 63, Flags: uint8(r.Uint32() % 8)}
		want := AppendTag(nil, tag, short, addr)
		got := make([]byte, len(want)+3)
		if allocs := testing.AllocsPerRun(1, func() { PutTag(got, &tag, short, addr) }); allocs != 0 {
			t.Fatalf("%v allocations", allocs)
		}
		if !bytes.Equal(got[3:], want) {
			t.Fatalf("short %v, addr %d: got %x, want %x", short, len(addr), got[3:], want)
		}
	}
	b := make([]byte, 300)
	FillPattern(b)
	if !isPattern(b) {
		t.Error("FillPattern: not the pattern")
	}
}
