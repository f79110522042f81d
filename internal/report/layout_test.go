package report

import (
	"math"
	"strings"
	"testing"
)

func TestFormatNs(t *testing.T) {
	for ns, want := range map[int64]string{
		0: "0 ns", 999: "999 ns", 1000: "1.00 us", 999_990: "999.99 us", 1_000_000: "1.00 ms",
		999_990_000: "999.99 ms", 1_000_000_000: "1.000 s", 3_661_000_000_000: "3661.000 s", -1500: "-1.50 us",
	} {
		if got := formatNs(ns); got != want {
			t.Errorf("%d: %q, want %q", ns, got, want)
		}
	}
	if got := formatNs(math.MinInt64); !strings.HasPrefix(got, "-") {
		t.Errorf("the least time: %q", got)
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		in   string
		n    int
		want string
	}{{"short", 5, "short"}, {"longer", 5, "lo..."}, {"zähler", 5, "zä..."}, {"", 0, ""}, {"abc", 1, "..."}} {
		if got := cut(tt.in, tt.n); got != tt.want {
			t.Errorf("cut(%q, %d) = %q, want %q", tt.in, tt.n, got, tt.want)
		}
	}
}

func TestClean(t *testing.T) {
	if got := clean("a\x1b[1mb\n\u009bc ü"); got != "a?[1mb??c ü" {
		t.Errorf("%q", got)
	}
}

func TestRowBreaksBetweenItems(t *testing.T) {
	p := &page{}
	long := strings.Repeat("x", 40)
	p.row("label", item{long, none}, item{long, none}, item{long, none})
	want := "  label     " + long + "  " + long + "\n" + strings.Repeat(" ", 12) + long + "\n"
	if got := p.b.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestProseBreaksBetweenWords(t *testing.T) {
	p := &page{}
	p.prose("label", strings.Repeat("word ", 30)+strings.Repeat("y", 120), none)
	lines := strings.Split(strings.TrimSuffix(p.b.String(), "\n"), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "  label     word ") || len(lines[0]) > columns {
		t.Errorf("%d lines:\n%s", len(lines), p.b.String())
	}
	if !strings.HasSuffix(lines[2], strings.Repeat("y", 120)) {
		t.Error("a word too long for a line is broken")
	}
}
