package nic

// Role is a question the frame budget asks of a device's counters. Which
// counter answers it depends on the driver; the tables below are the only place
// that knows.
type Role string

// The roles. Each is a count of frames since some moment in the past: only
// differences mean anything.
const (
	RoleDeviceTx        Role = "device_tx"         // handed to the wire
	RoleDeviceTxNIC     Role = "device_tx_nic"     // the same, counted by the NIC itself
	RoleDeviceTxDropped Role = "device_tx_dropped" // taken from the sender and thrown away by the device
	RoleDeviceRx        Role = "device_rx"         // seen by the receiving device
	RoleRxQueue         Role = "rx_queue"          // taken from a receive ring by the driver
	RoleRxDriverDrops   Role = "rx_driver_drops"   // thrown away by the driver, before or after XDP
	RoleXDPDrops        Role = "xdp_drops"         // dropped by the verdict of the program
	RoleXDPRedirect     Role = "xdp_redirect"      // redirected with success
	RoleXDPTx           Role = "xdp_tx"            // XDP_TX that the peer took
	RoleXDPTxErrors     Role = "xdp_tx_errors"     // XDP_TX that was thrown away
	RoleXDPXmit         Role = "xdp_xmit"          // redirected to this device by another and sent
	RoleXDPXmitErrors   Role = "xdp_xmit_errors"   // redirected to this device by another and thrown away
	RoleRxMissed        Role = "rx_missed"         // NIC packet buffer full
	RoleRxNoDMA         Role = "rx_no_dma"         // no receive descriptor
	RoleRxCRC           Role = "rx_crc"            // checksum of the cable wrong
	RoleRxLength        Role = "rx_length"         // length wrong
)

// place says where a role's counter is found.
type place struct {
	stats64        string
	ethtool        string
	prefix, suffix string // ethtool, one per queue
	note           string
}

// Read gives the counter that plays a role on this device.
func (c Counters) Read(r Role) Reading {
	for _, p := range c.places(r) {
		if v, ok := c.at(p); ok {
			return v
		}
	}
	return Reading{Note: "this driver has no such counter"}
}

func (c Counters) places(r Role) []place {
	switch c.Driver {
	case "veth":
		return vethPlaces(r, c.XDP)
	case "ixgbe":
		return append(ixgbePlaces[r], genericPlaces[r]...)
	}
	return genericPlaces[r]
}

func (c Counters) at(p place) (Reading, bool) {
	r := Reading{Note: p.note}
	switch {
	case p.prefix != "":
		r.Counter, r.Source = p.prefix+"N"+p.suffix, "ethtool"
		r.PerQueue = byQueue(c.Ethtool, p.prefix, p.suffix)
		if r.PerQueue == nil {
			return r, false
		}
		var sum uint64
		for _, v := range r.PerQueue {
			sum += v
		}
		r.Frames = &sum
		return r, true
	case p.ethtool != "":
		r.Counter, r.Source = p.ethtool, "ethtool"
		v, ok := c.Ethtool[p.ethtool]
		r.Frames = &v
		return r, ok
	}
	r.Counter, r.Source = p.stats64, "stats64"
	v, ok := c.Stats64[p.stats64]
	r.Frames = &v
	return r, ok
}

// genericPlaces is struct rtnl_link_stats64 as include/uapi/linux/if_link.h
// means it; drivers interpret it with some freedom.
var genericPlaces = map[Role][]place{
	RoleDeviceTx:        {{stats64: "tx_packets"}},
	RoleDeviceTxDropped: {{stats64: "tx_dropped"}},
	RoleDeviceRx:        {{stats64: "rx_packets"}},
	RoleRxDriverDrops:   {{stats64: "rx_dropped", note: "includes what the stack threw away, such as an unknown EtherType"}},
	RoleRxMissed:        {{stats64: "rx_missed_errors"}},
	RoleRxCRC:           {{stats64: "rx_crc_errors"}},
	RoleRxLength:        {{stats64: "rx_length_errors"}},
}

// ixgbePlaces: counters of drivers/net/ethernet/intel/ixgbe/ixgbe_ethtool.c.
// Ring counters count at completion, in batches of up to 64 (receive) and 256
// (transmit), and die with their rings; the hardware's own are as old as the
// last watchdog or ethtool read, at most about 2 s.
var ixgbePlaces = map[Role][]place{
	RoleDeviceTx:      {{prefix: "tx_queue_", suffix: "_packets", note: "counted at completion"}},
	RoleDeviceTxNIC:   {{ethtool: "tx_pkts_nic", note: "hardware register GPTC; lags up to 2 s in stats64, not here"}},
	RoleDeviceRx:      {{ethtool: "rx_pkts_nic", note: "hardware register GPRC less rx_missed_errors (the driver subtracts them)"}},
	RoleRxQueue:       {{prefix: "rx_queue_", suffix: "_packets", note: "with LRO one aggregate is one packet"}},
	RoleRxMissed:      {{ethtool: "rx_missed_errors", note: "hardware register MPC: packet buffer full"}},
	RoleRxNoDMA:       {{ethtool: "rx_no_dma_resources", note: "hardware register QPRDC: no descriptor"}},
	RoleRxCRC:         {{ethtool: "rx_crc_errors"}},
	RoleRxLength:      {{ethtool: "rx_length_errors"}},
	RoleRxDriverDrops: {{stats64: "rx_dropped", note: "includes what the stack threw away, such as an unknown EtherType"}},
}

// DeviceTx is the frames the device handed to the wire.
func (c Counters) DeviceTx() Reading { return c.Read(RoleDeviceTx) }

// DeviceTxDropped is the frames the device took from the sender and threw away.
func (c Counters) DeviceTxDropped() Reading { return c.Read(RoleDeviceTxDropped) }

// DeviceRx is the frames the receiving device saw.
func (c Counters) DeviceRx() Reading { return c.Read(RoleDeviceRx) }

// RxDriverDrops is the frames the receiving driver threw away for reasons of its own.
func (c Counters) RxDriverDrops() Reading { return c.Read(RoleRxDriverDrops) }
