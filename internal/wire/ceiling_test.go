package wire

import (
	"errors"
	"fmt"
	"testing"
)

// Every cell is compared as printed in the source table, so "exact" means to
// the last digit given there.
func check(t *testing.T, name, format, want string, got float64) {
	t.Helper()
	if s := fmt.Sprintf(format, got); s != want {
		t.Errorf("%s = %s, want %s", name, s, want)
	}
}

func mustCeiling(t *testing.T, frame FrameLen, o CeilingOptions) Ceiling {
	t.Helper()
	c, err := NewCeiling(Speed10G, frame, o)
	if err != nil {
		t.Fatalf("NewCeiling(%d, %+v): %v", frame, o, err)
	}
	return c
}

func TestCeilingFrameTable(t *testing.T) {
	for _, row := range []struct {
		frame                     FrameLen
		pps, l2, l2NoFCS, mb, gap string
	}{
		{64, "14880952.38", "7.619048", "7.142857", "892.8571", "67.2"},
		{65, "14705882.35", "7.647059", "7.176471", "897.0588", "68.0"},
		{128, "8445945.95", "8.648649", "8.378378", "1047.2973", "118.4"},
		{256, "4528985.51", "9.275362", "9.130435", "1141.3043", "220.8"},
		{512, "2349624.06", "9.624060", "9.548872", "1193.6090", "425.6"},
		{1024, "1197318.01", "9.808429", "9.770115", "1221.2644", "835.2"},
		{1280, "961538.46", "9.846154", "9.815385", "1226.9231", "1040.0"},
		{1518, "812743.82", "9.869961", "9.843953", "1230.4941", "1230.4"},
		{3064, "405317.77", "9.935149", "9.922179", "1240.2724", "2467.2"},
		{4488, "277284.83", "9.955634", "9.946761", "1243.3452", "3606.4"},
		{6018, "207022.19", "9.966876", "9.960252", "1245.0315", "4830.4"},
		{9018, "138304.93", "9.977871", "9.973445", "1246.6807", "7230.4"},
		{9728, "128231.43", "9.979483", "9.975380", "1246.9224", "7798.4"},
	} {
		t.Run(fmt.Sprint(row.frame), func(t *testing.T) {
			c := mustCeiling(t, row.frame, CeilingOptions{})
			check(t, "pps", "%.2f", row.pps, float64(c.PPS))
			check(t, "line rate", "%.2f", row.pps, float64(Speed10G.LineRate(row.frame)))
			check(t, "L2", "%.6f", row.l2, float64(c.L2)/1e9)
			check(t, "L2 without FCS", "%.6f", row.l2NoFCS, float64(c.L2NoFCS)/1e9)
			check(t, "/proc MB/s", "%.4f", row.mb, c.ProcBytesPerSec/1e6)
			check(t, "ns per frame", "%.1f", row.gap, c.FrameNs)
			check(t, "L1", "%.0f", "10000000000", float64(c.L1))
		})
	}
}

func TestCeilingFrameOfMTU(t *testing.T) {
	for mtu, frame := range map[int]FrameLen{
		1500: 1518, 3046: 3064, 4470: 4488, 6000: 6018, 9000: 9018, 9710: 9728,
	} {
		if got := FrameForMTU(mtu, 0); got != frame {
			t.Errorf("FrameForMTU(%d, 0) = %d, want %d", mtu, got, frame)
		}
		if got := frame.MTU(0); got != mtu {
			t.Errorf("%d.MTU(0) = %d, want %d", frame, got, mtu)
		}
		if got := FrameForMTU(mtu, 0).WireBytes(); got != mtu+38 {
			t.Errorf("wire bytes at MTU %d = %d, want MTU+38", mtu, got)
		}
		if got := FrameForMTU(mtu, 2).WireBytes(); got != mtu+38+8 {
			t.Errorf("wire bytes at MTU %d with two tags = %d, want MTU+46", mtu, got)
		}
	}
}

func TestCeilingTCPGoodputTable(t *testing.T) {
	options := []CeilingOptions{
		{}, {Timestamps: true}, {IPv6: true}, {IPv6: true, Timestamps: true},
		{VLANs: 1, Timestamps: true},
	}
	for mtu, want := range map[int][]string{
		1500: {"9.492848", "9.414824", "9.362809", "9.284785", "9.390402"},
		3046: {"9.747082", "9.708171", "9.682231", "9.643320", "9.695596"},
		4470: {"9.826974", "9.800355", "9.782609", "9.755989", "9.791667"},
		6000: {"9.870818", "9.850944", "9.837695", "9.817820", "9.844422"},
		9000: {"9.913698", "9.900420", "9.891569", "9.878292", "9.896041"},
	} {
		for i, o := range options {
			c := mustCeiling(t, FrameForMTU(mtu, o.VLANs), o)
			check(t, fmt.Sprintf("MTU %d %+v", mtu, o), "%.6f", want[i], float64(c.TCPGoodput)/1e9)
		}
	}
}

func TestCeilingTCPGoodputMegabytes(t *testing.T) {
	for mtu, want := range map[int][2]string{
		1500: {"1186.606", "1176.853"},
		6000: {"1233.852", "1231.368"},
		9000: {"1239.212", "1237.553"},
	} {
		for i, o := range []CeilingOptions{{}, {Timestamps: true}} {
			c := mustCeiling(t, FrameForMTU(mtu, 0), o)
			check(t, fmt.Sprintf("MTU %d %+v", mtu, o), "%.3f", want[i], float64(c.TCPGoodput)/8e6)
		}
	}
}

func TestCeilingUDPGoodput(t *testing.T) {
	for mtu, want := range map[int]string{1500: "9.570871", 9000: "9.926975"} {
		c := mustCeiling(t, FrameForMTU(mtu, 0), CeilingOptions{})
		check(t, fmt.Sprintf("UDP at MTU %d", mtu), "%.6f", want, float64(c.UDPGoodput)/1e9)
	}
}

func TestCeilingBothWays(t *testing.T) {
	stamps := CeilingOptions{Timestamps: true}
	if got := stamps.ACKFrame().Buf(); got != 66 {
		t.Errorf("ACK with timestamps = %d bytes without FCS, want 66", got)
	}
	if got := stamps.ACKFrame().WireBytes(); got != 90 {
		t.Errorf("ACK with timestamps = %d bytes of line time, want 90", got)
	}
	plain := CeilingOptions{}
	if got := plain.ACKFrame(); got != MinFrame {
		t.Errorf("ACK without timestamps = frame of %d, want it padded to %d", got, MinFrame)
	}
	tagged := CeilingOptions{Timestamps: true, IPv6: true, VLANs: 1}
	if got := tagged.ACKFrame(); got != 14+4+40+32+4 {
		t.Errorf("tagged IPv6 ACK with timestamps = frame of %d, want 94", got)
	}
	c := mustCeiling(t, 1518, stamps)
	for k, want := range map[int]string{2: "9.1472", 16: "9.3805"} {
		check(t, fmt.Sprintf("both ways, 1 ACK per %d", k), "%.4f", want, float64(c.TCPBothWays(k))/1e9)
	}
	c = mustCeiling(t, 6018, stamps)
	for k, want := range map[int]string{2: "2485.2", 8: "2488.8"} {
		check(t, fmt.Sprintf("/proc both ways, 1 ACK per %d", k), "%.1f", want, 2*c.ProcBothWays(k)/1e6)
	}
	if c.TCPBothWays(0) != c.TCPBothWays(1) {
		t.Error("no segments per ACK is not taken as one")
	}
}

// An ACK of 54 bytes is counted as 54 by software although 60 leave the port.
func TestCeilingCountsACKUnpadded(t *testing.T) {
	c := mustCeiling(t, 1518, CeilingOptions{})
	want := 1e10 / 8 * (1514 + 54) / (1538 + 84.0)
	check(t, "/proc both ways", "%.3f", fmt.Sprintf("%.3f", want), c.ProcBothWays(1))
}

func TestCeilingHeadersDoNotFit(t *testing.T) {
	c := mustCeiling(t, 64, CeilingOptions{IPv6: true, Timestamps: true})
	if c.TCPPayload != -26 || c.TCPGoodput != 0 {
		t.Errorf("payload %d, goodput %v: want -26 and 0", c.TCPPayload, c.TCPGoodput)
	}
	if c.UDPPayload != -2 || c.UDPGoodput != 0 {
		t.Errorf("payload %d, goodput %v: want -2 and 0", c.UDPPayload, c.UDPGoodput)
	}
}

func TestCeilingRefusesNonsense(t *testing.T) {
	for name, give := range map[string]struct {
		speed Speed
		frame FrameLen
		opts  CeilingOptions
	}{
		"no speed":      {0, 64, CeilingOptions{}},
		"too fast":      {maxSpeed + 1, 64, CeilingOptions{}},
		"runt":          {Speed10G, 63, CeilingOptions{}},
		"negative tags": {Speed10G, 64, CeilingOptions{VLANs: -1}},
	} {
		var rangeErr *RangeError
		if _, err := NewCeiling(give.speed, give.frame, give.opts); !errors.As(err, &rangeErr) {
			t.Errorf("%s: error %v, want a *RangeError", name, err)
		}
	}
}

func TestFrameLengths(t *testing.T) {
	if got := FrameLen(64).Buf(); got != 60 {
		t.Errorf("64.Buf() = %d, want 60", got)
	}
	if got := BufLen(60).Frame(); got != 64 {
		t.Errorf("60.Frame() = %d, want 64", got)
	}
	if got := FrameLen(64).WireBytes(); got != 84 {
		t.Errorf("64.WireBytes() = %d, want 84", got)
	}
	// One second of 64-byte frames at 10G, seen by a counter without FCS.
	const frames = 14_880_952
	if got := L1Bits(frames, frames*60); got != frames*84*8 {
		t.Errorf("L1Bits = %d, want %d", got, frames*84*8)
	}
	if got := L2Bits(frames, frames*60); got != frames*64*8 {
		t.Errorf("L2Bits = %d, want %d", got, frames*64*8)
	}
}
