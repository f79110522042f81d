// Package pace turns a rate into permits to send, by an absolute schedule: the
// time of a permit follows from its number alone, so no rounding, no late wake
// and no slow batch ever adds up to a wrong rate.
//
// The package is pure. Time comes in as numbers, in nanoseconds of
// CLOCK_MONOTONIC; waiting goes out through injected functions.
package pace

import (
	"fmt"
	"time"
)

const (
	// Window is the span over which bursts are judged.
	Window = 100 * time.Microsecond
	// StallAfter is how late a call must be for the worker to count as off-CPU.
	StallAfter = 200 * time.Microsecond
	// CatchUp is how long after a stall the window rule is suspended.
	CatchUp = time.Millisecond
	// DefaultMaxDebt is the most lateness that is made good; the rest is thrown.
	DefaultMaxDebt = time.Millisecond
	// DefaultBurst is what a window may hold above its share of the rate.
	DefaultBurst = 2

	minPPS     = 0.001
	maxPPS     = 1e9
	maxWorkers = 1 << 16
)

// Clock returns the time in nanoseconds of CLOCK_MONOTONIC.
type Clock func() int64

// Config is one worker's share of a stream that Workers workers send together.
type Config struct {
	PPS      float64       // frames per second of the whole stream; 0 is unlimited
	Count    uint64        // frames of the whole stream; 0 is no limit
	Duration time.Duration // permits scheduled later than this after Start do not exist; 0 is no limit
	Worker   int           // which share this is, from 0
	Workers  int           // how many shares there are, at least 1
	// Burst is how many frames any 100 us may hold above this worker's share of
	// the rate: set it to the batch where frames leave in batches, else a late
	// batch is held back. 0 means DefaultBurst over all workers, but at least 1
	// for each.
	Burst   int
	MaxDebt time.Duration // 0 is DefaultMaxDebt
}

// ConfigError names the field of a Config that makes no sense.
type ConfigError struct {
	Field string
	Value float64 // durations in nanoseconds
}

// Error names the field and its value.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("pace: %s of %v: out of range", e.Field, e.Value)
}

// Validate returns a *ConfigError for the first field that makes no sense. A
// rate is 0, or from one frame in 1000 s to one per nanosecond.
func (c Config) Validate() error {
	switch {
	case c.PPS != 0 && !(c.PPS >= minPPS && c.PPS <= maxPPS): // NaN too
		return &ConfigError{"frames per second", c.PPS}
	case c.Workers < 1 || c.Workers > maxWorkers:
		return &ConfigError{"number of workers", float64(c.Workers)}
	case c.Worker < 0 || c.Worker >= c.Workers:
		return &ConfigError{"worker", float64(c.Worker)}
	case c.Burst < 0:
		return &ConfigError{"burst", float64(c.Burst)}
	case c.Duration < 0:
		return &ConfigError{"duration", float64(c.Duration)}
	case c.MaxDebt < 0:
		return &ConfigError{"debt", float64(c.MaxDebt)}
	}
	return nil
}

// share returns how many of Count permits are this worker's: those whose number
// leaves the remainder Worker.
func (c Config) share() uint64 {
	if c.Count == 0 {
		return ^uint64(0)
	}
	n, rest := c.Count/uint64(c.Workers), c.Count%uint64(c.Workers)
	if uint64(c.Worker) < rest {
		n++
	}
	return n
}

// burst returns this worker's allowance above its share of the rate.
func (c Config) burst() int64 {
	if c.Burst > 0 {
		return int64(c.Burst)
	}
	return max(1, DefaultBurst/int64(c.Workers))
}
