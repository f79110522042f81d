package engine

import (
	"errors"
	"math"
	"testing"
	"time"

	"linerate/internal/frame"
	"linerate/internal/pace"
)

func TestConfigRefusals(t *testing.T) {
	good := testConfig(Port{Do: func(f func() error) error { return f() }})
	if err := errors.Join(good.validateTx(), good.validateRx()); err != nil {
		t.Fatal(err)
	}
	const tx, rx, drop = 1, 2, 4
	for name, c := range map[string]struct {
		spoil   func(*Config)
		refused int // by whom
	}{
		"no queue":    {func(c *Config) { c.Queues = nil }, tx | rx | drop},
		"no port":     {func(c *Config) { c.Port.Do = nil }, tx | rx | drop},
		"no chunk":    {func(c *Config) { c.Chunk = 0 }, tx | rx | drop},
		"no length":   {func(c *Config) { c.MaxLen = 0 }, tx | rx | drop},
		"no batch":    {func(c *Config) { c.Batch = 0 }, tx | rx | drop},
		"too long":    {func(c *Config) { c.MaxLen = 18*4096 + 1 }, tx | rx | drop},
		"no budget":   {func(c *Config) { c.Budget = 0 }, tx}, // what only receives has none
		"no ring":     {func(c *Config) { c.RingSize = 0 }, rx},
		"huge budget": {func(c *Config) { c.Budget = 1 << 20 }, tx},
		"huge ring":   {func(c *Config) { c.RingSize = 1 << 19 }, rx},
		"no room":     {func(c *Config) { c.Budget, c.MaxLen = 1, 4097 }, tx},
	} {
		t.Run(name, func(t *testing.T) {
			bad := good
			c.spoil(&bad)
			for end, err := range map[int]error{tx: bad.validateTx(), rx: bad.validateRx(), drop: bad.validate()} {
				var e *ConfigError
				if refused := errors.As(err, &e); refused != (c.refused&end != 0) {
					t.Errorf("end %d: %v", end, err)
				}
			}
		})
	}
}

// TestOpenValidates: each end by its own rules, before it touches the kernel.
func TestOpenValidates(t *testing.T) {
	c := testConfig(Port{Do: func(f func() error) error { return f() }})
	c.Budget, c.RingSize = 0, 0
	for _, n := range []Name{XSK, Asavie} {
		var e *ConfigError
		if _, err := OpenSender(n, c); !errors.As(err, &e) || e.Field != "budget" {
			t.Errorf("%s sender: %v", n, err)
		}
		if _, err := OpenReceiver(n, c, RxOptions{}); !errors.As(err, &e) || e.Field != "ring size" {
			t.Errorf("%s receiver: %v", n, err)
		}
	}
	c.Batch = 0
	var e *ConfigError
	if _, err := OpenReceiver(XSK, c, RxOptions{Drop: true}); !errors.As(err, &e) {
		t.Errorf("drop: %v", err)
	}
}

func TestUnknownEngine(t *testing.T) {
	c := testConfig(Port{})
	if _, err := OpenSender("live", c); err == nil {
		t.Error("a sender of no engine")
	}
	if _, err := OpenReceiver("live", c, RxOptions{}); err == nil {
		t.Error("a receiver of no engine")
	}
}

func TestOfferRefusals(t *testing.T) {
	good := Offer{Writers: writersOf(t, "64", 2), PPS: 1, Duration: time.Second}
	if err := good.validate(2); err != nil {
		t.Fatal(err)
	}
	if err := good.validate(0); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	var ce *ConfigError
	if err := good.validate(3); !errors.As(err, &ce) {
		t.Errorf("a writer is missing: %v", err)
	}
	var pe *pace.ConfigError
	bad := good
	bad.PPS = math.NaN()
	if err := bad.validate(2); !errors.As(err, &pe) {
		t.Errorf("no rate: %v", err)
	}
	var fe *frame.FieldError
	bad = good
	bad.Writers = make([]frame.WriterConfig, 2)
	if err := bad.validate(2); !errors.As(err, &fe) {
		t.Errorf("no frames: %v", err)
	}
}

// TestPacingShares: together the workers send the count, no more and no less.
func TestPacingShares(t *testing.T) {
	for _, count := range []uint64{1, 2, 7} {
		o := Offer{Count: count}
		var sum uint64
		for i := range 4 {
			p := pace.New(o.pacing(i, 4))
			p.Start(0)
			n, _ := p.Due(1, 100)
			sum += uint64(n)
		}
		if sum != count {
			t.Errorf("4 workers send %d of %d", sum, count)
		}
	}
}
