package trial

import (
	"linerate/internal/engine"
	"linerate/internal/pcap"
	"linerate/internal/stream"
	"linerate/internal/wire"
	"linerate/xsk"
)

// Streams is the streams of a file, sent by their own rates instead of Stream.
type Streams struct {
	Path    string
	Streams []*stream.Stream
}

// Tagged says that every stream carries the tag: each frame can be verified.
func (s *Streams) Tagged() bool {
	for _, one := range s.Streams {
		if !one.Tagged() {
			return false
		}
	}
	return true
}

// largest is the longest frame of all streams.
func (s *Streams) largest() (most wire.FrameLen) {
	for _, one := range s.Streams {
		for _, n := range one.Sizes() {
			most = max(most, n)
		}
	}
	return most
}

// mean is the mean length of the streams' frames, FCS included, each stream
// counted once: their rates may have no limit.
func (s *Streams) mean() (mean float64) {
	for _, one := range s.Streams {
		mean += one.MeanFrame() / float64(len(s.Streams))
	}
	return mean
}

// writer makes the frames of worker i of n.
func (s *Spec) writer(i, n int) (*stream.MixWriter, error) {
	st := s.Stream.Stack
	return stream.NewMixWriter(s.Streams.Streams, s.Tx.Port.Speed, stream.Config{Run: s.Run, Worker: uint8(i), SrcMAC: st.SrcMAC, DstMAC: st.DstMAC}, n)
}

// streams is the sender's part of the spec where a file of streams is sent.
func (r *running) streams(o engine.Offer) (engine.Offer, error) {
	n := len(r.spec.Tx.Queues)
	o.EndMarks, o.Count = false, 0
	o.Replay = &engine.Replay{}
	for i := range n {
		w, err := r.spec.writer(i, n)
		if err != nil {
			return o, err
		}
		o.Replay.Timed = o.Replay.Timed || !w.Mix().Unlimited()
		o.Replay.Sources = append(o.Replay.Sources, &mixed{writer: w, timed: !w.Mix().Unlimited(),
			taken: make([]uint64, len(r.spec.Streams.Streams))})
	}
	return o, nil
}

// sentByStream is how many frames of each stream were sent, nil where that is
// not known: the device may have refused some, of whichever stream.
func (r *running) sentByStream(o engine.Offer) (sent []uint64) {
	if r.spec.Streams == nil || r.out.Frames.Sent == nil || o.Replay == nil {
		return nil
	}
	sent, sum := make([]uint64, len(r.spec.Streams.Streams)), uint64(0)
	for _, s := range o.Replay.Sources {
		m, ok := s.(*mixed)
		if !ok {
			return nil
		}
		for i, n := range m.taken {
			sent[i] += n
			sum += n
		}
	}
	if sum != *r.out.Frames.Sent {
		return nil
	}
	return sent
}

// mixed is one worker's frames of all streams, as the engine takes frames that
// are there already. They are made when they are due, so that their stamp holds.
type mixed struct {
	writer *stream.MixWriter
	timed  bool
	made   [][]byte // due, and not taken yet
	of     []int    // the stream of each
	free   [][]byte
	given  [][]byte // by the last Batch
	taken  []uint64 // frames given, by stream
}

// Share: streams have no loops, and an end only each for itself.
func (m *mixed) Share() (loop, all uint64) { return 1, 0 }

// MaxLen is the longest frame.
func (m *mixed) MaxLen() wire.BufLen { return m.writer.MaxLen() }

// Ready says that any number can be made.
func (m *mixed) Ready(most int) int { return most }

// Done says that all streams have ended.
func (m *mixed) Done() bool {
	_, more := m.writer.Mix().Peek()
	return !more && len(m.made) == 0
}

// Err is nil: frames that are made here do not fail.
func (m *mixed) Err() error { return nil }

// mixedMost is more than any batch: who asks for more only wants to know.
const mixedMost = 4096

// Due makes the frames that are due, or counts them if it is asked for more
// than a batch: that is the last look of an offer.
func (m *mixed) Due(sinceNs int64, most int) (n int, nextNs int64) {
	if most > mixedMost {
		return len(m.made) + int(m.writer.Mix().Owed(uint64(sinceNs))), never
	}
	now := uint64(xsk.NowNs())
	for {
		at, more := m.writer.Mix().Peek()
		if !more {
			return min(len(m.made), most), never
		}
		if int64(at) > sinceNs || len(m.made) >= most {
			return min(len(m.made), most), int64(at)
		}
		m.make(now)
	}
}

// never is later than any trial.
const never = 1<<63 - 1

// Batch gives the next frames.
func (m *mixed) Batch(n int) [][]byte {
	m.free, m.given = append(m.free, m.given...), m.given[:0]
	for now := uint64(xsk.NowNs()); !m.timed && len(m.made) < n; {
		if _, more := m.writer.Mix().Peek(); !more {
			break
		}
		m.make(now)
	}
	n = min(n, len(m.made))
	m.given = append(m.given, m.made[:n]...)
	for _, s := range m.of[:n] {
		m.taken[s]++
	}
	m.made = append(m.made[:0], m.made[n:]...)
	m.of = append(m.of[:0], m.of[n:]...)
	return m.given
}

// make writes one frame into a buffer that nobody reads.
func (m *mixed) make(now uint64) {
	var buf []byte
	if k := len(m.free); k > 0 {
		buf, m.free = m.free[k-1], m.free[:k-1]
	}
	if cap(buf) < int(m.writer.MaxLen()) {
		buf = make([]byte, m.writer.MaxLen())
	}
	buf = buf[:cap(buf)]
	if n := m.writer.Next(buf, 0, now); n > 0 {
		m.made = append(m.made, buf[:n])
		m.of = append(m.of, m.writer.Last())
	}
}

var _ pcap.Source = (*mixed)(nil)
