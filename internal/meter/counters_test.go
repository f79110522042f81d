package meter

import (
	"reflect"
	"sync"
	"testing"
)

// fill sets every field of a struct of uint64 to a value of its own, so that a
// field forgotten anywhere is seen.
func fill(counts any, base uint64) {
	v := reflect.ValueOf(counts).Elem()
	for i := range v.NumField() {
		v.Field(i).SetUint(base + uint64(i))
	}
}

func TestPublishRead(t *testing.T) {
	var tx TxCounts
	fill(&tx, 100)
	var txc TxCounters
	txc.Publish(&tx)
	if got := txc.Read(); got != tx {
		t.Errorf("tx: read %+v, published %+v", got, tx)
	}
	fill(&tx, 0) // going back is published too
	txc.Publish(&tx)
	if got := txc.Read(); got != tx {
		t.Errorf("tx after reset: read %+v, published %+v", got, tx)
	}
	var rx RxCounts
	fill(&rx, 7)
	var rxc RxCounters
	rxc.Publish(&rx)
	if got := rxc.Read(); got != rx {
		t.Errorf("rx: read %+v, published %+v", got, rx)
	}
}

func TestReaderSeesStagesInOrder(t *testing.T) {
	var c TxCounters
	var wg sync.WaitGroup
	const batches = 300_000
	wg.Go(func() {
		var n TxCounts
		for range batches {
			n.Offered += 64
			n.Submitted += 64
			n.Completed += 64
			c.Publish(&n)
		}
	})
	for {
		n := c.Read()
		if n.Completed > n.Submitted || n.Submitted > n.Offered {
			t.Errorf("more left a stage than entered: %+v", n)
			break
		}
		if n.Completed == 64*batches {
			break
		}
	}
	wg.Wait()
}

func TestCountersKeepOffEachOthersLines(t *testing.T) {
	c := reflect.TypeFor[TxCounters]()
	first, _ := c.FieldByName("offered")
	end, _ := c.FieldByName("offCPUNs")
	before, after := first.Offset, c.Size()-end.Offset-end.Type.Size()
	if before < cacheLine || after < cacheLine {
		t.Errorf("%d bytes before and %d after the counters, want %d", before, after, cacheLine)
	}
}

func TestPublishDoesNotAllocate(t *testing.T) {
	var c TxCounters
	var r RxCounters
	tx, rx := &TxCounts{}, &RxCounts{}
	if n := testing.AllocsPerRun(100, func() {
		tx.Submitted++
		rx.Good++
		c.Publish(tx)
		r.Publish(rx)
		_ = c.Read()
	}); n != 0 {
		t.Errorf("%v allocations per batch", n)
	}
}
