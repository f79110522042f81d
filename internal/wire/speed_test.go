package wire

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
)

func TestParseSpeed(t *testing.T) {
	for in, want := range map[string]Speed{
		"10G":                   Speed10G,
		"10g":                   Speed10G,
		"10Gbps":                Speed10G,
		"10Gbit/s":              Speed10G,
		"10 G":                  0,
		"10000M":                Speed10G,
		"2.5G":                  2_500_000_000,
		"2.50G":                 2_500_000_000,
		"100M":                  100_000_000,
		"0.4T":                  400_000_000_000,
		"56k":                   56_000,
		"9600bps":               9600,
		"1000000G":              maxSpeed,
		"1000001G":              0,
		"10":                    0,
		"10000":                 0,
		"":                      0,
		"G":                     0,
		"0G":                    0,
		"-1G":                   0,
		"1.5bps":                0,
		"1.0000000001G":         0,
		"10Q":                   0,
		"10bpsbps":              0,
		"99999999999999999999T": 0,
	} {
		got, err := ParseSpeed(in)
		var parse *ParseError
		if want == 0 && !errors.As(err, &parse) || want != 0 && err != nil || got != want {
			t.Errorf("ParseSpeed(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
}

func TestSpeedString(t *testing.T) {
	for s, want := range map[Speed]string{
		0: "unknown", 1: "1bps", 999: "999bps", 1500: "1.5k", 100_000_000: "100M",
		2_500_000_000: "2.5G", Speed10G: "10G", 10_000_000_001: "10.000000001G", 1e12: "1T",
	} {
		if got := s.String(); got != want {
			t.Errorf("Speed(%d) prints %q, want %q", uint64(s), got, want)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for in, want := range map[string]uint64{
		"0": 0, "1448": 1448, "128KiB": 131072, "128kB": 128000, "1.5MB": 1_500_000,
		"1GiB": 1 << 30, "2TiB": 2 << 40, "1gb": 1e9, "64B": 64, " 5 ": 5,
		"18446744073709551615": math.MaxUint64,
	} {
		if got, err := ParseBytes(in); err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", "K", "128K", "1M", "-1", "1.5", "1.5KiB", "1.0001kB", "18446744073709551616",
		"16777216TiB", "18446745TB", "1e6",
	} {
		var parse *ParseError
		if got, err := ParseBytes(in); !errors.As(err, &parse) || !strings.Contains(parse.Remedy, "KiB") {
			t.Errorf("ParseBytes(%q) = %d, %v; want a *ParseError that lists the units", in, got, err)
		}
	}
}

func TestFormat(t *testing.T) {
	for v, want := range map[PPS]string{
		0: "0 pps", 1: "1 pps", 0.5: "0.500 pps", 999: "999 pps", 1000: "1.000 kpps",
		999_999.6: "1.000 Mpps", 14_880_952.38: "14.881 Mpps", PPS(math.NaN()): "unknown",
		PPS(math.Inf(1)): "unknown", -2000: "-2.000 kpps", 3e12: "3000.000 Gpps",
	} {
		if got := FormatPPS(v); got != want {
			t.Errorf("FormatPPS(%v) = %q, want %q", float64(v), got, want)
		}
	}
	if got := FormatBits(7_619_047_619); got != "7.619 Gbit/s" {
		t.Errorf("FormatBits = %q", got)
	}
	for n, want := range map[uint64]string{
		0: "0", 999: "999", 1000: "1,000", 14880952: "14,880,952",
		math.MaxUint64: "18,446,744,073,709,551,615",
	} {
		if got := FormatCount(n); got != want {
			t.Errorf("FormatCount(%d) = %q, want %q", n, got, want)
		}
	}
}

func FuzzParseSpeed(f *testing.F) {
	for _, s := range []string{"10G", "2.5G", "100M", "1bps", "0G", "1000000G", "0.000000001G"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		s, err := ParseSpeed(in)
		if err != nil {
			return
		}
		if s == 0 || s > maxSpeed {
			t.Fatalf("ParseSpeed(%q) = %d", in, uint64(s))
		}
		if again, err := ParseSpeed(s.String()); err != nil || again != s {
			t.Fatalf("%q -> %d -> %q -> %d, %v", in, uint64(s), s, uint64(again), err)
		}
	})
}

func FuzzParseBytes(f *testing.F) {
	for _, s := range []string{"1", "128KiB", "1.5MB", "16777215TiB", "K"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		n, err := ParseBytes(in)
		if err != nil {
			return
		}
		if again, err := ParseBytes(strconv.FormatUint(n, 10)); err != nil || again != n {
			t.Fatalf("%q -> %d -> %d, %v", in, n, again, err)
		}
	})
}
