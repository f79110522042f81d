package nic

import (
	"strconv"
	"strings"
	"time"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
)

// Counters is one reading of everything the kernel and driver count on a port.
// The two maps are read one after the other, about 20 us apart: only a port at
// rest gives one consistent picture.
type Counters struct {
	At     time.Time // just before the reading
	Driver string
	XDP    string // mode of the attached program at the reading: "native", "generic", "none"…
	// Stats64 is struct rtnl_link_stats64 by the kernel's own field names.
	Stats64 map[string]uint64
	// Ethtool is what `ethtool -S` prints; nil if the driver has no statistics.
	Ethtool map[string]uint64
}

// Counters reads all counters of the port.
func (p *Port) Counters() (Counters, error) {
	var c Counters
	err := p.do("read counters of", func() error {
		c.At = now()
		c.Driver = p.Driver
		l, err := p.link()
		if err != nil {
			return err
		}
		c.Stats64 = stats64(l.Attrs().Statistics)
		c.XDP = xdpMode(l.Attrs().Xdp)
		e, err := ethtool.NewEthtool()
		if err != nil {
			return err
		}
		defer e.Close()
		if s, err := e.Stats(p.Name); err == nil && len(s) > 0 {
			c.Ethtool = s
		}
		return nil
	})
	return c, err
}

func stats64(s *netlink.LinkStatistics) map[string]uint64 {
	if s == nil {
		return nil
	}
	return map[string]uint64{
		"rx_packets": s.RxPackets, "tx_packets": s.TxPackets,
		"rx_bytes": s.RxBytes, "tx_bytes": s.TxBytes,
		"rx_errors": s.RxErrors, "tx_errors": s.TxErrors,
		"rx_dropped": s.RxDropped, "tx_dropped": s.TxDropped,
		"multicast": s.Multicast, "collisions": s.Collisions,
		"rx_length_errors": s.RxLengthErrors, "rx_over_errors": s.RxOverErrors,
		"rx_crc_errors": s.RxCrcErrors, "rx_frame_errors": s.RxFrameErrors,
		"rx_fifo_errors": s.RxFifoErrors, "rx_missed_errors": s.RxMissedErrors,
		"tx_aborted_errors": s.TxAbortedErrors, "tx_carrier_errors": s.TxCarrierErrors,
		"tx_fifo_errors": s.TxFifoErrors, "tx_heartbeat_errors": s.TxHeartbeatErrors,
		"tx_window_errors": s.TxWindowErrors,
		"rx_compressed":    s.RxCompressed, "tx_compressed": s.TxCompressed,
	}
}

// Reading is the value of one role (see Role) in one Counters.
type Reading struct {
	Frames   *uint64        // whole port; nil if this device has no such counter
	Counter  string         // the kernel's name; N stands for the queue
	Source   string         // "ethtool" or "stats64", "" if Frames is nil
	PerQueue map[int]uint64 // nil if the counter is port-wide
	Note     string         // what to know before believing it
}

// Sub gives after minus before, queue by queue. reset is true where a counter
// went down: ring counters die with their rings (XDP attach, channel change),
// so a decrease is never a 64-bit wrap; the difference is then unknown (nil).
func (after Reading) Sub(before Reading) (d Reading, reset bool) {
	d = Reading{Counter: after.Counter, Source: after.Source, Note: after.Note}
	if after.Frames == nil || before.Frames == nil || after.Counter != before.Counter {
		return d, false
	}
	if after.PerQueue != nil {
		d.PerQueue = make(map[int]uint64, len(after.PerQueue))
	}
	for q, v := range after.PerQueue {
		if v < before.PerQueue[q] {
			return Reading{Counter: d.Counter, Source: d.Source, Note: d.Note}, true
		}
		d.PerQueue[q] = v - before.PerQueue[q]
	}
	for q, v := range before.PerQueue {
		if _, still := after.PerQueue[q]; !still && v > 0 {
			return Reading{Counter: d.Counter, Source: d.Source, Note: d.Note}, true
		}
	}
	if *after.Frames < *before.Frames {
		return Reading{Counter: d.Counter, Source: d.Source, Note: d.Note}, true
	}
	n := *after.Frames - *before.Frames
	d.Frames = &n
	return d, false
}

// byQueue collects "prefixNsuffix" for every number N.
func byQueue(all map[string]uint64, prefix, suffix string) map[int]uint64 {
	var m map[int]uint64
	for name, v := range all {
		n, ok := queueOf(name, prefix, suffix)
		if !ok {
			continue
		}
		if m == nil {
			m = make(map[int]uint64)
		}
		m[n] = v
	}
	return m
}

// queueOf reads N from "prefixNsuffix"; N is a plain decimal below 65536.
func queueOf(name, prefix, suffix string) (int, bool) {
	s, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return 0, false
	}
	if s, ok = strings.CutSuffix(s, suffix); !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || strconv.FormatUint(n, 10) != s {
		return 0, false
	}
	return int(n), true
}
