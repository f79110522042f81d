package pcap

import (
	"errors"

	"linerate/internal/wire"
)

const (
	// blockFrames and blockBytes bound a block, blocks how many a worker has: the
	// memory of a streamed worker is about 4 MiB.
	blockFrames = 1024
	blockBytes  = 1 << 20
	blocks      = 4
)

// block is a piece of a capture on its way from disk to a worker.
type block struct {
	frames
	room []byte // the frames' bytes
}

// errStopped ends a reading that nobody wants any more.
var errStopped = errors.New("stopped")

// streamed is a Source that reads the file again while it sends. A goroutine of
// its own reads ahead: it finds the frames of this worker among all.
type streamed struct {
	cfg     Config
	worker  int
	share   Share
	lapNs   int64
	longest wire.BufLen
	full    chan *block // to the worker
	free    chan *block // and back
	stop    chan struct{}
	over    chan struct{} // the reader has ended; err is valid
	err     error

	now     *block // the worker's
	pos     int
	done    bool
	starved uint64
	hungry  bool
}

func newStreamed(p *Replay, worker int, share Share) *streamed {
	s := &streamed{cfg: p.cfg, worker: worker, share: share, lapNs: p.lapNs, longest: wire.BufLen(p.Longest.Len),
		full: make(chan *block, blocks), free: make(chan *block, blocks), stop: make(chan struct{}), over: make(chan struct{})}
	for range blocks {
		s.free <- &block{}
	}
	s.done = share.Frames == 0
	go s.read()
	return s
}

func (s *streamed) close() {
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	<-s.over
}

// read fills blocks until the last loop, or until it is stopped.
func (s *streamed) read() {
	defer close(s.over)
	defer close(s.full)
	if s.share.Frames == 0 {
		return
	}
	var b *block
	for lap := uint64(0); lap < s.cfg.Loops || s.cfg.Loops == 0; lap++ {
		base := int64(lap) * s.lapNs
		err := s.cfg.each(func(p *Packet, worker int, at int64) error {
			if worker != s.worker {
				return nil
			}
			if b != nil && (len(b.data) == blockFrames || len(b.room)+len(p.Data) > blockBytes) {
				if !s.hand(&b) {
					return errStopped
				}
			}
			if b == nil && !s.take(&b) {
				return errStopped
			}
			from := len(b.room)
			b.room = append(b.room, p.Data...)
			b.data = append(b.data, b.room[from:len(b.room):len(b.room)])
			b.at = append(b.at, base+at)
			return nil
		})
		if err != nil {
			if !errors.Is(err, errStopped) {
				s.err = err
			}
			return
		}
	}
	s.hand(&b)
}

// take waits for an empty block.
func (s *streamed) take(b **block) bool {
	select {
	case *b = <-s.free:
		if (*b).room == nil {
			(*b).room = make([]byte, 0, blockBytes)
		}
		(*b).room, (*b).data, (*b).at = (*b).room[:0], (*b).data[:0], (*b).at[:0]
		return true
	case <-s.stop:
		return false
	}
}

// hand gives a block to the worker.
func (s *streamed) hand(b **block) bool {
	if *b == nil {
		return true
	}
	select {
	case s.full <- *b:
		*b = nil
		return true
	case <-s.stop:
		return false
	}
}

func (s *streamed) Share() (loop, all uint64) { return s.share.Frames, s.share.Frames * s.cfg.Loops }

func (s *streamed) MaxLen() wire.BufLen { return s.longest }

func (s *streamed) Done() bool { return s.done }

// Err is valid once Done is true.
func (s *streamed) Err() error {
	if !s.done {
		return nil
	}
	<-s.over
	return s.err
}

// fetch makes sure that there is a block, if one has been read.
func (s *streamed) fetch() bool {
	if s.done || s.now != nil && s.pos < len(s.now.data) {
		return !s.done
	}
	if s.now != nil {
		s.free <- s.now // there is room for all blocks
		s.now = nil
	}
	select {
	case b, more := <-s.full:
		s.now, s.pos, s.done, s.hungry = b, 0, !more, false
		return more
	default:
		if !s.hungry {
			s.hungry = true
			s.starved++
		}
		return false
	}
}

func (s *streamed) Ready(most int) int {
	if !s.fetch() {
		return 0
	}
	return min(most, len(s.now.data)-s.pos)
}

func (s *streamed) Due(since int64, most int) (n int, next int64) {
	if !s.fetch() {
		return 0, since
	}
	at := s.now.at[s.pos:]
	for n < len(at) && n < most && at[n] <= since {
		n++
	}
	if n == len(at) {
		return n, since
	}
	return n, at[n]
}

// Batch's frames lie in the block that the next Ready, Due or Batch may give
// back to the reader.
func (s *streamed) Batch(n int) [][]byte {
	if !s.fetch() {
		return nil
	}
	out := s.now.data[s.pos:min(s.pos+n, len(s.now.data))]
	s.pos += len(out)
	return out
}
