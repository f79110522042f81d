package nic

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func ixgbe() Counters {
	return Counters{
		Driver:  "ixgbe",
		Stats64: map[string]uint64{"tx_packets": 1, "rx_packets": 2, "tx_dropped": 3, "rx_missed_errors": 4, "rx_dropped": 5},
		Ethtool: map[string]uint64{
			"tx_queue_0_packets": 10, "tx_queue_1_packets": 20, "tx_queue_0_bytes": 999, "tx_queue_01_packets": 999,
			"rx_queue_0_packets": 30, "rx_queue_17_packets": 40,
			"tx_pkts_nic": 31, "rx_pkts_nic": 71, "rx_missed_errors": 6, "rx_no_dma_resources": 7,
			"rx_crc_errors": 8, "rx_length_errors": 9,
		},
	}
}

func TestRolesOfIxgbe(t *testing.T) {
	c := ixgbe()
	for role, want := range map[Role]uint64{
		RoleDeviceTx: 30, RoleDeviceTxNIC: 31, RoleDeviceTxDropped: 3, RoleDeviceRx: 71, RoleRxQueue: 70,
		RoleRxMissed: 6, RoleRxNoDMA: 7, RoleRxCRC: 8, RoleRxLength: 9, RoleRxDriverDrops: 5,
	} {
		r := c.Read(role)
		if r.Frames == nil || *r.Frames != want || r.Counter == "" || r.Source == "" {
			t.Errorf("%s: %+v, want %d", role, r, want)
		}
	}
	if d := cmp.Diff(map[int]uint64{0: 30, 17: 40}, c.Read(RoleRxQueue).PerQueue); d != "" {
		t.Error(d)
	}
	if r := c.Read(RoleXDPXmit); r.Frames != nil || r.Counter != "" || r.Note == "" {
		t.Errorf("a counter ixgbe does not have: %+v", r)
	}
	c.Ethtool = nil // an older driver, or statistics refused
	if r := c.DeviceTx(); r.Frames == nil || *r.Frames != 1 || r.Source != "stats64" || r.PerQueue != nil {
		t.Errorf("without ethtool: %+v, want stats64's", r)
	}
}

func TestRolesOfUnknownDrivers(t *testing.T) {
	c := Counters{Driver: "e1000e", Stats64: map[string]uint64{"tx_packets": 1, "rx_packets": 2}}
	if r := c.DeviceTx(); r.Frames == nil || *r.Frames != 1 || r.Counter != "tx_packets" {
		t.Errorf("%+v", r)
	}
	if r := c.DeviceTxDropped(); r.Frames != nil {
		t.Errorf("a counter that was not read has the value %d", *r.Frames)
	}
	if r := c.Read(RoleDeviceTxNIC); r.Frames != nil {
		t.Errorf("%+v", r)
	}
}

func TestSubNeedsTheSameCounter(t *testing.T) {
	one, five := uint64(1), uint64(5)
	before := Reading{Frames: &one, Counter: "a", PerQueue: map[int]uint64{0: 1}}
	after := Reading{Frames: &five, Counter: "a", PerQueue: map[int]uint64{0: 2, 1: 3}}
	d, reset := after.Sub(before)
	if reset || *d.Frames != 4 || d.PerQueue[0] != 1 || d.PerQueue[1] != 3 {
		t.Errorf("%+v %v", d, reset)
	}
	if d, reset = before.Sub(after); !reset || d.Frames != nil {
		t.Errorf("a counter that went down: %+v %v", d, reset)
	}
	mixed := Reading{Frames: &five, Counter: "a", PerQueue: map[int]uint64{0: 0, 1: 5}}
	if d, reset = mixed.Sub(before); !reset || d.Frames != nil {
		t.Errorf("one queue went down, the sum up: %+v %v", d, reset)
	}
	lost := Reading{Frames: &five, Counter: "a", PerQueue: map[int]uint64{1: 5}}
	if d, reset = lost.Sub(before); !reset || d.Frames != nil {
		t.Errorf("a queue that went away: %+v %v", d, reset)
	}
	other := Reading{Frames: &five, Counter: "b"}
	if d, reset = other.Sub(before); reset || d.Frames != nil {
		t.Errorf("another counter: %+v %v", d, reset)
	}
	if d, _ = after.Sub(Reading{}); d.Frames != nil {
		t.Errorf("unknown before: %+v", d)
	}
}
