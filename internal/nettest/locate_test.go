package nettest

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// ipv6Frame is a frame of size bytes over IPv6 to port, with a short tag.
func ipv6Frame(size int, port uint16) []byte {
	b := make([]byte, size)
	binary.BigEndian.PutUint16(b[12:], etherIPv6)
	b[14], b[20] = 0x60, protoUDP
	binary.BigEndian.PutUint16(b[18:], uint16(size-54))
	binary.BigEndian.PutUint16(b[56:], port)
	binary.BigEndian.PutUint16(b[58:], uint16(size-54))
	binary.BigEndian.PutUint16(b[size-shortTag:], shortMagic)
	return b
}

// with gives a copy with one byte changed.
func with(b []byte, at int, v byte) []byte {
	c := slices.Clone(b)
	c[at] = v
	return c
}

func TestLocate(t *testing.T) {
	plain := udpFrame(1, 60, defaultPort)
	padded := append(udpFrame(1, 60, defaultPort), make([]byte, 6)...)
	for _, c := range []struct {
		name string
		b    []byte
		want where
		ok   bool
	}{
		{"IPv4", plain, where{udp: 34, payload: 42, end: 60, tag: 42, magic: 42, tagLen: longTag}, true},
		{"padded", padded, where{udp: 34, payload: 42, end: 60, tag: 42, magic: 42, tagLen: longTag}, true},
		{"VLAN", udpFrame(1, 100, defaultPort, 5), where{udp: 38, payload: 46, end: 100, tag: 82, magic: 82, tagLen: longTag}, true},
		{"two VLANs", udpFrame(1, 100, defaultPort, 5, 6), where{udp: 42, payload: 50, end: 100, tag: 82, magic: 82, tagLen: longTag}, true},
		{"IPv6, short tag", ipv6Frame(76, defaultPort), where{udp: 54, payload: 62, end: 76, tag: 66, magic: 66, tagLen: shortTag}, true},
		{"no tag", with(plain, 42, 0), where{udp: 34, payload: 42, end: 60, tag: -1, magic: -1}, true},
		{"other port", udpFrame(1, 60, 9), where{}, false},
		{"three VLANs", udpFrame(1, 100, defaultPort, 5, 6, 7), where{}, false},
		{"TCP", with(plain, 23, 6), where{}, false},
		{"fragment", with(plain, 21, 1), where{}, false},
		{"header too short", with(plain, 14, 0x44), where{}, false},
		{"version", with(plain, 14, 0x65), where{}, false},
		{"UDP length beyond the end", with(plain, 39, 27), where{}, false},
		{"UDP length below its header", with(plain, 39, 7), where{}, false},
		{"cut in the UDP header", plain[:40], where{}, false},
		{"cut in the addresses", plain[:13], where{}, false},
		{"empty", nil, where{}, false},
	} {
		got, ok := locate(c.b, defaultPort)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%s: %+v, %v; want %+v, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

func TestDamageNeedsThePart(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	untagged := with(udpFrame(1, 60, defaultPort), 42, 0)
	full := udpFrame(1, 60, defaultPort)
	for _, c := range []struct {
		b    []byte
		part Part
		ok   bool
	}{
		{full, Payload, false}, {full, Tag, true}, {full, Magic, true}, {full, Checksum, true},
		{untagged, Payload, true}, {untagged, Tag, false}, {untagged, Magic, false}, {untagged, Checksum, true},
	} {
		b := slices.Clone(c.b)
		w, _ := locate(b, defaultPort)
		err := damage(b, w, c.part, rnd)
		if (err == nil) != c.ok || slices.Equal(b, c.b) == c.ok {
			t.Errorf("%s: %v, changed %v", c.part, err, !slices.Equal(b, c.b))
		}
	}
}

// TestDamageChecksumIsNeverNone: zero would tell the receiver not to look.
func TestDamageChecksumIsNeverNone(t *testing.T) {
	for v := range 1 << 16 {
		b := []byte{byte(v >> 8), byte(v)}
		damageChecksum(b)
		if b[0] == 0 && b[1] == 0 || int(b[0])<<8|int(b[1]) == v {
			t.Fatalf("%04x became %x", v, b)
		}
	}
}

func TestPlanKeepsTheFirstRule(t *testing.T) {
	rules := []Rule{
		{Fault: Drop, Frames: []uint64{1, 2}}, {Fault: Swap, Frames: []uint64{2, 3}},
		{Way: BtoA, Fault: Duplicate, Frames: []uint64{1}},
	}
	ab, ba := plan(rules, AtoB), plan(rules, BtoA)
	if len(ab) != 3 || ab[1].Fault != Drop || ab[2].Fault != Drop || ab[3].Fault != Swap {
		t.Errorf("%v", ab)
	}
	if len(ba) != 1 || ba[1].Fault != Duplicate {
		t.Errorf("%v", ba)
	}
}

func TestNames(t *testing.T) {
	if Corrupt.String() != "corrupt" || Drop.String() != "drop" || Magic.String() != "magic" || Checksum.String() != "checksum" {
		t.Error(Corrupt, Drop, Magic, Checksum)
	}
}

func FuzzVLANOf(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, 40))
	f.Fuzz(func(t *testing.T, oob []byte) {
		if _, tci, ok := vlanOf(oob); ok && len(oob) < 20 {
			t.Errorf("tag %d from %d bytes", tci, len(oob))
		}
	})
}
