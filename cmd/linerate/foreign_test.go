package main

import (
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linerate/internal/lab/veth"
	"linerate/internal/nettest"
	"linerate/internal/pcap"
)

// ofPktgen is a frame as the kernel's pktgen makes it, with the number.
func ofPktgen(seq uint32) []byte {
	b := packet(60, 0, 0)
	clear(b[34:])
	copy(b[34:], "\x00\x09\x00\x09\x00\x1a\x00\x00\xbe\x9b\xe9\x55")
	binary.BigEndian.PutUint32(b[46:], seq)
	b[24], b[25] = 0, 0
	var sum uint32
	for i := 14; i < 34; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	binary.BigEndian.PutUint16(b[24:], ^uint16(sum+sum>>16))
	return b
}

// TestSinkOfPktgen: the account of another generator's numbers, from frames
// of it that are replayed; the duplicate is kept with its reason.
func TestSinkOfPktgen(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	var frames [][]byte
	for seq := uint32(100); seq < 600; seq++ {
		switch seq {
		case 200, 201, 202: // lost
		case 300: // duplicate
			frames = append(frames, ofPktgen(seq), ofPktgen(seq))
		case 400: // reordered
			frames = append(frames, ofPktgen(401), ofPktgen(400))
		case 401:
		default:
			frames = append(frames, ofPktgen(seq))
		}
	}
	lab := nettest.Lab(t, veth.Config{})
	in, out := saveCapture(t, frames), filepath.Join(t.TempDir(), "bad.pcapng")
	type result struct {
		code        int
		doc, stderr string
	}
	done := make(chan result)
	go func() {
		code, doc, stderr := invoke(t, "sink", lab.B(), "--foreign", "pktgen", "--action", "capture", "--capture", "bad:5", "--write", out, "--json", "-t", "4s")
		done <- result{code, doc, stderr}
	}()
	time.Sleep(1500 * time.Millisecond)
	if code, stdout, stderr := invoke(t, "blast", lab.A(), "--pcap", in, "--rate", "5kpps", "--max-rate-error", "100"); code != exitPassed {
		t.Errorf("blast: exit %d: %s%s", code, stdout, stderr)
	}
	r := <-done
	if r.code != exitFailed {
		t.Fatalf("exit %d: %s%s", r.code, r.doc, r.stderr)
	}
	doc := valid(t, "linerate.run/1", r.doc)
	shows(map[string]any{"received": 497, "lost": 3, "duplicate": 1, "reordered": 1, "corrupt": 0, "sent": nil})(t, doc["frames"].(map[string]any))
	if doc["verdict"] != "fail" {
		t.Errorf("verdict %v", doc["verdict"])
	}
	kept, err := pcap.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	if p, err := kept.Next(); err != nil || binary.BigEndian.Uint32(p.Data[46:]) != 300 {
		t.Errorf("kept %x, %v", p.Data, err)
	}
}

func TestForeignFlags(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	lab := nettest.Lab(t, veth.Config{})
	for _, c := range []struct{ flags, says string }{
		{"--foreign trafgen", "no sequence number"},
		{"--foreign moongen", "no generator"},
		{"--foreign pktgen --action count", "looks at no sequence"},
	} {
		code, _, stderr := invoke(t, strings.Fields("sink "+lab.B()+" "+c.flags)...)
		if code != exitUsage || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit %d: %s", c.flags, code, stderr)
		}
	}
}
