package bpf

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Point is a tracepoint that frames are counted at.
type Point string

// The first four name losses of XDP; PointNetDevXmit counts what the host's
// stack sends (AF_XDP does not pass it); PointKfreeSkb is what the stack discards.
const (
	PointXDPRedirectErr Point = "xdp_redirect_err"
	PointXDPException   Point = "xdp_exception"
	PointXDPDevmapXmit  Point = "xdp_devmap_xmit"
	PointXDPBulkTx      Point = "xdp_bulk_tx"
	PointNetDevXmit     Point = "net_dev_xmit"
	PointKfreeSkb       Point = "kfree_skb"
)

// points are in the order of enum point in src/trace.c; a test ties the two.
var points = [...]Point{
	tracePointPOINT_XDP_REDIRECT_ERR: PointXDPRedirectErr,
	tracePointPOINT_XDP_EXCEPTION:    PointXDPException,
	tracePointPOINT_XDP_DEVMAP_XMIT:  PointXDPDevmapXmit,
	tracePointPOINT_XDP_BULK_TX:      PointXDPBulkTx,
	tracePointPOINT_NET_DEV_XMIT:     PointNetDevXmit,
	tracePointPOINT_KFREE_SKB:        PointKfreeSkb,
}

// Target is an interface to trace: an index and the inode number of the network
// namespace that it counts in.
type Target struct {
	Ifindex int
	Netns   uint32
}

// TraceCount is what one tracepoint said of one interface with one code.
type TraceCount struct {
	Target
	Point Point
	// Code is a positive errno, 0 for none; an XDP action at xdp_exception; a
	// drop reason at kfree_skb; the driver's answer at net_dev_xmit, 0 when it
	// took the frame and else when the stack kept it to try again.
	Code int
	// CodeName is ENOSPC, XDP_TX, NOT_SPECIFIED ..., or the number.
	CodeName string
	Events   uint64
	Sent     uint64 // frames; at net_dev_xmit a GSO super-frame is one
	Dropped  uint64 // frames
	Bytes    uint64 // sent, at net_dev_xmit only, without FCS
}

// Trace counts frames at tracepoints. Its methods are safe for several goroutines.
type Trace struct {
	coll  *ebpf.Collection
	mu    sync.Mutex
	links map[Point]link.Link
	names map[uint32]string // of drop reasons, nil until asked for
}

// LoadTrace loads the tracing programs for interfaces in the calling thread's
// network namespace. It needs CAP_BPF, CAP_PERFMON and a kernel with BTF.
// Nothing is counted before Attach.
func LoadTrace(ifindexes []int) (*Trace, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &st); err != nil {
		return nil, fmt.Errorf("load trace: read own network namespace: %w", err)
	}
	targets := make([]Target, len(ifindexes))
	for i, ifindex := range ifindexes {
		targets[i] = Target{ifindex, uint32(st.Ino)}
	}
	return LoadTraceTargets(targets)
}

// LoadTraceTargets is LoadTrace for interfaces in any namespaces, at most 64.
func LoadTraceTargets(targets []Target) (*Trace, error) {
	spec, err := loadTrace()
	if err != nil {
		return nil, fmt.Errorf("read trace: %w", err)
	}
	if most := int(spec.Maps["targets"].MaxEntries); len(targets) > most {
		return nil, &ConfigError{"targets", len(targets), fmt.Sprintf("at most %d", most)}
	}
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		if _, serr := os.Stat("/sys/kernel/btf/vmlinux"); serr != nil {
			err = errors.Join(err, ebpf.ErrNotSupported)
		}
		return nil, explain("load trace", err, capBPF|capPerfmon,
			Feature{"tracing with BTF", "Linux 5.17 with CONFIG_DEBUG_INFO_BTF"})
	}
	t := &Trace{coll: coll, links: map[Point]link.Link{}}
	for _, target := range targets {
		key := traceTarget{Ifindex: uint32(target.Ifindex), Netns: target.Netns}
		if err := coll.Maps["targets"].Put(key, uint8(1)); err != nil {
			return nil, errors.Join(fmt.Errorf("trace interface %d: %w", target.Ifindex, err), t.Close())
		}
	}
	return t, nil
}

// Attach starts counting at all points but kfree_skb.
func (t *Trace) Attach() error {
	for _, p := range points {
		if p == PointKfreeSkb {
			continue
		}
		if err := t.attach(p); err != nil {
			return err
		}
	}
	return nil
}

// AttachDrops starts counting at kfree_skb too, which costs for each frame
// that anything on the host discards.
func (t *Trace) AttachDrops() error { return t.attach(PointKfreeSkb) }

func (t *Trace) attach(p Point) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.links[p] != nil {
		return nil
	}
	l, err := link.AttachTracing(link.TracingOptions{Program: t.coll.Programs[string(p)]})
	if err != nil {
		return explain("attach trace to "+string(p), err, capBPF|capPerfmon,
			Feature{"tracing with BTF", "Linux 5.5"})
	}
	t.links[p] = l
	return nil
}

// Counters reads all counts so far, in order of interface, point and code.
func (t *Trace) Counters() ([]TraceCount, error) {
	var all []TraceCount
	var key traceTraceKey
	var cpus []traceTraceValue
	entries := t.coll.Maps["counts"].Iterate()
	for entries.Next(&key, &cpus) {
		c := TraceCount{
			Target: Target{int(key.Target.Ifindex), key.Target.Netns},
			Point:  points[key.Point],
			Code:   int(key.Code),
		}
		c.CodeName = t.codeName(c.Point, c.Code)
		for _, cpu := range cpus {
			c.Events += cpu.Events
			c.Sent += cpu.Sent
			c.Dropped += cpu.Dropped
			c.Bytes += cpu.Bytes
		}
		all = append(all, c)
	}
	if err := entries.Err(); err != nil {
		return nil, fmt.Errorf("read trace counters: %w", err)
	}
	slices.SortFunc(all, compareCounts)
	return all, nil
}

// Missed is the number of events that are in no count: no room for another
// code, or a tracepoint that interrupted itself.
func (t *Trace) Missed() (uint64, error) {
	var missed uint64
	if err := t.coll.Variables["uncounted"].Get(&missed); err != nil {
		return 0, fmt.Errorf("read trace misses: %w", err)
	}
	for _, p := range points {
		stats, err := t.coll.Programs[string(p)].Stats()
		if err != nil {
			return 0, fmt.Errorf("read trace misses of %s: %w", p, err)
		}
		missed += stats.RecursionMisses
	}
	return missed, nil
}

// Close ends counting and unloads the programs. It may be called twice.
func (t *Trace) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for p, l := range t.links {
		if err := l.Close(); err != nil {
			errs = append(errs, fmt.Errorf("detach trace from %s: %w", p, err))
		}
		delete(t.links, p)
	}
	t.coll.Close()
	return errors.Join(errs...)
}
