package trial

import (
	"fmt"

	"linerate/internal/engine"
	"linerate/internal/pcap"
	"linerate/internal/wire"
)

// Replay is a capture that is sent instead of a stream. Its frames carry no
// tag: they are counted at both ends, and none is told from another.
type Replay struct {
	*pcap.Replay
	Path  string
	Timed bool    // each frame at its own time; else at Spec.Rate
	Speed float64 // of the times: 2 is twice as fast, 0 as captured
	Loops uint64  // 0: until Spec.Duration
	// Stream: the frames come from disk while they are sent.
	Stream bool
}

// mean is the mean length of a frame, FCS included.
func (s *Spec) mean() float64 {
	if s.Replay != nil {
		return float64(s.Replay.Bytes)/float64(s.Replay.Frames) + wire.FCSBytes
	}
	if s.Streams != nil {
		return s.Streams.mean()
	}
	return s.Stream.Sizes.Mean()
}

// largest is the largest frame that is sent, what of it an MTU bounds, and
// where it comes from.
func (s *Spec) largest() (frame wire.FrameLen, l3 int, from string) {
	if r := s.Replay; r != nil {
		return wire.BufLen(r.Longest.Len).Frame(), r.LongestL3.Len,
			fmt.Sprintf(" (%s at byte %d)", r.Path, r.LongestL3.Offset)
	}
	if s.Streams != nil {
		frame = s.Streams.largest()
		return frame, int(frame.Buf()) - 14, ""
	}
	frame = s.Stream.Sizes.Max()
	return frame, int(frame.Buf()) - 14 - 4*len(s.Stream.Stack.VLANs), ""
}

// Largest is the largest frame that is sent, 0 where none is.
func (s *Spec) Largest() wire.FrameLen {
	largest, _, _ := s.largest()
	return largest
}

// replay is the sender's part of the spec where a capture is sent.
func (r *running) replay(o engine.Offer) engine.Offer {
	o.EndMarks = false
	o.Replay = &engine.Replay{Sources: r.spec.Replay.Sources(), Timed: r.spec.Replay.Timed}
	return o
}

// shares is how much of the rate each sending queue had.
func (r *running) shares(pps float64) []float64 {
	n := len(r.out.Tx.Queues)
	out := make([]float64, n)
	for i := range out {
		out[i] = pps / float64(n)
		if c := r.spec.Replay; c != nil {
			out[i] = pps * float64(c.Shares[i].Frames) / float64(c.Frames)
		}
	}
	return out
}

// remarkReplay says what is not known of frames without a tag.
func (r *running) remarkReplay() {
	if r.spec.Replay == nil {
		return
	}
	var sent uint64
	for _, q := range r.out.Tx.Queues {
		sent += q.Submitted
	}
	r.out.warn("replayed", sent, r.spec.Replay.Path)
	if n := r.spec.Replay.Starved(); n > 0 {
		r.out.warn("replay_starved", n)
	}
}
