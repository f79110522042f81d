// Package engine sends and receives frames: one file per way of doing it.
package engine

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"linerate/internal/frame"
	"linerate/internal/meter"
	"linerate/internal/pace"
	"linerate/internal/pcap"
	"linerate/internal/wire"
	"linerate/xsk"
)

// Name is an engine's name on the command line and in documents.
type Name string

// The engines of this build.
const (
	XSK    Name = "xsk"    // AF_XDP sockets of package xsk
	Asavie Name = "asavie" // github.com/asavie/xdp, for comparison
	Live   Name = "live"   // XDP live frames; sends only
	XDP    Name = "xdp"    // verified inside an XDP program, no socket; receives only
)

// XDPMode is where an XDP program runs: in the driver or in the core stack.
type XDPMode string

// XDP modes as documents print them.
const (
	Native  XDPMode = "native"
	Generic XDPMode = "generic"
	NoXDP   XDPMode = "none"
)

// Port is the interface an engine works on. Do runs a function on a thread
// inside the interface's network namespace; sockets and links opened there
// stay usable from every thread. That thread must outlive the engine: a child
// process that was started on it dies with it.
type Port struct {
	Name    string
	IfIndex int
	Do      func(func() error) error
}

// Queue is one device queue and the CPU its worker is pinned to (-1: not
// pinned).
type Queue struct {
	ID  int
	CPU int
}

// Config is what both ends of an engine need. It is validated by the caller
// and not changed after the engine is open.
type Config struct {
	Port     Port
	Queues   []Queue
	ZeroCopy xsk.ZeroCopy
	Generic  bool // XDP in generic mode, sockets in copy mode
	Chunk    int  // UMEM chunk, bytes
	// MaxLen is the longest frame: one that does not fit a chunk takes several,
	// where the kernel and the driver can (XDP_USE_SG, Linux 6.6).
	MaxLen   wire.BufLen
	Batch    int // frames per ring operation
	Budget   int // frames of a sending queue under way, and per kick: a power of two
	RingSize int // descriptors per ring, a power of two
	// Shared is for a sender: a receiver on the same port has its program there
	// already, and keeps it for longer than the sender lives.
	Shared bool
	Fault  Fault
}

// Fault loses or miscounts frames at one stage, uncounted. Only the budget's
// own test sets it: every stage must be able to show a loss nobody named.
type Fault struct {
	LoseOffered    uint64 // granted by the pacer, never written to the TX ring
	LoseSubmitted  uint64 // counted as submitted, never given to the kernel
	LoseBeforeSeen uint32 // dropped by XDP before it counts
	LoseAfterSeen  uint32 // dropped by XDP between its counters
	LoseRedirected uint64 // released from the RX ring, not counted as taken
	LoseTaken      uint64 // taken, never verified
}

// of is worker i's share: one worker is enough to lose N frames.
func (f Fault) of(i int) Fault {
	if i > 0 {
		return Fault{}
	}
	return f
}

// Offer is what a sender is asked to send in one trial.
type Offer struct {
	Writers  []frame.WriterConfig // one per queue
	Replay   *Replay              `json:"-"` // instead of Writers; it stays in this process, so not every engine can
	PPS      float64              // 0: as fast as the path takes them
	Count    uint64               // frames over all queues, 0: until the time is up
	Start    int64                // CLOCK_MONOTONIC ns; all workers begin here
	Duration time.Duration        // 0: until Count or the context ends
	EndMarks bool                 // close every sequence space with END frames
	Warmup   time.Duration        // left out of TxResult.Rated
}

// Granted is what the device and the kernel gave, read back after the bind.
type Granted struct {
	Mode    string // "zerocopy" or "copy"; "generic" if XDP runs in the stack
	XDPMode XDPMode
	Notes   []Note // fall-backs taken
}

// Note is a remark by its code in the table of package report, with the
// arguments of its text.
type Note struct {
	Code string
	Args []any
}

// Sender sends frames on the queues of one port. Run may be called once per
// trial, one trial at a time; it refuses to begin while frames of the last one
// are under way. Counters may be called and read by any goroutine.
type Sender interface {
	Granted() Granted
	Counters() []*meter.TxCounters
	Run(ctx context.Context, o Offer) (TxResult, error)
	Close() error
}

// TxQueue is what one sending queue did during one trial. All counts are
// frames of this trial.
type TxQueue struct {
	Queue      Queue
	Offered    uint64 // granted by the pacer, thrown debt included
	Unsent     uint64 // granted or due, never written to the ring
	Submitted  uint64 // written to the TX ring (END frames included)
	EndFrames  uint64 // of Submitted: END frames
	Completed  uint64 // came back on the completion ring
	Refused    uint64 // the kernel said the device refused exactly this one
	RefusedEnd uint64 // of Refused: during the END frames
	Invalid    uint64 // descriptors the kernel called invalid
	Bytes      uint64 // L2 bytes with FCS of the submitted frames
	Stalls     pace.Stalls
	Thrown     uint64 // of Unsent: permits the pacer threw away as debt
	Tail       uint64 // of Thrown: after the last frame
	LastThrown uint64 // of Thrown: when the last frame was sent
	LateNs     int64  // frames at times of their own: how late the last ones went
	Unwritten  uint64 // of Unsent: granted, but the ring took fewer
	Held       uint64 // frames still in the TX ring at the end
	// Excused is when the worker was off its CPU or catching up: there the
	// pacing rule does not hold.
	Excused  []meter.Span
	Space    frame.Space
	BiasNs   uint64 // mean time from stamp to kick
	NetDown  uint64 // kicks answered ENETDOWN
	OwnQueue uint64 // batches stamped while the TX ring was over a quarter full
	Batches  uint64
	// CallsNs was spent in turns that put frames into the kernel and were so long
	// that they alone may pass for a stall.
	CallsNs int64
	// WaitedNs is how long the worker was ready to run, Rated's warm-up left out,
	// and had no CPU (schedstat); nil: the kernel does not say.
	WaitedNs *int64
	Rated    Rated
	Warmup   Warmup
}

// Warmup is what happened to a sending queue before its Rated begins.
type Warmup struct {
	Thrown  uint64
	Refused uint64
	CallsNs int64
	Stalls  pace.Stalls
}

// TxResult is one trial of a sender.
type TxResult struct {
	Queues  []TxQueue
	FirstNs int64 // CLOCK_MONOTONIC of the first submit
	LastNs  int64 // and of the last
	EndNs   int64 // when the offer was over
	Rated   Rated
	// RefusedUnknown: the engine cannot tell what the device refused.
	RefusedUnknown bool
}

// Receiver receives frames on the queues of one port.
type Receiver interface {
	Granted() Granted
	Counters() []*meter.RxCounters
	// Arm directs the frames to the sockets: until then they go to the stack, so
	// that none of before the baselines waits in a ring. Run does it if need be.
	Arm() error
	// Disarm undoes it before the last readings, for the same reason: what comes
	// after would wait in a ring that nobody empties.
	Disarm() error
	// Run takes frames until ctx ends, then what stands in the rings. The
	// result is valid also with an error, which stops every queue.
	Run(ctx context.Context, w Watch) (RxResult, error)
	// Ended tells, during Run, whether every sequence space has its END.
	Ended() bool
	// Program reads the XDP program's counters, since it was loaded.
	Program() (ProgramCounts, error)
	Close() error
}

// Watch is how a receiver looks at what it takes.
type Watch struct {
	Verify       bool
	Run          frame.Run
	AnyRun       bool // take the first run seen instead of Run
	PayloadCheck bool
	PPS          float64         // nominal rate for the 100 us rule, 0: none
	Warmup       time.Duration   // left out of RxResult.Rated, from the first frame on
	Foreign      frame.Generator // whose frames are verified, empty: our own
	// Rings keep frames, by queue: all of them, or with Verify those that are bad.
	// They stay in this process, so not every engine can.
	Rings map[int]*pcap.Ring `json:"-"`
}

// RxQueue is what one receiving queue did during one trial.
type RxQueue struct {
	Queue     Queue
	Taken     uint64 // taken from the RX ring
	Bytes     uint64 // L2 bytes with FCS of these
	RingFull  uint64 // frames (copy mode) or attempts (zero-copy) that found the RX ring full
	FillEmpty uint64 // failed allocations from the fill ring
	Dropped   uint64 // the socket's rx_dropped: too long, or no buffer
	NetDown   uint64 // waits answered ENETDOWN
}

// RxResult is one trial of a receiver. A nil distribution has no values.
type RxResult struct {
	Queues       []RxQueue
	FirstNs      int64 // CLOCK_MONOTONIC of the first batch taken
	LastNs       int64
	Rated        Rated // good frames; where nothing is verified, all
	Totals       frame.Totals
	Spaces       []frame.SpaceTotals
	Streams      []frame.StreamTotals
	Adopted      frame.Run      // the run taken with Watch.AnyRun
	Gaps         *meter.Summary // ns between frames of one queue, at its XDP program
	Overfull     []meter.Span   // windows of 100 us over the pacing rule, the first of them,
	OverfullMore uint64         // and how many more
	Latency      *meter.Summary // ns from the sender's stamp to XDP
	NoStamp      uint64
	ClockTrouble uint64 // frames received before they were sent
	Unjudged     uint64 // engine xdp: taken, and not looked at for want of time
}

// ProgramCounts is what the XDP program of a receiver has counted since it
// was loaded, per queue. Passed, Dropped and Other are keyed by reason.
type ProgramCounts struct {
	Seen       map[int]uint64
	Redirected map[int]uint64
	Accounted  map[int]uint64 // dropped after being counted (sink)
	Passed     map[int]map[string]uint64
	NoMeta     uint64
}

// burst is what 100 us may hold above a worker's share of the rate: two frames
// over all workers.
func burst(pps float64, workers int) int {
	if pps == 0 {
		return 0
	}
	return max(1, 2/workers)
}

// sleep blocks the worker's thread. The runtime's own timers may be a
// millisecond late.
func sleep(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil) // EINTR: early, and the caller looks at the clock
}

// timerSlackNs is how late the kernel may end a worker's sleep on purpose.
const timerSlackNs = 1000

// workerNice is the nice value of worker threads.
const workerNice = -15

// pin locks the calling goroutine to its thread and the thread to one CPU.
// The thread is never unlocked: it ends with the goroutine, so the affinity
// cannot leak to another.
func pin(cpu int) error {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, timerSlackNs, 0, 0, 0) // the default, 50 us, only makes sleeps longer
	// Ahead of whatever else runs on this core; without the right to, the worker
	// is as good as any other thread, and its stalls are counted.
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, workerNice)
	if cpu < 0 {
		return nil
	}
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pin worker to cpu %d: %w", cpu, err)
	}
	return nil
}
