package engine

import (
	"os"
	"strconv"
	"strings"

	"linerate/internal/pace"
	"linerate/xsk"
)

// delay is how long a thread has been ready to run without a CPU since it
// began, ns; known is false where the kernel keeps no account of it
// (CONFIG_SCHED_INFO).
type delay struct {
	ns    int64
	known bool
}

// runDelay reads it for the calling thread, which must be locked.
func runDelay() delay {
	data, err := os.ReadFile("/proc/thread-self/schedstat")
	if err != nil {
		return delay{}
	}
	ns, ok := parseRunDelay(string(data))
	return delay{ns, ok}
}

// parseRunDelay takes the second of the three numbers: on-CPU time, time on a
// run queue, time slices (Documentation/scheduler/sched-stats.rst).
func parseRunDelay(s string) (ns int64, ok bool) {
	f := strings.Fields(s)
	if len(f) != 3 {
		return 0, false
	}
	ns, err := strconv.ParseInt(f[1], 10, 64)
	return ns, err == nil && ns >= 0
}

// since is the time that has come on top, nil if it is not known.
func (d delay) since() *int64 {
	now := runDelay()
	if !d.known || !now.known {
		return nil
	}
	ns := max(0, now.ns-d.ns)
	return &ns
}

// longTurnNs is a turn that could pass for a stall.
const longTurnNs = int64(pace.StallAfter / 2)

// called notes a turn that spent so long in the kernel that it would pass for
// time off the CPU.
func (l *txLoop) called(from int64) {
	if d := xsk.NowNs() - from; d > longTurnNs {
		l.q.CallsNs += d
	}
}
