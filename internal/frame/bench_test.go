package frame

import (
	"testing"

	"linerate/internal/wire"
)

func benchWriter(b *testing.B, sizes string, v6 bool, flows int) *Writer {
	b.Helper()
	s := testStream(b, sizes, v6, 0)
	s.Flows.Count = flows
	w, err := NewWriter(WriterConfig{Stream: s, Run: 7, StampEvery: 64})
	if err != nil {
		b.Fatal(err)
	}
	return w
}

func BenchmarkWriterNext(b *testing.B) {
	for _, c := range []struct {
		name, sizes string
		v6          bool
		flows       int
	}{
		{"64B/1flow", "64", false, 1},
		{"64B/1000flows", "64", false, 1000},
		{"84B/ipv6/1flow", "84", true, 1},
		{"84B/ipv6/1000flows", "84", true, 1000},
		{"imix/1000flows", "imix", false, 1000},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := benchWriter(b, c.sizes, c.v6, c.flows)
			bufs := make([][]byte, 64)
			prev := make([]wire.BufLen, len(bufs))
			for i := range bufs {
				bufs[i] = make([]byte, w.MaxLen())
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				k := i & 63
				prev[k] = w.Next(bufs[k], prev[k], 1)
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, c := range []struct {
		name, sizes string
		v6          bool
		flows       int
	}{
		{"64B/1flow", "64", false, 1},
		{"64B/1000flows", "64", false, 1000},
		{"84B/ipv6", "84", true, 1000},
		{"1518B", "1518", false, 1000},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := benchWriter(b, c.sizes, c.v6, c.flows)
			bufs := make([][]byte, 64)
			for i := range bufs {
				bufs[i] = make([]byte, w.MaxLen())
				w.Next(bufs[i], 0, 1)
			}
			k := NewChecker(CheckerConfig{Run: 7})
			var out Checked
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				k.Check(bufs[i&63], &out)
			}
			if out.Class != ClassGood {
				b.Fatal(out)
			}
		})
	}
}

func BenchmarkAccountAdd(b *testing.B) {
	q := NewAccount().Queue(0)
	t := Tag{Space: Space{1, 2}}
	b.ReportAllocs()
	for b.Loop() {
		q.Add(&t, false)
		if t.Seq++; t.Seq%64 == 0 {
			q.Publish()
		}
	}
}
