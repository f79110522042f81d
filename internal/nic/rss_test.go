package nic

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// table is struct ethtool_rxfh as a driver fills it in.
func table(hash byte, entries []uint32, key []byte) []byte {
	b := make([]byte, rxfhBytes)
	binary.NativeEndian.PutUint32(b[8:], uint32(len(entries)))
	binary.NativeEndian.PutUint32(b[12:], uint32(len(key)))
	b[16] = hash
	for _, e := range entries {
		b = binary.NativeEndian.AppendUint32(b, e)
	}
	return append(b, key...)
}

func TestParseTable(t *testing.T) {
	entries, key := []uint32{0, 1, 2, 3}, []byte{9, 8, 7, 6, 5}
	for _, hash := range []byte{0, hashToeplitz} {
		c := parseTable(table(hash, entries, key))
		if c == nil || !slices.Equal(c.Table, entries) || !slices.Equal(c.Key, key) {
			t.Errorf("hash %d: %+v", hash, c)
		}
	}
	for name, b := range map[string][]byte{
		"XOR": table(2, entries, key), "no key": table(1, entries, nil), "no table": table(1, nil, key),
		"cut short": table(1, entries, key)[:30], "nothing": nil,
	} {
		if c := parseTable(b); c != nil {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestParseFields(t *testing.T) {
	if f := parseFields(hashAddrs); f == nil || !f.Addrs || f.Ports {
		t.Errorf("addresses: %+v", f)
	}
	if f := parseFields(hashAddrs | hashPorts); f == nil || !f.Ports {
		t.Errorf("ports too: %+v", f)
	}
	for _, flags := range []uint64{0, 1 << 31, hashAddrs | 1<<6, 1 << 4, hashAddrs | 1<<2} {
		if f := parseFields(flags); f != nil {
			t.Errorf("%#x: %+v", flags, f)
		}
	}
}

func FuzzParseTable(f *testing.F) {
	f.Add(table(1, []uint32{0, 1}, []byte{1, 2, 3}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c := parseTable(b); c != nil && len(b) < rxfhBytes+4*len(c.Table)+len(c.Key) {
			t.Fatalf("%d entries and %d bytes of key from %d bytes", len(c.Table), len(c.Key), len(b))
		}
	})
}

// The call reaches the kernel and brings its answer back: loopback has a link.
func TestEthtoolCall(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	b := make([]byte, 8)
	binary.NativeEndian.PutUint32(b, unix.ETHTOOL_GLINK)
	if err := ethtoolCall(fd, "lo", b); err != nil || binary.NativeEndian.Uint32(b[4:]) != 1 {
		t.Errorf("%v, %x", err, b)
	}
	if err := ethtoolCall(fd, "no-such-if0", b); err != unix.ENODEV {
		t.Errorf("no interface: %v", err)
	}
}
