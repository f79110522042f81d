package trial

import (
	"math"
	"testing"
	"time"

	"linerate/internal/engine"
	"linerate/internal/pace"
)

// sender is a queue that had one second and so many frames due, of which so many
// were written.
func sender(due, written uint64) engine.TxQueue {
	thrown := due - written
	return engine.TxQueue{Thrown: thrown, LastThrown: thrown,
		Rated: engine.Rated{FirstNs: 1, LastNs: 1 + int64(time.Second) - int64(time.Second)/int64(due), First: 1, Frames: written}}
}

// stalled adds gaps, of which so much was spent in long turns, and time without
// a CPU.
func stalled(q engine.TxQueue, sum, calls, waited time.Duration) engine.TxQueue {
	q.Stalls, q.CallsNs = pace.Stalls{Count: 1, Sum: sum, Longest: sum}, int64(calls)
	n := int64(waited)
	q.WaitedNs = &n
	return q
}

// Time off the CPU excuses what was due in it, and nothing else does.
func TestPacingError(t *testing.T) {
	const ms = time.Millisecond
	stopped := stalled(sender(100_000, 90_000), 100*ms, 100*ms, 0)
	stopped.Stalls.Long = 100 * ms
	fast := sender(100_000, 100_000)
	fast.Rated.LastNs = int64(time.Second) / 2
	died := sender(100_000, 10_000)
	died.LastThrown, died.Rated.LastNs = 0, int64(100*ms)-int64(10*time.Microsecond)+1
	full := sender(100_000, 100_000)
	full.Rated.Frames, full.Unwritten = 90_000, 10_000
	for _, c := range []struct {
		name   string
		queues []engine.TxQueue
		want   float64
	}{
		{"all sent", []engine.TxQueue{sender(100_000, 100_000)}, 0},
		{"half a second away", []engine.TxQueue{stalled(sender(100_000, 50_000), 500*ms, 0, 0)}, 0},
		{"no CPU in long turns", []engine.TxQueue{stalled(sender(100_000, 50_000), 500*ms, 500*ms, 500*ms)}, 0},
		{"stopped in a long turn", []engine.TxQueue{stopped}, 0},
		{"away, and all made good", []engine.TxQueue{stalled(sender(100_000, 100_000), 10*ms, 0, 10*ms)}, 0},
		{"a slow path, never away", []engine.TxQueue{sender(100_000, 28_000)}, -0.72},
		{"a slow path, every turn a stall", []engine.TxQueue{stalled(sender(100_000, 28_000), 900*ms, 900*ms, 0)}, -0.72},
		{"a slow path, briefly away", []engine.TxQueue{stalled(sender(100_000, 28_000), 910*ms, 900*ms, 0)}, 28_000.0/99_000 - 1},
		{"a ring that took fewer", []engine.TxQueue{full}, -0.1},
		{"one of two away", []engine.TxQueue{sender(100_000, 100_000), stalled(sender(100_000, 90_000), 100*ms, 0, 0)}, 0},
		{"one of two died", []engine.TxQueue{sender(100_000, 100_000), died}, -0.45},
		{"too fast", []engine.TxQueue{fast}, 1},
	} {
		got := pacingError(c.queues, 100_000*float64(len(c.queues)))
		if got == nil || math.Abs(*got-c.want) > 3e-5 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if got := pacingError([]engine.TxQueue{{Thrown: 5}}, 5); got != nil {
		t.Errorf("no frame: %v, want unknown", *got)
	}
}

// What was thrown and waited for in the warm-up excuses nothing behind it.
func TestAfterWarmup(t *testing.T) {
	q := stalled(sender(100_000, 50_000), 500*time.Millisecond, 20*time.Millisecond, 0)
	q.Stalls.Long = 300 * time.Millisecond
	q.Warmup = engine.Warmup{Thrown: 10_000, CallsNs: int64(20 * time.Millisecond),
		Stalls: pace.Stalls{Sum: 400 * time.Millisecond, Long: 300 * time.Millisecond}}
	q = afterWarmup(q)
	if q.Thrown != 40_000 || q.LastThrown != 40_000 || q.CallsNs != 0 || q.Stalls.Sum != 100*time.Millisecond || q.Stalls.Long != 0 {
		t.Errorf("%+v", q)
	}
}
