package stream

import (
	"fmt"
	"math"
	"sort"
	"time"

	"linerate/internal/wire"
)

// Mix interleaves streams by their rates: it says whose frame comes next, and
// when it is due. It costs one step down a heap of the streams per frame and
// allocates nothing. It belongs to one goroutine.
//
// The time of a frame is computed from its number, never from the frame before,
// so that no rounding adds up. Of frames due in the same nanosecond that of the
// first stream in the file comes first.
type Mix struct {
	heap      []turn
	plans     []plan
	stride    uint64
	unlimited bool
}

// turn is the next frame of a stream.
type turn struct {
	at   uint64 // ns after the start
	plan uint32
}

// plan is when a stream sends.
type plan struct {
	stream   int
	k, count uint64  // next frame, and the frames of the whole stream
	period   float64 // ns; 0 for rate max, until it is known
	line     float64 // ns that a frame takes on the line, 0 if unknown
	start    float64 // ns
	end      uint64  // ns, no frame from then on
	burst    uint64
	gap      float64
}

// due is the time of the next frame.
func (p *plan) due() uint64 {
	at := p.start + float64(p.k)*p.period
	if p.burst != 0 {
		at += float64(p.k/p.burst) * p.gap
	}
	return uint64(at)
}

// over tells whether the frame due at a time is past the end of the stream.
func (p *plan) over(at uint64) bool { return p.k >= p.count || at >= p.end }

// NewMix plans the streams for a link of this speed, 0 if unknown; of workers
// that share them, worker i has the frames i, i + workers, ... of each. Streams
// of rate max share what the others leave of the line; where all are, the Mix
// is Unlimited. The error is a *wire.RangeError or *wire.AboveLineRateError, or
// says that a rate needs the speed.
func NewMix(streams []*Stream, speed wire.Speed, worker, workers int) (*Mix, error) {
	m := &Mix{stride: uint64(max(1, workers))}
	greedy := 0
	for _, s := range streams {
		pps, unlimited, err := s.Rate.PPS(speed, s.MeanFrame())
		if err != nil {
			return nil, fmt.Errorf("stream %s: %w", s.Name, err)
		}
		p := s.plan(uint64(worker))
		if speed != 0 {
			p.line = 1e9 / float64(speed.LineRateOf(s.MeanFrame()))
		}
		if unlimited {
			greedy++
		} else {
			p.period = 1e9 / float64(pps)
		}
		m.plans = append(m.plans, p)
	}
	m.unlimited = greedy == len(streams)
	if err := m.feed(streams, speed, 1-m.peak(), greedy); err != nil {
		return nil, err
	}
	for i := range m.plans {
		if at := m.plans[i].due(); !m.plans[i].over(at) {
			m.heap = append(m.heap, turn{at, uint32(i)})
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.sink(i)
	}
	return m, nil
}

// lineSlack forgives rounding.
const lineSlack = 1e-9

// feed gives the streams of rate max their share.
func (m *Mix) feed(streams []*Stream, speed wire.Speed, rest float64, greedy int) error {
	switch {
	case rest < -lineSlack:
		return fmt.Errorf("the streams together ask for %.4g %% of the line", 100*(1-rest))
	case greedy == 0:
		return nil
	case !m.unlimited && speed == 0:
		return fmt.Errorf("rate max besides other rates: what is left of the line is unknown, as is its speed")
	case !m.unlimited && rest <= lineSlack:
		return fmt.Errorf("rate max: the other streams leave nothing of the line")
	}
	for i := range m.plans {
		p, s := &m.plans[i], streams[i]
		switch {
		case p.period != 0:
		case m.unlimited: // in turn, each by its share of the wire
			p.period = s.MeanFrame() + wire.L1OverheadBytes
		default:
			p.period = p.line / rest * float64(greedy)
		}
	}
	return nil
}

func (s *Stream) plan(worker uint64) plan {
	p := plan{stream: s.ID, k: worker, count: math.MaxUint64, start: float64(s.Start), end: math.MaxUint64,
		burst: s.Burst.Size, gap: float64(s.Burst.Gap)}
	if s.Count != 0 {
		p.count = s.Count
	}
	if s.Time != 0 {
		p.end = uint64(s.Start + s.Time)
	}
	return p
}

// share is the part of the line that the stream takes, 0 if unknown.
func (p *plan) share() float64 {
	switch {
	case p.period == 0:
		return 0
	case p.burst == 0:
		return p.line / p.period
	}
	return p.line * float64(p.burst) / (float64(p.burst)*p.period + p.gap)
}

// until is when the stream ends, in ns.
func (p *plan) until() float64 {
	end := float64(p.end)
	if p.count != math.MaxUint64 {
		last := *p
		last.k = p.count
		end = min(end, float64(last.due()))
	}
	return end
}

// peak is the greatest part of the line that streams take at the same time.
func (m *Mix) peak() (most float64) {
	for i := range m.plans {
		sum := 0.0
		for j := range m.plans {
			if p := &m.plans[j]; p.start <= m.plans[i].start && m.plans[i].start < p.until() {
				sum += p.share()
			}
		}
		most = max(most, sum)
	}
	return most
}

// Unlimited tells whether every stream wants all it can get: then the times
// give the order, and no more.
func (m *Mix) Unlimited() bool { return m.unlimited }

// Peek says when the next frame is due, in ns after the start; ok is false
// when all streams have ended.
func (m *Mix) Peek() (atNs uint64, ok bool) {
	if len(m.heap) == 0 {
		return 0, false
	}
	return m.heap[0].at, true
}

// Next takes the next frame: the stream, which frame of it, and when it is due,
// in ns after the start; ok is false when all streams have ended.
func (m *Mix) Next() (stream int, k, atNs uint64, ok bool) {
	if len(m.heap) == 0 {
		return 0, 0, 0, false
	}
	top := m.heap[0]
	p := &m.plans[top.plan]
	k = p.k
	p.k += m.stride
	if at := p.due(); p.over(at) {
		last := len(m.heap) - 1
		m.heap[0] = m.heap[last]
		m.heap = m.heap[:last]
	} else {
		m.heap[0].at = at
	}
	if len(m.heap) > 1 {
		m.sink(0)
	}
	return p.stream, k, top.at, true
}

// Owed is how many frames are due at a time, in ns after the start, and have
// not been taken: found by halving, not by counting.
func (m *Mix) Owed(atNs uint64) (n uint64) {
	for i := range m.plans {
		n += m.plans[i].owed(atNs, m.stride)
	}
	return n
}

// owed is Owed of one stream: its times only grow.
func (p *plan) owed(atNs, stride uint64) uint64 {
	late := func(j uint64) bool { // whether the j-th frame from here on is due
		next := *p
		next.k += j * stride
		at := next.due()
		return at <= atNs && !next.over(at)
	}
	most := uint64(1)
	for late(most - 1) {
		if most *= 2; most > maxCount {
			break
		}
	}
	return uint64(sort.Search(int(most), func(j int) bool { return !late(uint64(j)) }))
}

// sink brings the turn at i down to its place: four children each, which lie in
// one cache line.
func (m *Mix) sink(i int) {
	h := m.heap
	for {
		first := 4*i + 1
		if first >= len(h) {
			return
		}
		least := first
		for c := first + 1; c < min(first+4, len(h)); c++ {
			if h[c].before(h[least]) {
				least = c
			}
		}
		if !h[least].before(h[i]) {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

func (t turn) before(o turn) bool { return t.at < o.at || t.at == o.at && t.plan < o.plan }

// Duration is when the last stream ends, after the start, 0 if one of them has
// no end.
func (m *Mix) Duration() time.Duration {
	var last float64
	for i := range m.plans {
		last = max(last, m.plans[i].until())
	}
	if last >= math.MaxInt64 {
		return 0
	}
	return time.Duration(last)
}
