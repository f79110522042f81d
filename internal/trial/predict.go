package trial

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"linerate/internal/engine"
	"linerate/internal/frame"
	"linerate/internal/rss"
)

// predicted is how many frames each receive queue should have got, nil where
// nobody can tell. On a veth pair what one queue sends, the queue of that number
// receives (veth_xmit, drivers/net/veth.c; skb_set_queue_mapping in
// net/xdp/xsk.c); elsewhere the device's own hash decides.
func (r *running) predicted() map[int]uint64 {
	if !r.both() || len(r.out.Tx.Queues) == 0 {
		return nil
	}
	tx, rx := r.spec.Tx.Port, r.spec.Rx.Port
	if tx.Driver == "veth" && rx.Driver == "veth" {
		if tx.PeerIndex != rx.Index || rx.PeerIndex != tx.Index || r.routed() {
			return nil // something in between picks the queue anew
		}
		out := map[int]uint64{}
		for _, q := range r.out.Tx.Queues {
			out[q.Queue.ID] += sentBy(q)
		}
		return out
	}
	c, err := rx.RSS()
	if err != nil || c == nil {
		return nil
	}
	return predictRSS(c, r.spec.Stream, r.out.Tx.Queues)
}

// sentBy is what of a queue's frames left.
func sentBy(q engine.TxQueue) uint64 {
	return q.Submitted - min(q.Submitted, q.Held+q.Invalid+q.Refused)
}

// predictRSS spreads the frames of each worker evenly over its flows, as the
// writer does, and each flow over the device's queues.
func predictRSS(c *rss.Config, s frame.Stream, workers []engine.TxQueue) map[int]uint64 {
	var queues []int
	known := true
	s.EachFlow(func(src, dst netip.AddrPort) bool {
		q, ok := c.Queue(src, dst)
		queues, known = append(queues, q), known && ok
		return known
	})
	if !known || len(queues) == 0 {
		return nil
	}
	out := map[int]uint64{}
	for w, worker := range workers {
		var own []int
		for k := w % len(queues); k < len(queues); k += len(workers) {
			own = append(own, queues[k])
		}
		n := sentBy(worker)
		for i, q := range own {
			out[q] += n*uint64(i+1)/uint64(len(own)) - n*uint64(i)/uint64(len(own))
		}
	}
	return out
}

// arrived is how many of the run's frames the program saw on each receive queue.
func (r *running) arrived() map[int]uint64 {
	now, before := r.last.program, r.base.program
	out := map[int]uint64{}
	for q := range now.Seen {
		n := now.Redirected[q] - before.Redirected[q] + now.Accounted[q] - before.Accounted[q]
		for reason, frames := range now.Passed[q] {
			if ours(reason) {
				n += frames - before.Passed[q][reason]
			}
		}
		out[q] = n
	}
	return out
}

// astray counts the frames on queues where fewer were predicted, and says where
// they went instead of where. With slack, only queues where none were predicted
// count: a hash predicts shares.
func astray(predicted, arrived map[int]uint64, slack bool) (n uint64, text string) {
	var parts []string
	all := maps.Clone(predicted)
	maps.Copy(all, arrived)
	for _, q := range slices.Sorted(maps.Keys(all)) {
		p, a := predicted[q], arrived[q]
		if a > p && (!slack || p == 0) {
			n += a - p
		}
		if a != p && (!slack || p == 0 || a == 0) {
			parts = append(parts, fmt.Sprintf("queue %d got %d, predicted %d", q, a, p))
		}
	}
	if n == 0 {
		return 0, ""
	}
	return n, strings.Join(parts, "; ")
}

// remarkQueues compares the receive queues with the prediction.
func (r *running) remarkQueues() {
	r.out.Predicted = r.predicted()
	if r.out.Predicted == nil {
		return
	}
	if n, where := astray(r.out.Predicted, r.arrived(), r.spec.Rx.Port.Driver != "veth"); n > 0 {
		r.out.warn("queue_mismatch", n, r.spec.Rx.Endpoint, where)
	}
}
