package pcap

import (
	"errors"
	"fmt"
	"io"
	"math"
)

// DefaultLimit is the most memory that a preloaded capture may take, bytes:
// its frames and frameCost for each.
const DefaultLimit = 1 << 30

const (
	// frameCost is what a preloaded frame takes besides its bytes: a slice and a
	// time.
	frameCost = 32
	// slab is how much memory is taken for frames at a time.
	slab = 1 << 22
)

// Config says how a capture is to be replayed.
type Config struct {
	Path    string
	Workers int     // over which the flows are spread; the order is kept within each
	Speed   float64 // 2: twice as fast as it was captured; 0: as it was
	Loops   uint64  // how often; 0: without end
	Stream  bool    // read from disk while sending, instead of loading it before
	Limit   int64   // bytes of memory for a preloaded capture, 0: DefaultLimit
	// Stop is asked now and then while the capture is read before; its error ends
	// that. It may be nil.
	Stop func() error
}

// LimitError is a capture that does not fit the memory it may take.
type LimitError struct {
	Path   string
	Limit  int64
	Frames uint64 // that did fit
}

// Error names the file and the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("load %s: its frames take more than the %d MiB that a preloaded capture may (%d frames did)",
		e.Path, e.Limit>>20, e.Frames)
}

// Share is what one worker sends of each loop.
type Share struct {
	Frames uint64
	Bytes  uint64 // without FCS
}

// Extreme is the longest of something in a capture, and where.
type Extreme struct {
	Len    int   // bytes
	Offset int64 // of its record in the file
}

// Replay is a capture ready to be sent. It is read once as a whole before, so
// that everything wrong with it is known before the first frame goes out.
type Replay struct {
	Frames    uint64 // of one loop
	Bytes     uint64 // of these, without FCS
	SpanNs    int64  // from the first frame to the last, at the speed asked
	Longest   Extreme
	LongestL3 Extreme // what an MTU bounds
	Shares    []Share

	cfg    Config
	lapNs  int64 // from the start of one loop to the next
	loaded []frames
	open   []*streamed
}

// frames are a worker's, in the order of the file.
type frames struct {
	data [][]byte
	at   []int64 // ns since the first frame of the capture, never less than before
}

// Load reads the whole capture, and keeps it in memory unless it is to be
// streamed. Errors are those of os.Open, *Error and *LimitError.
func Load(c Config) (*Replay, error) {
	if c.Workers < 1 || c.Speed < 0 || math.IsNaN(c.Speed) || math.IsInf(c.Speed, 0) {
		return nil, fmt.Errorf("replay %s: %d workers at speed %v: want at least 1, and a speed above 0", c.Path, c.Workers, c.Speed)
	}
	if c.Limit == 0 {
		c.Limit = DefaultLimit
	}
	p := &Replay{cfg: c, Shares: make([]Share, c.Workers)}
	if !c.Stream {
		p.loaded = make([]frames, c.Workers)
	}
	err := p.cfg.each(p.cfg.stopper(), p.note, p.keeper())
	if err != nil {
		return nil, err
	}
	p.lapNs = p.SpanNs
	if p.Frames > 1 {
		p.lapNs += p.SpanNs / int64(p.Frames-1) // the first frame of a loop keeps the mean distance from the last
	}
	return p, nil
}

// clock turns the times of a file into times of a replay: since its first
// frame, scaled, and never running backwards.
type clock struct {
	speed       float64
	first, last int64
	begun       bool
}

func (k *clock) at(ns int64) int64 {
	if !k.begun {
		k.begun, k.first = true, ns
	}
	t := ns - k.first
	if k.speed > 0 && k.speed != 1 {
		t = int64(math.Min(float64(t)/k.speed, math.MaxInt64/4))
	}
	k.last = max(k.last, min(t, math.MaxInt64/4))
	return k.last
}

// each gives every frame of the file with its worker and its time to the
// functions in turn.
func (c *Config) each(funcs ...func(p *Packet, worker int, at int64) error) (err error) {
	r, err := Open(c.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	k := clock{speed: c.Speed}
	for n := 0; ; n++ {
		p, err := r.Next()
		switch {
		case err == io.EOF && n == 0:
			return r.wrong(r.offset(), "the capture holds no frame", nil)
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		worker, at := int(flowHash(p.Data)%uint32(c.Workers)), k.at(p.Ns)
		for _, f := range funcs {
			if err := f(&p, worker, at); err != nil {
				return err
			}
		}
	}
}

// stopEvery is how many frames are read between two looks at Config.Stop.
const stopEvery = 4096

// stopper gives the function that ends the reading when it is to be stopped.
func (c *Config) stopper() func(*Packet, int, int64) error {
	n := 0
	return func(*Packet, int, int64) error {
		if n++; c.Stop == nil || n%stopEvery != 0 {
			return nil
		}
		return c.Stop()
	}
}

// note enters one frame into the summary.
func (p *Replay) note(f *Packet, worker int, at int64) error {
	p.Frames++
	p.Bytes += uint64(len(f.Data))
	p.Shares[worker].Frames++
	p.Shares[worker].Bytes += uint64(len(f.Data))
	p.SpanNs = at
	if len(f.Data) > p.Longest.Len {
		p.Longest = Extreme{len(f.Data), f.Offset}
	}
	if n := l3Len(f.Data); n > p.LongestL3.Len {
		p.LongestL3 = Extreme{n, f.Offset}
	}
	return nil
}

// keeper gives the function that keeps the frames of a preloaded capture.
func (p *Replay) keeper() func(f *Packet, worker int, at int64) error {
	var room []byte
	var taken int64
	return func(f *Packet, worker int, at int64) error {
		if p.cfg.Stream {
			return nil
		}
		if taken += int64(len(f.Data)) + frameCost; taken > p.cfg.Limit {
			return &LimitError{p.cfg.Path, p.cfg.Limit, p.Frames - 1}
		}
		if len(f.Data) > len(room) {
			room = make([]byte, slab)
		}
		n := copy(room, f.Data)
		w := &p.loaded[worker]
		w.data = append(w.data, room[:n:n])
		w.at = append(w.at, at)
		room = room[n:]
		return nil
	}
}
