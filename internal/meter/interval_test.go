package meter

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func TestBetweenSubtractsEveryField(t *testing.T) {
	var tx0, tx1 TxCounts
	var rx0, rx1 RxCounts
	fill(&tx0, 10)
	fill(&tx1, 1000)
	fill(&rx0, 20)
	fill(&rx1, 3000)
	i := Between(Snapshot{AtNs: 1, Tx: []TxCounts{tx0, tx0}, Rx: []RxCounts{rx0}},
		Snapshot{AtNs: 2, Tx: []TxCounts{tx1, tx1}, Rx: []RxCounts{rx1}})
	if i.Reset {
		t.Error("reset seen")
	}
	each := func(name string, counts any, want uint64) {
		v := reflect.ValueOf(counts)
		for k := range v.NumField() {
			if got := v.Field(k).Uint(); got != want {
				t.Errorf("%s.%s = %d, want %d", name, v.Type().Field(k).Name, got, want)
			}
		}
	}
	each("Tx", i.Tx, 2*990)
	each("TxQueues[1]", i.TxQueues[1], 990)
	each("Rx", i.Rx, 2980)
	each("RxQueues[0]", i.RxQueues[0], 2980)
}

func TestBetweenWrapAndReset(t *testing.T) {
	tests := []struct {
		name  string
		a, b  uint64
		want  uint64
		reset bool
	}{
		{"forward", 5, 8, 3, false},
		{"still", 5, 5, 0, false},
		{"wrap", math.MaxUint64 - 4, 3, 8, false},
		{"reset", 1000, 3, 3, true},
		{"reset to 0", 1000, 0, 0, true},
	}
	for _, tt := range tests {
		i := Between(Snapshot{Rx: []RxCounts{{Taken: tt.a}}}, Snapshot{Rx: []RxCounts{{Taken: tt.b}}})
		if i.Rx.Taken != tt.want || i.Reset != tt.reset {
			t.Errorf("%s: %d, reset %v; want %d, %v", tt.name, i.Rx.Taken, i.Reset, tt.want, tt.reset)
		}
	}
}

func TestBetweenWorkersComeAndGo(t *testing.T) {
	one := Snapshot{Tx: []TxCounts{{Submitted: 5}}}
	two := Snapshot{Tx: []TxCounts{{Submitted: 7}, {Submitted: 9}}}
	if i := Between(one, two); i.Tx.Submitted != 11 || i.Reset {
		t.Errorf("worker more: %d, reset %v", i.Tx.Submitted, i.Reset)
	}
	if i := Between(two, one); !i.Reset {
		t.Error("a worker less is not seen")
	}
}

// Intervals add up to the whole, however they are cut.
func TestIntervalsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.SliceOfN(rapid.Uint64Range(0, 1<<40), 1, 20).Draw(t, "steps")
		start := rapid.Uint64().Draw(t, "start") // so that some wrap
		at := Snapshot{Rx: []RxCounts{{Good: start}}}
		var whole, sum uint64
		for _, d := range steps {
			next := Snapshot{Rx: []RxCounts{{Good: at.Rx[0].Good + d}}}
			i := Between(at, next)
			if i.Reset {
				t.Fatalf("reset seen from %d to %d", at.Rx[0].Good, next.Rx[0].Good)
			}
			sum += i.Rx.Good
			whole += d
			at = next
		}
		if sum != whole {
			t.Fatalf("intervals add up to %d of %d", sum, whole)
		}
	})
}

func TestRates(t *testing.T) {
	// A second of 64 byte frames at 10G: RFC 2544's 14,880,952 frames.
	i := Between(Snapshot{AtNs: 1e9, Tx: []TxCounts{{}}, Rx: []RxCounts{{}}}, Snapshot{AtNs: 3e9,
		Tx: []TxCounts{{Submitted: 2 * 14880952, Bytes: 2 * 14880952 * 64}},
		Rx: []RxCounts{{Taken: 200, Good: 3, Bytes: 200 * 1518}}})
	tx, ok := i.TxRates()
	if !ok || tx.PPS != 14880952 || tx.L2BitsPerSec != 14880952*512 || tx.L1BitsPerSec != 14880952*672 {
		t.Errorf("tx rates %+v, %v", tx, ok)
	}
	rx, ok := i.RxRates()
	if !ok || rx.PPS != 100 || rx.L2BitsPerSec != 100*1518*8 || rx.L1BitsPerSec != 100*1538*8 {
		t.Errorf("rx rates %+v, %v", rx, ok)
	}
	if _, ok := Between(Snapshot{AtNs: 5}, Snapshot{AtNs: 5}).TxRates(); ok {
		t.Error("an interval without duration has a rate")
	}
}

// What the device refuses was not sent, and it may refuse what was submitted in
// the interval before.
func TestRefusedIsNotSent(t *testing.T) {
	at := func(s int64, submitted, refused uint64) Snapshot {
		return Snapshot{AtNs: s * 1e9, Tx: []TxCounts{{Submitted: submitted, Refused: refused, Bytes: 100 * submitted}}}
	}
	for _, c := range []struct {
		submitted, refused, sent uint64
	}{{100, 0, 100}, {100, 75, 25}, {100, 100, 0}, {0, 50, 0}, {10, 50, 0}} {
		i := Between(at(1, 1000, 10), at(2, 1000+c.submitted, 10+c.refused))
		r, ok := i.TxRates()
		if i.Sent() != c.sent || !ok || float64(r.PPS) != float64(c.sent) || float64(r.L2BitsPerSec) != float64(c.sent)*800 {
			t.Errorf("%d submitted, %d refused: sent %d, %+v", c.submitted, c.refused, i.Sent(), r)
		}
	}
}

func TestTakeReadsWorkers(t *testing.T) {
	var tx TxCounters
	var rx RxCounters
	tx.Publish(&TxCounts{Submitted: 3})
	rx.Publish(&RxCounts{Good: 2})
	s := Take(42, []*TxCounters{nil, &tx}, []*RxCounters{&rx, nil})
	if s.AtNs != 42 || s.Tx[1].Submitted != 3 || s.Rx[0].Good != 2 || s.Tx[0] != (TxCounts{}) || s.Rx[1] != (RxCounts{}) {
		t.Errorf("snapshot %+v", s)
	}
}
