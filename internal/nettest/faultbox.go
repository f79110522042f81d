package nettest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"linerate/internal/lab/veth"
	"linerate/internal/netns"
)

// BoxConfig describes a fault box. The zero value forwards everything.
type BoxConfig struct {
	Queues, MTU int    // of the lab, as in veth.Config
	Seed        uint64 // chooses the damaged byte and bit
	Port        uint16 // UDP destination port of the frames that count, default 7777
	Rules       []Rule
	// XDP forwards inside the kernel instead, for rates above some 20,000
	// frames per second; Rules must then be empty.
	XDP *XDPRules
}

const defaultPort = 7777

// BoxCounts is what the box did to the frames of one way. With the user-space
// forwarder Counted + Duplicated = Sent + Dropped once the box is at rest.
type BoxCounts struct {
	Counted    uint64 // frames to the port that came in
	Other      uint64 // frames that do not count, passed on untouched
	Sent       uint64 // frames to the port that went out
	Dropped    uint64 // as rules said
	Duplicated uint64
	Swapped    uint64
	Delayed    uint64
	Corrupted  uint64
	// Lost is what the box lost without being told to: socket overflow, a ring
	// or link that stayed closed. In user space the test fails when it is not 0.
	Lost uint64
}

// Box is a lab whose two ends are joined by way of a forwarder that counts, and
// damages what its rules say. The ends are the interfaces lr0 of two
// namespaces, as in every lab.
type Box struct {
	lab  *veth.Lab
	ways [2]*way
	xdp  *xdpBox

	stop    atomic.Bool
	workers sync.WaitGroup
	once    sync.Once
	err     error
}

// FaultBox builds a box that goes with the test. At the test's end it fails the
// test if it lost a frame by itself, or could not do what a rule said.
func FaultBox(t testing.TB, cfg BoxConfig) *Box {
	t.Helper()
	Require(t, Namespaces, RawSockets)
	if cfg.XDP != nil {
		Require(t, BPF, VethXDP)
	}
	b, err := newBox(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func newBox(cfg BoxConfig) (*Box, error) {
	if cfg.Port == 0 {
		cfg.Port = defaultPort
	}
	if cfg.XDP != nil && len(cfg.Rules) > 0 {
		return nil, errors.New("fault box: rules are for the user-space forwarder, not for XDP")
	}
	for _, r := range cfg.Rules {
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("fault box: %w", err)
		}
	}
	lab, err := veth.Up(veth.Config{Queues: cfg.Queues, MTU: cfg.MTU, Middle: true})
	if err != nil {
		return nil, err
	}
	b := &Box{lab: lab}
	if cfg.XDP != nil {
		b.xdp, err = newXDPBox(lab, cfg.Port, *cfg.XDP)
	} else {
		err = b.start(cfg)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("fault box: %w", err), b.close())
	}
	return b, nil
}

// start opens a socket on each side and one goroutine for each way.
func (b *Box) start(cfg BoxConfig) error {
	var socks [2]int
	for i, name := range []string{veth.MiddleA, veth.MiddleB} {
		fd, err := openPort(b.lab.NS(veth.Middle), name)
		if err != nil {
			if i == 1 {
				unix.Close(socks[0])
			}
			return fmt.Errorf("open %s: %w", name, err)
		}
		socks[i] = fd
	}
	for w := range b.ways {
		b.ways[w] = newWay(cfg, Way(w), socks[w], socks[1-w])
		b.workers.Go(func() { b.ways[w].run(&b.stop) })
	}
	return nil
}

// close stops the forwarder, removes the lab and says what went wrong.
func (b *Box) close() error {
	b.once.Do(func() {
		b.stop.Store(true)
		b.workers.Wait()
		var errs []error
		for i, w := range b.ways {
			if w == nil {
				continue
			}
			errs = append(errs, w.close(), w.verdict(Way(i)))
		}
		if b.xdp != nil {
			errs = append(errs, b.xdp.close())
		}
		b.err = errors.Join(append(errs, b.lab.Down())...)
	})
	return b.err
}

// A is the endpoint of the first side, "<namespace>/lr0".
func (b *Box) A() string { return b.lab.A() }

// B is the endpoint of the second side.
func (b *Box) B() string { return b.lab.B() }

// Lab is the lab around the box, for its namespaces.
func (b *Box) Lab() *veth.Lab { return b.lab }

// NS is the thread inside one end's namespace.
func (b *Box) NS(e veth.End) *netns.NS { return b.lab.NS(e) }

// Counts is what has happened on one way so far.
func (b *Box) Counts(w Way) (BoxCounts, error) {
	if b.xdp != nil {
		return b.xdp.counts(w)
	}
	return b.ways[w].read()
}
