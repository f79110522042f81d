package trial

import (
	"math"
	"testing"
	"time"

	"linerate/internal/engine"
	"linerate/internal/pace"
)

// Time off the CPU excuses what was due in it, and nothing else does.
func TestPacingError(t *testing.T) {
	second := int64(time.Second)
	stalls := func(d time.Duration) pace.Stalls { return pace.Stalls{Count: 1, Sum: d, Longest: d} }
	for _, c := range []struct {
		name    string
		queues  []engine.TxQueue
		written uint64
		want    float64
	}{
		{"all sent", []engine.TxQueue{{}}, 100_001, 0},
		{"half a second away", []engine.TxQueue{{Thrown: 50_000, Stalls: stalls(500 * time.Millisecond)}}, 50_001, 0},
		{"away, and all made good", []engine.TxQueue{{Stalls: stalls(10 * time.Millisecond)}}, 100_001, 0},
		{"a slow path, never away", []engine.TxQueue{{Thrown: 72_000}}, 28_001, -0.72},
		{"a slow path, briefly away", []engine.TxQueue{{Thrown: 72_000, Stalls: stalls(10 * time.Millisecond)}}, 28_001, 28_000.0/99_000 - 1},
		{"one of two away", []engine.TxQueue{{}, {Thrown: 5_000, Stalls: stalls(100 * time.Millisecond)}}, 95_001, 0},
	} {
		got := pacingError(c.queues, c.written, second, 100_000)
		if got == nil || math.Abs(*got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if got := pacingError([]engine.TxQueue{{Thrown: 100_000, Stalls: stalls(2 * time.Second)}}, 2, second, 100_000); got != nil {
		t.Errorf("away all the time: %v, want unknown", *got)
	}
}
