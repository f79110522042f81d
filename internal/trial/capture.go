package trial

import (
	"fmt"
	"time"

	"linerate/internal/engine"
	"linerate/internal/frame"
	"linerate/internal/pcap"
	"linerate/xsk"
)

// Captured is what a receiver kept of its frames.
type Captured struct {
	Frames []pcap.Kept
	// Lost is how many frames that were wanted had no place any more.
	Lost uint64
	// AddNs turns the frames' times into ns since 1970.
	AddNs int64
}

// rings makes the memory of a capture, one ring a queue, before any frame can
// come.
func (s *Spec) rings() map[int]*pcap.Ring {
	if s.Capture == nil || s.Rx == nil {
		return nil
	}
	out := map[int]*pcap.Ring{}
	for _, q := range s.Rx.Queues {
		out[q.ID] = pcap.NewRing(*s.Capture, s.SlotLen())
	}
	return out
}

// SlotLen is the longest frame that a capture keeps whole: what is sent, and
// whatever else the MTU lets in.
func (s *Spec) SlotLen() int { return max(int(s.maxLen(s.Rx)), s.Rx.Port.MTU+14+8) }

// captured joins what the queues kept.
func (r *running) captured() {
	if r.keep == nil {
		return
	}
	var rings []*pcap.Ring
	for _, q := range r.spec.Rx.Queues {
		rings = append(rings, r.keep[q.ID])
	}
	c := &Captured{AddNs: time.Now().UnixNano() - xsk.NowNs()}
	c.Frames, c.Lost = pcap.Gather(rings)
	r.out.Captured = c
	r.out.warn("captured", len(c.Frames), r.spec.Capture.String(), c.Lost)
}

// Comment is why a frame was kept, in words, as a capture file shows it.
func Comment(why uint16) string {
	switch why {
	case engine.WhyWanted:
		return ""
	case engine.WhyDuplicate:
		return "duplicate"
	case engine.WhyTooLate:
		return "too late: behind the sequence window"
	}
	class, reason := engine.Why(why)
	if class == frame.ClassCorrupt {
		return "corrupt: " + reason.String()
	}
	if class == frame.ClassOtherRun {
		return "foreign: " + reason.String()
	}
	return fmt.Sprintf("foreign: %s (%s)", class, reason)
}
