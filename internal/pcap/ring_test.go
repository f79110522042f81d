package pcap

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"linerate/internal/nettest"
)

func TestParseKeep(t *testing.T) {
	for _, s := range []string{"first:1", "last:1000", "bad:7"} {
		if k, err := ParseKeep(s); err != nil || k.String() != s {
			t.Errorf("%s: %v, %v", s, k, err)
		}
	}
	for _, s := range []string{"", "first", "first:", "first:0", "all:3", "last:-1", "bad:99999999999"} {
		if k, err := ParseKeep(s); err == nil {
			t.Errorf("%q gives %v", s, k)
		}
	}
}

// numbers takes n frames, each its number, alternating between two queues, and
// tells which are kept.
func numbers(t *testing.T, k Keep, n int) (kept []string, lost uint64) {
	t.Helper()
	rings := []*Ring{NewRing(k, 16), NewRing(k, 16)}
	for i := range n {
		rings[i%2].Take(int64(i/4), 0, []byte(fmt.Sprint(i)))
	}
	got, lost := Gather(rings)
	for _, g := range got {
		kept = append(kept, string(g.Data))
	}
	return kept, lost
}

func TestRing(t *testing.T) {
	for _, c := range []struct {
		mode Mode
		n    int
		want string
		lost uint64
	}{
		{First, 3, "[0 2 1]", 0}, // of one time: queue after queue
		{First, 20, "[0 2 1 3]", 16},
		{Last, 20, "[16 18 17 19]", 16},
		{Last, 2, "[0 1]", 0},
		{Bad, 8, "[0 2 1 3]", 4},
	} {
		if got, lost := numbers(t, Keep{c.mode, 4}, c.n); fmt.Sprint(got) != c.want || lost != c.lost {
			t.Errorf("%s of %d: kept %v and not %d, want %s and %d", c.mode, c.n, got, lost, c.want, c.lost)
		}
	}
	r := NewRing(Keep{Last, 2}, 8)
	if n := testing.AllocsPerRun(100, func() { r.Take(1, 2, []byte("a frame that is too long")) }); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
	if k, _ := Gather([]*Ring{r}); string(k[0].Data) != "a frame " || k[0].Len != 24 || k[0].Why != 2 {
		t.Errorf("kept %+v", k[0])
	}
}

// TestTshark: another program reads the frames, their times and the comments.
func TestTshark(t *testing.T) {
	nettest.Require(t, nettest.Tshark)
	r := NewRing(Keep{First, 2}, 2048)
	r.Take(5, 0, udp(60, 1, 1))
	r.Take(123_456_789, 7, udp(1514, 1, 2))
	kept, _ := Gather([]*Ring{r})
	comment := func(why uint16) string {
		if why == 0 {
			return ""
		}
		return fmt.Sprintf("corrupt: reason %d", why)
	}
	var file bytes.Buffer
	if err := WriteKept(&file, "linerate test", "lr0", kept, 1_700_000_000_000_000_000, comment); err != nil {
		t.Fatal(err)
	}
	path := save(t, file.Bytes())
	got, err := all(file.Bytes())
	if err != nil || len(got) != 2 || got[1].ns != 1_700_000_000_123_456_789 || !bytes.Equal(got[1].data, udp(1514, 1, 2)) {
		t.Errorf("read back: %d frames, %v", len(got), err)
	}
	cmd := exec.Command("tshark", "-r", path, "-T", "fields", "-e", "frame.time_epoch", "-e", "frame.len", "-e", "frame.interface_name", "-e", "frame.comment")
	out, err := cmd.Output()
	want := "1700000000.000000005\t60\tlr0\t\n1700000000.123456789\t1514\tlr0\tcorrupt: reason 7\n"
	if err != nil || strings.TrimSpace(string(out)) != strings.TrimSpace(want) {
		t.Errorf("tshark: %v\n%q, want\n%q", err, out, want)
	}
}
