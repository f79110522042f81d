package xsk

import (
	"time"

	"golang.org/x/sys/unix"
)

// clock is how far Go's monotonic clock is from CLOCK_MONOTONIC. Both are the
// same clock on Linux, Go only hides its zero; one constant joins them. Go
// reads it through the vDSO, unix.ClockGettime is a real system call.
type clock struct {
	start time.Time
	zero  int64 // CLOCK_MONOTONIC at start, ns
}

var monotonic = newClock()

// newClock brackets system-call readings between Go's and keeps the zero that
// all of them allow: each bounds it from both sides, so together they narrow it
// to far less than one reading takes.
func newClock() clock {
	c := clock{start: time.Now()}
	low, high := int64(-1<<62), int64(1<<62)
	for range 200 {
		var ts unix.Timespec
		before := int64(time.Since(c.start))
		if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
			continue
		}
		after := int64(time.Since(c.start))
		low, high = max(low, ts.Nano()-after), min(high, ts.Nano()-before)
	}
	c.zero = low + (high-low)/2
	return c
}

// NowNs is CLOCK_MONOTONIC in nanoseconds, the clock of bpf_ktime_get_ns, read
// without a system call. Any goroutine.
func NowNs() int64 { return monotonic.zero + int64(time.Since(monotonic.start)) }
