package engine

import (
	"testing"

	"linerate/internal/frame"
	"linerate/internal/lab/veth"
	"linerate/internal/wire"
)

const testRun = frame.Run(0x4711)

// writerOf is worker i of n of the stream that the tests send.
func writerOf(t testing.TB, sizes string, i, n int) frame.WriterConfig {
	t.Helper()
	s, err := wire.ParseSizes(sizes)
	if err != nil {
		t.Fatal(err)
	}
	return frame.WriterConfig{Run: testRun, Worker: uint8(i), Workers: n, StampEvery: 1, Stream: frame.Stream{
		ID: 3, Sizes: s, Stack: frame.Stack{SrcMAC: veth.MAC(veth.A), DstMAC: veth.MAC(veth.B),
			Src: veth.Addr(veth.A), Dst: veth.Addr(veth.B), SrcPort: 49184, DstPort: 7777},
	}}
}

func writersOf(t testing.TB, sizes string, n int) (all []frame.WriterConfig) {
	t.Helper()
	for i := range n {
		all = append(all, writerOf(t, sizes, i, n))
	}
	return all
}

func newWriter(t testing.TB, sizes string) *frame.Writer {
	t.Helper()
	w, err := frame.NewWriter(writerOf(t, sizes, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// fresh is the next frame of w in a buffer of its own.
func fresh(w *frame.Writer, now uint64) []byte {
	b := make([]byte, w.MaxLen())
	return b[:w.Next(b, 0, now)]
}
