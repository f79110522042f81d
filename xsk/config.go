package xsk

import (
	"time"

	"golang.org/x/sys/unix"
)

// ZeroCopy says who decides between zero-copy and copy mode.
type ZeroCopy int

// The policies. Which mode was granted is read back: Socket.ZeroCopied.
const (
	Prefer  ZeroCopy = iota // zero-copy where the driver has it
	Require                 // zero-copy or an error
	Forbid                  // copy mode
)

// BusyPoll sets the socket's busy polling; the zero value leaves it off.
type BusyPoll struct {
	Usecs  int  // SO_BUSY_POLL, microseconds
	Budget int  // SO_BUSY_POLL_BUDGET, frames per poll
	Prefer bool // SO_PREFER_BUSY_POLL: NAPI left to us
}

// Config describes one socket on one queue. It is checked once, by Open.
type Config struct {
	IfIndex int
	Queue   int
	// TxSize and RxSize are ring sizes in descriptors, powers of two; 0 for
	// no such ring. At least one must be given.
	TxSize, RxSize uint32
	// FillSize and CompSize are those of the buffer rings; 0 takes the size
	// of the RX and TX ring, at least 64: the kernel wants both always.
	FillSize, CompSize uint32
	// Prefill is put into the fill ring before bind: some drivers look at it
	// only then.
	Prefill  []uint64
	ZeroCopy ZeroCopy
	// NoNeedWakeup makes the driver poll on its own and every TX batch need a
	// kick.
	NoNeedWakeup bool
	// SG allows frames of several descriptors (OptContinued), for jumbo.
	SG bool
	// TxBudget is the number of descriptors a copy-mode kick may send, 32 to
	// TxSize; 0 leaves the kernel's 32. Linux before 6.17 has no such option:
	// ignored, with a note.
	TxBudget int
	// SendBuffer is SO_SNDBUF in bytes, which bounds the frames in flight in
	// copy mode; 0 leaves the kernel's default.
	SendBuffer int
	BusyPoll   BusyPoll
	// BindTimeout bounds the wait for a queue whose last socket the kernel is
	// still letting go (10 to 55 ms measured); 0 means 2 s, negative no wait.
	BindTimeout time.Duration
}

const (
	defaultBindTimeout = 2 * time.Second
	leastBufferRing    = 64
)

// complete fills in the defaults and checks the rest.
func (c *Config) complete() error {
	if c.TxSize == 0 && c.RxSize == 0 {
		return &ConfigError{"ring sizes", 0, "a TX or an RX ring"}
	}
	if c.FillSize == 0 {
		c.FillSize = max(c.RxSize, leastBufferRing)
	}
	if c.CompSize == 0 {
		c.CompSize = max(c.TxSize, leastBufferRing)
	}
	if c.BindTimeout == 0 {
		c.BindTimeout = defaultBindTimeout
	}
	for _, size := range []uint32{c.TxSize, c.RxSize, c.FillSize, c.CompSize} {
		if size&(size-1) != 0 || size > 1<<20 {
			return &ConfigError{"ring size", size, "a power of two up to 1048576"}
		}
	}
	switch {
	case c.IfIndex <= 0:
		return &ConfigError{"ifindex", c.IfIndex, "a positive number"}
	case c.Queue < 0 || c.Queue > 1<<16-1:
		return &ConfigError{"queue", c.Queue, "0 to 65535"}
	case uint64(len(c.Prefill)) > uint64(c.FillSize):
		return &ConfigError{"prefill", len(c.Prefill), "no more than the fill ring holds"}
	case c.TxBudget < 0 || c.TxBudget > 0 && c.TxSize == 0:
		return &ConfigError{"tx budget", c.TxBudget, "0, or 32 to the TX ring size"}
	case c.ZeroCopy < Prefer || c.ZeroCopy > Forbid:
		return &ConfigError{"zero copy", int(c.ZeroCopy), "Prefer, Require or Forbid"}
	}
	return nil
}

// bindFlags are those of the first socket of a UMEM; later ones inherit them
// and may pass XDP_SHARED_UMEM only (xsk_bind).
func (c *Config) bindFlags() (flags uint16) {
	switch c.ZeroCopy {
	case Require:
		flags |= unix.XDP_ZEROCOPY
	case Forbid:
		flags |= unix.XDP_COPY
	}
	if !c.NoNeedWakeup {
		flags |= unix.XDP_USE_NEED_WAKEUP
	}
	if c.SG {
		flags |= unix.XDP_USE_SG
	}
	return flags
}
