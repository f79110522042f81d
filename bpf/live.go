package bpf

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Limits of XDP live frames (net/bpf/test_run.c at v6.18).
const (
	MinLiveFrame = 60   // bytes without FCS: a tag needs more than the kernel's 14
	MaxLiveFrame = 3408 // bytes without FCS: one page less its headers
	MaxLiveBatch = 256
)

// liveTagBytes is the length of the long tag, the only one that live writes.
const liveTagBytes = 18

// LiveFlow is what frames of one flow have of their own.
type LiveFlow struct {
	MAC      [12]byte // destination and source, as in the frame
	Addr     [36]byte // addresses and ports as in the frame: 12 bytes for IPv4
	L3Check  [2]byte  // IPv4 header checksum as in the frame
	L4Sum    [2]byte  // folded sum of what the UDP checksum covers, sequence, time, flags and tag check 0
	TagCheck uint16   // of the tag with sequence, time and flags 0
}

// LiveConfig is one worker's frames. Template is a frame without FCS; all that
// depends on flow and tag is written by the program.
type LiveConfig struct {
	IfIndex    int // device to send from
	Template   []byte
	L3         int  // offset of the IP header
	Payload    int  // offset of the UDP payload
	V6         bool // IPv6
	MACs       bool // flows differ in their MAC addresses
	Fixed      uint64
	StampEvery int // 1 frame in so many carries its time: a power of two; 0: none
	Flows      []LiveFlow
	// LoseOffered and LoseSubmitted vanish uncounted: for the frame budget's own test.
	LoseOffered, LoseSubmitted uint32
}

// LiveOffer is one trial of a worker.
type LiveOffer struct {
	StartNs    int64   // CLOCK_MONOTONIC
	DeadlineNs int64   // 0: none
	Count      uint64  // 0: until the deadline
	PPS        float64 // 0: as fast as the path takes them
	Batch      int     // frames per flush, 1 to 256; at most 64 into a veth
}

// LiveProgress is what a worker has done in the trial so far, frames.
type LiveProgress struct {
	Sent           uint64 // redirected to the device
	Thrown         uint64 // permits more than a millisecond late: never made
	Padding        uint64 // runs of the program that made no frame
	Spoilt         uint64 // runs on a page that no longer was one of ours
	FirstNs        int64  // CLOCK_MONOTONIC of the first frame, to the batch
	LastNs         int64
	Stalls         uint64 // times the program did not run for 200 us
	StallNs        int64
	LongestStallNs int64
	Done           bool
	Lost           uint64 // by LoseOffered
}

// Live is one worker's program. Run belongs to one goroutine; the others may
// be called from any.
type Live struct {
	coll     *ebpf.Collection
	template []byte
	tid      atomic.Int32
	stopped  atomic.Bool
	close    sync.Once
}

func (c *LiveConfig) validate() error {
	n := len(c.Template)
	switch {
	case n < MinLiveFrame || n > MaxLiveFrame:
		return &ConfigError{"Template", fmt.Sprintf("%d bytes", n), fmt.Sprintf("%d to %d", MinLiveFrame, MaxLiveFrame)}
	case len(c.Flows) == 0:
		return &ConfigError{"Flows", 0, "at least one"}
	case c.StampEvery < 0 || c.StampEvery&(c.StampEvery-1) != 0:
		return &ConfigError{"StampEvery", c.StampEvery, "a power of two, or 0"}
	case c.Payload <= c.L3 || c.L3 < 14 || c.Payload+liveTagBytes > n:
		return &ConfigError{"Payload", c.Payload, "room for the tag behind the headers"}
	}
	return nil
}

// LoadLive loads a program that makes frames. It needs CAP_BPF, CAP_NET_ADMIN
// and CAP_PERFMON. Errors as LoadSteer.
func LoadLive(c LiveConfig) (*Live, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	spec, err := loadLive()
	if err != nil {
		return nil, fmt.Errorf("read live: %w", err)
	}
	if err := c.apply(spec); err != nil {
		return nil, err
	}
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, explain("load live", err, capBPF|capNetAdmin|capPerfmon, Feature{"what the program uses", "Linux 6.1"})
	}
	l := &Live{coll: coll, template: c.Template}
	if err := l.prepare(c); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (c *LiveConfig) apply(spec *ebpf.CollectionSpec) error {
	spec.Maps["flows"].MaxEntries = uint32(len(c.Flows))
	var head [88]byte
	copy(head[:], c.Template)
	flag := func(b bool) uint8 {
		if b {
			return 1
		}
		return 0
	}
	var crc [10][256]uint16
	for i := range crc {
		crc[i] = crcAfter(11 - i) // bytes 6 to 15 of the tag's 18
	}
	return setVariables(spec, map[string]any{
		"ifindex": uint32(c.IfIndex), "frame_len": uint32(len(c.Template)), "head_len": uint32(c.Payload),
		"l3": uint32(c.L3), "v6": flag(c.V6), "macs": flag(c.MACs),
		"odd": flag((len(c.Template)-liveTagBytes-c.Payload)%2 != 0), "fixed": c.Fixed,
		"stamp_every": uint32(c.StampEvery), "flow_count": uint32(len(c.Flows)), "head": head, "crc_at": crc,
		"lose_offered": c.LoseOffered, "lose_submitted": c.LoseSubmitted,
	})
}

// prepare writes the flows.
func (l *Live) prepare(c LiveConfig) error {
	m := l.coll.Maps["flows"]
	for i, f := range c.Flows {
		entry := liveFlow{Mac: f.MAC, Addr: f.Addr, L3Check: native16(f.L3Check), L4Sum: native16(f.L4Sum), TagCheck: f.TagCheck}
		if err := m.Put(uint32(i), entry); err != nil {
			return fmt.Errorf("write flow %d: %w", i, err)
		}
	}
	return nil
}

// Begin sets the next trial; Run then carries it out.
func (l *Live) Begin(o LiveOffer) error {
	l.stopped.Store(false)
	return errors.Join(
		l.set("progress", liveLiveProgress{}),
		l.set("offer", liveLiveOffer{StartNs: uint64(o.StartNs), DeadlineNs: uint64(o.DeadlineNs), Count: o.Count,
			Rate: uint64(math.Round(o.PPS * 100))}),
		l.set("stop", uint32(0)))
}

// set writes one of the program's variables. They are mapped: no call into the kernel.
func (l *Live) set(name string, value any) error {
	if err := l.coll.Variables[name].Set(value); err != nil {
		return fmt.Errorf("set %s of live: %w", name, err)
	}
	return nil
}

// liveTest is union bpf_attr for BPF_PROG_TEST_RUN (include/uapi/linux/bpf.h at v6.18).
type liveTest struct {
	progFD, retval           uint32
	dataSizeIn, dataSizeOut  uint32
	dataIn, dataOut          uint64
	repeat, duration         uint32
	ctxSizeIn, ctxSizeOut    uint32
	ctxIn, ctxOut            uint64
	flags, cpu, batchSize, _ uint32
}

// liveContext is struct xdp_md.
type liveContext struct{ data, dataEnd, dataMeta, ingressIfindex, rxQueueIndex, egressIfindex uint32 }

const (
	bpfProgTestRun   = 10
	testXDPLiveFrame = 1 << 1
)

// Run makes the frames that Begin asked for, on the calling thread, which is
// locked and stays on its CPU and in the device's namespace. ingress is a device
// there that runs an XDP program. It returns when the offer is done or Stop was
// called. Errors: *PermissionError, *UnsupportedError (before Linux 5.18), or the
// kernel's.
func (l *Live) Run(ingress, batch int) error {
	l.tid.Store(int32(unix.Gettid()))
	defer l.tid.Store(0)
	for !l.over() {
		if err := l.call("live", l.template, ingress, batch, 1<<32-1); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
	}
	return nil
}

// End sends one END frame, from a thread as Run needs it, and not during Run.
func (l *Live) End(frame []byte, ingress int) error {
	for {
		if err := l.call("live_end", frame, ingress, 1, 1); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// call is one BPF_PROG_TEST_RUN.
func (l *Live) call(program string, data []byte, ingress, batch, repeat int) error {
	ctx := liveContext{dataEnd: uint32(len(data)), ingressIfindex: uint32(ingress)}
	attr := liveTest{
		progFD: uint32(l.coll.Programs[program].FD()), dataSizeIn: uint32(len(data)),
		dataIn: uint64(uintptr(unsafe.Pointer(&data[0]))),
		repeat: uint32(repeat), ctxSizeIn: uint32(unsafe.Sizeof(ctx)), ctxIn: uint64(uintptr(unsafe.Pointer(&ctx))),
		flags: testXDPLiveFrame, batchSize: uint32(batch),
	}
	_, _, errno := unix.Syscall(unix.SYS_BPF, bpfProgTestRun, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	runtime.KeepAlive(data)
	runtime.KeepAlive(&ctx)
	if errno == 0 {
		return nil
	}
	return explain("run "+program, errno, capBPF|capNetAdmin, Feature{"XDP live frames", "Linux 5.18"})
}

func (l *Live) over() bool {
	p, err := l.Progress()
	return err != nil || p.Done || l.stopped.Load()
}

// Nudge interrupts Run's call into the kernel if there is no more to do: the
// kernel goes on until a signal comes. Call it now and then.
func (l *Live) Nudge() {
	if tid := l.tid.Load(); tid != 0 && l.over() {
		// The thread may have left the call: the runtime takes SIGURG for nothing.
		_ = unix.Tgkill(unix.Getpid(), int(tid), unix.SIGURG)
	}
}

// Stop ends the trial within a batch, once Nudge is called.
func (l *Live) Stop() error {
	l.stopped.Store(true)
	return l.set("stop", uint32(1))
}

// Progress reads how far the worker is.
func (l *Live) Progress() (LiveProgress, error) {
	var p liveLiveProgress
	if err := l.coll.Variables["progress"].Get(&p); err != nil {
		return LiveProgress{}, fmt.Errorf("read progress of live: %w", err)
	}
	return LiveProgress{
		Sent: p.Sent, Thrown: p.Thrown, Padding: p.Pad, Spoilt: p.Bad, FirstNs: int64(p.FirstNs), LastNs: int64(p.LastNs),
		Stalls: p.Stalls, StallNs: int64(p.StallNs), LongestStallNs: int64(p.LongestNs), Done: p.Done != 0, Lost: uint64(p.LostOffered),
	}, nil
}

// Close unloads the program. It may be called twice, but not during Run.
func (l *Live) Close() error {
	l.close.Do(l.coll.Close)
	return nil
}
