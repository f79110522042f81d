package rss

import (
	"encoding/hex"
	"math/bits"
	"net/netip"
	"testing"
)

// vectors are those that Microsoft publishes to verify an implementation
// ("Verifying the RSS Hash Calculation", Windows driver documentation): the
// destination stands first, the hashes are over addresses, and with TCP ports.
var vectors = []struct {
	dst, src    string
	addrs, both uint32
}{
	{"161.142.100.80:1766", "66.9.149.187:2794", 0x323e8fc2, 0x51ccc178},
	{"65.69.140.83:4739", "199.92.111.2:14230", 0xd718262a, 0xc626b0ea},
	{"12.22.207.184:38024", "24.19.198.95:12898", 0xd2d0a5de, 0x5c2b394a},
	{"209.142.163.6:2217", "38.27.205.30:48228", 0x82989176, 0xafc7327f},
	{"202.188.127.2:1303", "153.39.163.191:44251", 0x5d1809c5, 0x10e828a2},
	{"[3ffe:2501:200:3::1]:1766", "[3ffe:2501:200:1fff::7]:2794", 0x2cc18cd5, 0x40207d3d},
	{"[ff02::1]:4739", "[3ffe:501:8::260:97ff:fe40:efab]:14230", 0x0f0c461c, 0xdde51bbf},
	{"[fe80::200:f8ff:fe21:67cf]:38024", "[3ffe:1900:4545:3:200:f8ff:fe21:67cf]:44251", 0x4b61e985, 0x02d1feef},
}

func key(t testing.TB) []byte {
	t.Helper()
	k, err := hex.DecodeString("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestPublishedVectors(t *testing.T) {
	k := key(t)
	for _, v := range vectors {
		src, dst := netip.MustParseAddrPort(v.src), netip.MustParseAddrPort(v.dst)
		if got := Hash(k, Input(src, dst, Fields{Addrs: true})); got != v.addrs {
			t.Errorf("%s to %s: %#x, want %#x", v.src, v.dst, got, v.addrs)
		}
		if got := Hash(k, Input(src, dst, Fields{Addrs: true, Ports: true})); got != v.both {
			t.Errorf("%s to %s with ports: %#x, want %#x", v.src, v.dst, got, v.both)
		}
	}
}

func TestQueue(t *testing.T) {
	c := Config{Key: key(t), Table: make([]uint32, 128), UDP4: &Fields{Addrs: true}}
	for i := range c.Table {
		c.Table[i] = uint32(i % 6)
	}
	v := vectors[0]
	src, dst := netip.MustParseAddrPort(v.src), netip.MustParseAddrPort(v.dst)
	if q, ok := c.Queue(src, dst); !ok || q != 0x42%6 { // 0x323e8fc2 & 127
		t.Errorf("queue %d, %v", q, ok)
	}
	if q, ok := c.Queue(netip.AddrPortFrom(src.Addr(), 1), dst); !ok || q != 0x42%6 {
		t.Errorf("ports are not hashed, and yet another queue: %d, %v", q, ok)
	}
	c.UDP4.Ports = true
	if q, ok := c.Queue(src, dst); !ok || q != 0x78%6 { // 0x51ccc178 & 127
		t.Errorf("with ports: queue %d, %v", q, ok)
	}
	six := netip.MustParseAddrPort(vectors[5].dst)
	for name, broken := range map[string]Config{
		"fields":       {Key: c.Key, Table: c.Table},
		"no table":     {Key: c.Key, UDP4: c.UDP4},
		"an odd table": {Key: c.Key, Table: c.Table[:100], UDP4: c.UDP4},
		"no key":       {Table: c.Table, UDP4: c.UDP4},
	} {
		if _, ok := broken.Queue(src, dst); ok {
			t.Errorf("%s: a queue is predicted", name)
		}
	}
	if _, ok := c.Queue(six, six); ok {
		t.Error("IPv6: a queue is predicted, and its fields are not known")
	}
}

// The hash is linear, and a bit that moves by one moves the key by one.
func FuzzHash(f *testing.F) {
	f.Add([]byte{1, 2, 3}, []byte{4, 5, 6})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		k := key(t)
		n := min(len(a), len(b))
		sum := make([]byte, n)
		for i := range sum {
			sum[i] = a[i] ^ b[i]
		}
		if Hash(k, a[:n])^Hash(k, b[:n]) != Hash(k, sum) {
			t.Fatalf("not linear in %x and %x", a, b)
		}
		if n > 0 && n <= 36 && bits.OnesCount8(a[0]) == 1 {
			one := append([]byte{}, make([]byte, n-1)...)
			one = append(one, a[0])
			at := (n-1)*8 + bits.LeadingZeros8(a[0])
			var want uint32
			for i := range 32 {
				want = want<<1 | uint32(k[(at+i)/8]>>(7-(at+i)%8)&1)
			}
			if Hash(k, one) != want {
				t.Fatalf("bit %d: %#x, want %#x", at, Hash(k, one), want)
			}
		}
	})
}
