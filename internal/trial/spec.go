// Package trial runs one measurement: attach, wait for the carrier, offer,
// drain, and account for every frame.
package trial

import (
	"context"
	"fmt"
	"time"

	"linerate/bpf"
	"linerate/internal/budget"
	"linerate/internal/engine"
	"linerate/internal/frame"
	"linerate/internal/neighbor"
	"linerate/internal/nic"
	"linerate/internal/pcap"
	"linerate/internal/wire"
	"linerate/xsk"
)

// Action is what a receiver does with the frames it gets.
type Action string

// Actions of a receiver.
const (
	Verify Action = "verify" // take every frame from the socket and check it
	Count  Action = "count"  // take every frame from the socket, look at none
	Drop   Action = "drop"   // count and drop in XDP, no socket
)

// End is one end of a trial: an interface and the way it is driven.
type End struct {
	Port     *nic.Port
	Endpoint string // as the user wrote it, for messages and documents
	Engine   engine.Name
	Queues   []engine.Queue
	ZeroCopy xsk.ZeroCopy
	Generic  bool
	Chunk    int
	Answers  []neighbor.Range // addresses that ARP, neighbour discovery and ping are answered for
}

// ip is an iproute2 command for the end's namespace.
func (e *End) ip(args string) string {
	if ns := e.Port.NS.Name(); ns != "" {
		return "ip -n " + ns + " " + args
	}
	return "ip " + args
}

// Spec is one trial. It is validated once and not changed afterwards. Either
// end may be nil: then only the other's half of the budget is known.
type Spec struct {
	Tx, Rx        *End
	Reflector     *End // far end that sends frames back; Tx and Rx are then one port
	Stream        frame.Stream
	Replay        *Replay         // sent instead of Stream; nil: none
	Streams       *Streams        // sent instead of Stream; nil: none
	Capture       *pcap.Keep      // of the receiver; nil: none
	Foreign       frame.Generator // whose frames a sink on its own verifies, empty: our own
	Run           frame.Run
	Via           *nic.Hop // the next hop that the kernel's routes name, nil: none was asked for
	AnyRun        bool     // a sink on its own takes the first run it sees
	Rate          wire.Rate
	Count         uint64
	Duration      time.Duration // 0: until Count, the END frames or the context
	Warmup        time.Duration
	Settle        time.Duration
	Interval      time.Duration
	Batch         int
	Budget        int // frames of a sending queue under way
	RingSize      int
	Action        Action
	Steer         bpf.SteerConfig
	PayloadCheck  bool
	MaxLoss       budget.MaxLoss
	LossAnyByRate bool // MaxLoss is any because the rate is max
	Seed          uint64
	MaxRateError  float64
	TraceDrops    bool
	Fault         engine.Fault
	Tamper        Tamper
	AnnounceEvery time.Duration // how often the addresses of Answers are announced, 0: neighbor.DefaultEvery
	// Attached is called once the programs are on and the carriers back, before
	// the baselines: some settings can be made only then. It may be nil.
	Attached func() error
	// Begin is called when all is ready for the first frame, with the earliest
	// time that it can go (CLOCK_MONOTONIC), and gives the time at which it goes:
	// for trials that start together. It may be nil; an error ends the trial.
	Begin func(ctx context.Context, earliestNs int64) (startNs int64, err error)
	// Meet keeps trials in step that share ports, each sending where another
	// receives. It is called at every Step and may be nil; then the sender's port
	// has a program of its own.
	Meet func(ctx context.Context, at Step) error
}

// Step is a point in a trial at which others can be waited for.
type Step int

// The steps, in order.
const (
	Listening Step = iota // the receiver is attached, the sender is not
	Ready                 // both ends are attached, their carriers are back, the way is primed
	Measured              // every counter has been read, nothing is closed yet
)

// Tamper falsifies one counter of the budget, for the budget's own test:
// Offset is added to every row named Row, Frozen makes it read as before the
// trial.
type Tamper struct {
	Row    string
	Offset int64
	Frozen bool
}

// SpecError says which part of a trial cannot be, and what to type instead.
type SpecError struct {
	What   string
	Remedy string
	Here   bool // it is the interface that cannot, not the command line
}

func (e *SpecError) Error() string {
	if e.Remedy == "" {
		return e.What
	}
	return e.What + "\n  try: " + e.Remedy
}

// PPS is the offered load in frames per second, 0 when there is no limit.
func (s *Spec) PPS() (wire.PPS, error) {
	if s.Replay != nil && s.Replay.Timed || s.Streams != nil {
		return 0, nil
	}
	pps, unlimited, err := s.Rate.PPS(s.Tx.Port.Speed, s.mean())
	if unlimited || err != nil {
		return 0, err
	}
	return pps, nil
}

// Validate reports the first thing that makes the trial impossible.
func (s *Spec) Validate() error {
	if s.Tx == nil && s.Rx == nil {
		return &SpecError{"a trial needs an interface to send from or to receive on", "", false}
	}
	if s.Reflector == nil && s.Tx != nil && s.Rx != nil && s.Tx.Port.NS.Inum() == s.Rx.Port.NS.Inum() && s.Tx.Port.Index == s.Rx.Port.Index {
		return &SpecError{
			fmt.Sprintf("%s and %s are the same interface", s.Tx.Endpoint, s.Rx.Endpoint),
			"give two interfaces that a cable or a veth pair joins", false}
	}
	if s.Reflector != nil && s.Rx.Engine != engine.XDP {
		return &SpecError{What: "frames that are sent back come to the queue that sent them: it has no second socket", Remedy: "--rx-engine xdp"}
	}
	for _, e := range []*End{s.Tx, s.Rx, s.Reflector} {
		if e == nil {
			continue
		}
		if err := s.validateEnd(e); err != nil {
			return err
		}
	}
	if s.Tx == nil {
		return nil
	}
	if s.Streams != nil {
		_, err := s.writer(0, len(s.Tx.Queues))
		return err
	}
	if s.Replay == nil {
		if err := s.Stream.Validate(); err != nil {
			return err
		}
	}
	if err := s.validateLive(); err != nil {
		return err
	}
	_, err := s.PPS()
	return err
}

// validateLive refuses what the program that makes frames in the kernel cannot.
func (s *Spec) validateLive() error {
	if s.Tx.Engine != engine.Live {
		return nil
	}
	if n := len(s.Stream.Sizes.Cycle()); n > 1 {
		return &SpecError{What: fmt.Sprintf("engine live sends frames of one size, not of %d", n), Remedy: "one --frame, or --tx-engine xsk"}
	}
	if s.Stream.NeedsShort() {
		least, _ := frame.LeastFrame(s.Stream.Stack)
		return &SpecError{What: fmt.Sprintf("engine live writes the long tag only, which needs a frame of %d bytes here", least),
			Remedy: fmt.Sprintf("--frame %d, or --tx-engine xsk", least)}
	}
	return nil
}

func (s *Spec) validateEnd(e *End) error {
	have := e.Port.RxQueues
	if e == s.Tx {
		have = e.Port.TxQueues
	}
	for _, q := range e.Queues {
		if q.ID < 0 || q.ID >= have {
			return &SpecError{fmt.Sprintf("%s has no queue %d: it has %d (0-%d)", e.Endpoint, q.ID, have, have-1),
				fmt.Sprintf("--queues 0-%d, or ethtool -L to make more", have-1), true}
		}
	}
	if !e.Port.Up {
		return &SpecError{fmt.Sprintf("%s is down", e.Endpoint), e.ip("link set " + e.Port.Name + " up"), true}
	}
	if s.Tx == nil {
		return nil
	}
	return s.validateSize(e)
}

// validateSize holds the largest frame against what the end can carry.
func (s *Spec) validateSize(e *End) error {
	largest, l3, from := s.largest()
	if l3 > e.Port.MTU {
		return &SpecError{
			fmt.Sprintf("a frame of %d bytes%s needs an MTU of %d; %s has %d", largest, from, l3, e.Endpoint, e.Port.MTU),
			e.ip(fmt.Sprintf("link set %s mtu %d", e.Port.Name, l3)) + " at both ends, or a smaller --frame", true}
	}
	most := s.frameLimit(e)
	if largest > most.frame {
		return &SpecError{fmt.Sprintf("a frame of %d bytes is over what %s can do: %s carries at most %d", largest, e.Endpoint, most.why, most.frame),
			"a smaller --frame", true}
	}
	return nil
}

// limit is the largest frame of an end and what sets it.
type limit struct {
	frame wire.FrameLen
	why   string
}

// ixgbeXDP is ixgbe's largest frame with XDP: 3 KB receive buffers, and no
// frames of several (IXGBE_MAX_XDP_FRAME_SIZE, drivers/net/ethernet/intel/ixgbe).
const ixgbeXDP = wire.FrameLen(3072)

const ixgbe = "ixgbe"

// xdpBuffer is what a program without fragments sees of a page on veth, an MTU
// of 3,506 (measured, Linux 6.18). Other drivers refuse to attach sooner.
const xdpBuffer = 3506 + 14

// ixgbeBuffer is the longest buffer that ixgbe receives into a UMEM chunk in
// zero-copy mode. It programs whole KB, and one byte more vanishes with no
// counter moving (SRRCTL.BSIZEPKT, ixgbe_configure_srrctl).
func ixgbeBuffer(chunk int) wire.BufLen {
	return wire.BufLen(engine.RxBuffer(chunk) / 1024 * 1024)
}

func (s *Spec) frameLimit(e *End) limit {
	chunk := wire.BufLen(e.Chunk)
	if e == s.Rx {
		chunk = wire.BufLen(engine.RxBuffer(e.Chunk))
	}
	one := limit{chunk.Frame(), fmt.Sprintf("one UMEM chunk of %d bytes", e.Chunk)}
	if e == s.Rx && e.Port.Driver == ixgbe && e.ZeroCopy != xsk.Forbid {
		one = limit{ixgbeBuffer(e.Chunk).Frame(), fmt.Sprintf("ixgbe with zero-copy and a UMEM chunk of %d bytes", e.Chunk)}
	}
	switch {
	case e.Engine == engine.Live:
		return limit{wire.BufLen(bpf.MaxLiveFrame).Frame(), "an XDP live frame"}
	case e.Engine == engine.XDP:
		return limit{wire.BufLen(xdpBuffer).Frame(), "XDP without fragments"}
	case e.Port.Driver == ixgbe && ixgbeXDP < one.frame:
		return limit{ixgbeXDP, "ixgbe with XDP"}
	case e.Port.Driver == ixgbe, e.Engine != engine.XSK:
		return one
	}
	return limit{wire.MaxFrame, "a chain of UMEM chunks"}
}

// maxLen is the longest frame that an end must be ready for: what is sent, or,
// for a sink on its own, what the MTU lets in.
func (s *Spec) maxLen(e *End) wire.BufLen {
	if s.Tx != nil {
		largest, _, _ := s.largest()
		return largest.Buf()
	}
	return wire.BufLen(e.Port.MTU + 14 + 8)
}
