package engine

import (
	"errors"
	"fmt"

	"linerate/bpf"
	"linerate/internal/frame"
	"linerate/internal/pace"
)

// ErrClosed is what an engine answers after its Close.
var ErrClosed = errors.New("the engine is closed")

// ConfigError names what of a Config or an Offer no engine can work with.
type ConfigError struct {
	Field string
	Value any
	Want  string
}

// Error names the field, its value and what would be right.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("engine %s = %v: want %s", e.Field, e.Value, e.Want)
}

// maxUmem bounds the memory of one queue: what 32 bits can count.
const maxUmem = 1<<32 - 1

// validate reports, as a *ConfigError, what would make either end divide by
// zero. The rest is for the kernel to refuse.
func (c Config) validate() error {
	switch {
	case len(c.Queues) == 0:
		return &ConfigError{"queues", 0, "at least one"}
	case c.Port.Do == nil:
		return &ConfigError{"port", c.Port.Name, "a way into its namespace"}
	case c.Chunk <= headroom:
		return &ConfigError{"chunk", c.Chunk, "a UMEM chunk, 2048 or 4096"}
	case c.MaxLen < 1 || pieces(int(c.MaxLen), c.Chunk) > maxFragments:
		return &ConfigError{"longest frame", c.MaxLen, fmt.Sprintf("1 to %d chunks", maxFragments)}
	case c.Batch < 1:
		return &ConfigError{"batch", c.Batch, "at least 1"}
	}
	return nil
}

// validateTx is validate for a sender.
func (c Config) validateTx() error {
	if err := c.validate(); err != nil {
		return err
	}
	if c.Budget < pieces(int(c.MaxLen), c.Chunk) || uint64(c.Budget)*uint64(c.Chunk) > maxUmem {
		return &ConfigError{"budget", c.Budget, "room for one frame, and less than 4 GiB of chunks"}
	}
	return nil
}

// validateRx is validate for a receiver with sockets.
func (c Config) validateRx() error {
	if err := c.validate(); err != nil {
		return err
	}
	if c.RingSize < 1 || 2*uint64(c.RingSize)*uint64(c.Chunk) > maxUmem {
		return &ConfigError{"ring size", c.RingSize, "at least 1, and less than 4 GiB of chunks"}
	}
	return nil
}

// validate reports what no worker of so many could send.
func (o Offer) validate(workers int) error {
	if workers == 0 {
		return ErrClosed
	}
	if o.Replay != nil {
		return o.Replay.validate(o, workers)
	}
	if len(o.Writers) != workers {
		return &ConfigError{"writers", len(o.Writers), fmt.Sprintf("one for each of %d queues", workers)}
	}
	for i, w := range o.Writers {
		if err := w.Stream.Validate(); err != nil {
			return fmt.Errorf("prepare frames of worker %d: %w", i, err)
		}
	}
	return o.pacing(0, workers).Validate()
}

// pacing is the share of worker i of n.
func (o Offer) pacing(i, n int) pace.Config {
	return pace.Config{PPS: o.PPS, Count: o.Count, Duration: o.Duration, Worker: i, Workers: n, Burst: burst(o.PPS, n)}
}

// permits are those of worker i of n.
func (o Offer) permits(i, n int) permits {
	if o.Replay != nil {
		return o.Replay.permits(o, i)
	}
	return pace.New(o.pacing(i, n))
}

// fit makes a worker's writer and holds its frames against the longest that
// the path can take.
func fit(c frame.WriterConfig, path txPath) (*frame.Writer, error) {
	fw, err := frame.NewWriter(c)
	if err != nil {
		return nil, err
	}
	if most := path.longest(); fw.MaxLen() > most {
		return nil, &ConfigError{"frame", fw.MaxLen(), fmt.Sprintf("at most the %d bytes that the engine was opened for", most)}
	}
	return fw, nil
}

// fallback says that XDP runs in the stack although the driver was asked first.
func fallback(a *bpf.Attachment, c Config) []Note {
	if a.Note() == "" {
		return nil
	}
	return []Note{{Code: "mode_fallback", Args: []any{c.Port.Name, Generic, Native, a.Note()}}}
}
