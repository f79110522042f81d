package trial

import (
	"maps"
	"testing"

	"linerate/internal/engine"
	"linerate/internal/frame"
	"linerate/internal/lab/veth"
	"linerate/internal/nettest"
	"linerate/internal/rss"
	"linerate/internal/wire"
)

// On a veth pair queue i of the sender is queue i of the receiver: predicted,
// seen, and no warning.
func TestVethQueuesArePredicted(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	lab := nettest.Lab(t, veth.Config{Queues: 3})
	s := spec(t, engine.XSK, lab.A(), lab.B())
	s.Tx.Queues = []engine.Queue{{ID: 0, CPU: -1}, {ID: 2, CPU: -1}}
	s.Rx.Queues = []engine.Queue{{ID: 0, CPU: -1}, {ID: 1, CPU: -1}, {ID: 2, CPU: -1}}
	o := run(t, s)
	if len(o.Predicted) != 2 || o.Predicted[0] == 0 || o.Predicted[0]+o.Predicted[2] != 2000 {
		t.Errorf("predicted %v", o.Predicted)
	}
	for _, q := range o.Rx.Queues {
		if q.Taken != o.Predicted[q.Queue.ID] {
			t.Errorf("queue %d took %d, predicted %d", q.Queue.ID, q.Taken, o.Predicted[q.Queue.ID])
		}
	}
	for _, r := range o.Remarks {
		if r.Code == "queue_mismatch" {
			t.Errorf("%v", r)
		}
	}
	box := nettest.Lab(t, veth.Config{Middle: true})
	r := running{spec: spec(t, engine.XSK, box.A(), box.B()), out: &Outcome{}}
	r.out.Tx.Queues = []engine.TxQueue{{Submitted: 5}}
	if p := r.predicted(); p != nil {
		t.Errorf("with another host in between: %v", p)
	}
}

func TestAstray(t *testing.T) {
	type m = map[int]uint64
	for _, c := range []struct {
		predicted, arrived m
		slack              bool
		n                  uint64
		text               string
	}{
		{m{0: 100, 2: 50}, m{0: 100, 1: 0, 2: 50}, false, 0, ""},
		{m{0: 100, 2: 50}, m{0: 90, 1: 0, 2: 50}, false, 0, ""}, // lost, not astray
		{m{0: 100}, m{0: 60, 1: 40}, false, 40, "queue 0 got 60, predicted 100; queue 1 got 40, predicted 0"},
		{m{0: 100, 1: 100}, m{0: 110, 1: 90}, true, 0, ""},
		{m{0: 100, 1: 100}, m{0: 0, 1: 90, 3: 110}, true, 110, "queue 0 got 0, predicted 100; queue 3 got 110, predicted 0"},
	} {
		if n, text := astray(c.predicted, c.arrived, c.slack); n != c.n || text != c.text {
			t.Errorf("%v, %v: %d, %q", c.predicted, c.arrived, n, text)
		}
	}
}

// Every flow of a worker has its share, and a hash sends it to one queue.
func TestPredictRSS(t *testing.T) {
	sizes, err := wire.ParseSizes("64")
	if err != nil {
		t.Fatal(err)
	}
	s := frame.Stream{Stack: frame.Stack{Src: addr("198.18.0.1"), Dst: addr("198.18.0.2"), SrcPort: 1000, DstPort: 7, TTL: 64}, Sizes: sizes, Flows: frame.Flows{Count: 1}}
	key := make([]byte, 40) // only the last bit of the input counts, and it moves the lowest bit of the hash
	key[15] = 1 << 1
	c := &rss.Config{Key: key, Table: []uint32{4, 5}, UDP4: &rss.Fields{Addrs: true, Ports: true}}
	workers := []engine.TxQueue{{Submitted: 101, Refused: 1}, {Submitted: 50}}
	if p := predictRSS(c, s, workers); len(p) != 1 || p[5] != 150 { // port 7 is odd
		t.Errorf("one flow: %v", p)
	}
	s.Stack.DstPort = 8
	if p := predictRSS(c, s, workers); !maps.Equal(p, map[int]uint64{4: 150}) {
		t.Errorf("an even port: %v", p)
	}
	s.Flows = frame.Flows{DstPorts: frame.PortRange{Lo: 8, Hi: 10}} // even and odd by turns: worker 0 has 8 and 10, worker 1 has 9
	if p := predictRSS(c, s, workers); !maps.Equal(p, map[int]uint64{4: 100, 5: 50}) {
		t.Errorf("three flows: %v", p)
	}
	if p := predictRSS(&rss.Config{}, s, workers); p != nil {
		t.Errorf("of a device that says nothing: %v", p)
	}
}
