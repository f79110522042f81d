package frame

import (
	"encoding/binary"
	"slices"
	"testing"
)

// pktgenFrame is a frame as pktgen makes it, UDP checksum 0.
func pktgenFrame(seq uint32) []byte {
	b := make([]byte, 60)
	copy(b[12:], "\x08\x00\x45\x00\x00\x2e\x00\x00\x00\x00\x20\x11\x00\x00\x0a\x00\x00\x01\x0a\x00\x00\x02")
	binary.BigEndian.PutUint16(b[24:], ^sumBE(b[14:34]))
	copy(b[34:], "\x00\x09\x00\x09\x00\x1a\x00\x00\xbe\x9b\xe9\x55")
	binary.BigEndian.PutUint32(b[46:], seq)
	return b
}

// TestPktgen: the sequence numbers of pktgen are read and held in the account
// like our own: lost, duplicate, reordered, and past a wrap of 32 bits.
func TestPktgen(t *testing.T) {
	a := NewAccount()
	q, c := a.Queue(0), NewChecker(CheckerConfig{})
	var out Checked
	for _, seq := range []uint32{1, 2, 2, 5, 4, 6} { // 3 is lost
		c.CheckPktgen(pktgenFrame(seq), &out)
		if out.Class != ClassGood || out.Tag.Seq != uint64(seq-1) {
			t.Fatalf("number %d: %+v", seq, out)
		}
		q.Count(&out)
	}
	q.Publish()
	s := a.Spaces()[0]
	if s.Distinct != 5 || s.Duplicate != 1 || s.Reordered != 1 || s.LowestSeq != 0 || s.HighestSeq != 5 {
		t.Errorf("%+v", s)
	}
	if n := testing.AllocsPerRun(100, func() { c.CheckPktgen(pktgenFrame(7)[:60:60], &out) }); n > 1 { // the frame itself
		t.Errorf("%v allocations", n)
	}
}

func TestPktgenWrap(t *testing.T) {
	a := NewAccount()
	q, c := a.Queue(0), NewChecker(CheckerConfig{})
	var out Checked
	for _, seq := range []uint32{0xfffffffe, 0xffffffff, 0, 1, 2} {
		c.CheckPktgen(pktgenFrame(seq), &out)
		q.Count(&out)
	}
	q.Publish()
	if s := a.Spaces()[0]; s.Distinct != 5 || s.HighestSeq-s.LowestSeq != 4 || s.Implausible != 0 {
		t.Errorf("%+v", s)
	}
}

// TestPktgenBad: what is no frame of pktgen, and what is a damaged one.
func TestPktgenBad(t *testing.T) {
	c := NewChecker(CheckerConfig{})
	for name, x := range map[string]struct {
		break_ func(b []byte) []byte
		class  Class
		reason Reason
	}{
		"magic":    {func(b []byte) []byte { b[42] = 0; return b }, ClassUntagged, ReasonNoTag},
		"checksum": {func(b []byte) []byte { b[40] = 1; return b }, ClassCorrupt, ReasonL4},
		"header":   {func(b []byte) []byte { b[22]++; return b }, ClassCorrupt, ReasonL3},
		"length":   {func(b []byte) []byte { b[39]--; return b }, ClassCorrupt, ReasonLength},
		"arp":      {func(b []byte) []byte { b[13] = 6; return b }, ClassUntagged, ReasonNotIP},
		"cut":      {func(b []byte) []byte { return b[:30] }, ClassUnreadable, ReasonLength},
		"nothing":  {func(b []byte) []byte { return nil }, ClassUnreadable, ReasonLength},
	} {
		var out Checked
		if c.CheckPktgen(x.break_(slices.Clone(pktgenFrame(3))), &out); out.Class != x.class || out.Reason != x.reason {
			t.Errorf("%s: %s, %s", name, out.Class, out.Reason)
		}
	}
}

// FuzzPktgen: any bytes are judged, and none panics.
func FuzzPktgen(f *testing.F) {
	f.Add(pktgenFrame(9))
	empty := pktgenFrame(9)[:42] // a UDP datagram without payload
	empty[17], empty[25], empty[39] = 28, empty[25]+18, 8
	f.Add(empty)
	c := NewChecker(CheckerConfig{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var out Checked
		if c.CheckPktgen(b, &out); out.Class == ClassGood && len(b) < 58 {
			t.Errorf("good: %x", b)
		}
	})
}
