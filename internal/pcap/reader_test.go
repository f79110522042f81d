package pcap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// record is one frame of a capture that a test makes.
type record struct {
	ns   int64
	data []byte
	cut  int // bytes that were not captured
}

// classic makes a pcap file.
func classic(order binary.ByteOrder, nano bool, link uint32, records ...record) []byte {
	magic, unit := uint32(0xa1b2c3d4), int64(1000)
	if nano {
		magic, unit = 0xa1b23c4d, 1
	}
	var b bytes.Buffer
	put := func(v ...any) {
		for _, x := range v {
			_ = binary.Write(&b, order, x) // a bytes.Buffer takes all
		}
	}
	put(magic, uint16(2), uint16(4), uint32(0), uint32(0), uint32(65535), link)
	for _, r := range records {
		put(uint32(r.ns/1e9), uint32(r.ns%1e9/unit), uint32(len(r.data)), uint32(len(r.data)+r.cut), r.data)
	}
	return b.Bytes()
}

// udp makes a frame of n bytes of one flow, marked with a number.
func udp(n int, srcPort, mark uint16) []byte {
	b := make([]byte, n)
	copy(b, "\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01\x08\x00\x45\x00")
	binary.BigEndian.PutUint16(b[16:], uint16(n-14))
	b[22], b[23] = 64, protoUDP
	copy(b[26:], []byte{198, 18, 0, 1, 198, 18, 0, 2})
	binary.BigEndian.PutUint16(b[34:], srcPort)
	binary.BigEndian.PutUint16(b[36:], 7777)
	binary.BigEndian.PutUint16(b[38:], uint16(n-34))
	binary.BigEndian.PutUint16(b[n-2:], mark)
	return b
}

// ngOf makes a pcapng file.
func ngOf(t testing.TB, records ...record) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, "test", "lr0")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := w.Write(r.ns, r.data, len(r.data)+r.cut, "a comment"); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// all reads a capture to its end.
func all(file []byte) (out []record, err error) {
	r, err := NewReader("x.pcap", bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	for {
		p, err := r.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, record{ns: p.Ns, data: bytes.Clone(p.Data)})
	}
}

func TestFormats(t *testing.T) {
	want := []record{{ns: 1_700_000_000_123_456_000, data: udp(60, 1, 1)}, {ns: 1_700_000_001_000_001_000, data: udp(1514, 2, 2)}}
	fine := []record{{ns: want[0].ns + 789, data: want[0].data}, want[1]}
	for name, c := range map[string]struct {
		file []byte
		want []record
	}{
		"us little": {classic(binary.LittleEndian, false, 1, want...), want},
		"us big":    {classic(binary.BigEndian, false, 1, want...), want},
		"ns little": {classic(binary.LittleEndian, true, 1, fine...), fine},
		"ns big":    {classic(binary.BigEndian, true, 1, fine...), fine},
		"pcapng":    {ngOf(t, fine...), fine},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := all(c.file)
			if err != nil || len(got) != len(c.want) {
				t.Fatalf("%d frames, %v", len(got), err)
			}
			for i := range got {
				if got[i].ns != c.want[i].ns || !bytes.Equal(got[i].data, c.want[i].data) {
					t.Errorf("frame %d at %d, want %d", i, got[i].ns, c.want[i].ns)
				}
			}
		})
	}
}

// TestWrongFiles: what is wrong with a file is said with its name and the
// offset of the record.
func TestWrongFiles(t *testing.T) {
	one, two := record{ns: 1e9, data: udp(60, 1, 1)}, record{ns: 2e9, data: udp(60, 1, 2)}
	good := classic(binary.LittleEndian, false, 1, one, two)
	ng := ngOf(t, one, two)
	huge := bytes.Clone(good)
	binary.LittleEndian.PutUint32(huge[24+76+8:], 1<<30)
	const second = 24 + 16 + 60
	for name, c := range map[string]struct {
		file []byte
		at   int64
		says string
	}{
		"empty":           {nil, 0, "empty"},
		"short":           {[]byte{1, 2}, 0, "shorter than its header"},
		"garbage":         {[]byte("GET / HTTP/1.1\r\n"), 0, "neither pcap nor pcapng"},
		"half a header":   {good[:20], 0, "in the middle"},
		"half a record":   {good[:second+8], second, "in the middle"},
		"no frame behind": {good[:second+16], second, "in the middle"},
		"half a frame":    {good[:len(good)-1], second, "in the middle"},
		"half a block":    {ng[:len(ng)-3], int64(len(ng) - (len(ng)-72)/2), "in the middle"},
		"wrong link":      {classic(binary.LittleEndian, false, 101, one), 0, "link type 101"},
		"impossible":      {huge, second, "length"},
		"cut frame":       {classic(binary.BigEndian, true, 1, one, record{ns: 1, data: udp(60, 1, 1), cut: 40}), second, "cut to 60"},
		"cut in pcapng":   {ngOf(t, record{ns: 1, data: udp(60, 1, 1), cut: 40}), 40, "a frame of 100 bytes was cut to 60"},
		"no frame":        {classic(binary.LittleEndian, false, 1, record{data: []byte{1, 2, 3}}), 24, "3 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := all(c.file)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("error %v", err)
			}
			if e.Path != "x.pcap" || !strings.Contains(e.Error(), "x.pcap") || !strings.Contains(e.Error(), c.says) {
				t.Errorf("%v: want %q in it", e, c.says)
			}
			if name != "half a block" && e.Offset != c.at || e.Offset > int64(len(c.file)) {
				t.Errorf("%v: want byte %d", e, c.at)
			}
		})
	}
}

// FuzzRead: any bytes are read or refused with an offset inside them, and never
// a panic.
func FuzzRead(f *testing.F) {
	one := record{ns: 1e9, data: udp(60, 1, 1)}
	f.Add(classic(binary.LittleEndian, false, 1, one))
	f.Add(classic(binary.BigEndian, true, 1, one, one))
	f.Add(ngOf(f, one, one))
	f.Fuzz(func(t *testing.T, file []byte) {
		got, err := all(file)
		var e *Error
		switch {
		case err != nil && !errors.As(err, &e):
			t.Fatalf("error %v", err)
		case e != nil && (e.Offset < 0 || e.Offset > int64(len(file))):
			t.Fatalf("byte %d of %d: %v", e.Offset, len(file), err)
		}
		for _, r := range got {
			if len(r.data) < etherHeader || len(r.data) > longest {
				t.Fatalf("a frame of %d bytes", len(r.data))
			}
			flowHash(r.data)
			l3Len(r.data)
		}
	})
}

// save writes a file for a test.
func save(t testing.TB, file []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.pcap")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
