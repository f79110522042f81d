package trial

import (
	"math"
	"slices"
	"time"

	"linerate/internal/engine"
)

// afterWarmup is a queue without what happened before its rated part began:
// permits thrown before the first frame too.
func afterWarmup(q engine.TxQueue) engine.TxQueue {
	w := q.Warmup
	q.Thrown -= min(w.Thrown, q.Thrown)
	q.LastThrown -= min(w.Thrown, q.LastThrown)
	q.CallsNs -= w.CallsNs
	q.Stalls.Sum -= w.Stalls.Sum
	q.Stalls.Long -= w.Stalls.Long
	return q
}

// pacingError is pacingErrorOf workers that share pps evenly.
func pacingError(queues []engine.TxQueue, pps float64) *float64 {
	return pacingErrorOf(queues, slices.Repeat([]float64{pps / float64(len(queues))}, len(queues)))
}

// pacingErrorOf is how far the offered rate is off what was asked, relative: the
// larger of what was short of what was due, and of what the time between the
// frames was off. Each worker had its share in frames a second. nil: too few
// frames to tell.
func pacingErrorOf(queues []engine.TxQueue, shares []float64) *float64 {
	var written, due, between, span, expected float64
	for i, q := range queues {
		share := shares[i]
		if share == 0 {
			continue // a replay that has no flow for this worker
		}
		n := float64(q.Rated.Frames)
		written += n
		due += n + float64(q.Thrown+q.Unwritten) - excused(q, share)
		// Permits thrown between two frames are missing, which is what due is for;
		// here the time in which they were due is left out.
		if s := float64(q.Rated.LastNs-q.Rated.FirstNs)/1e9 - float64(q.LastThrown)/share; s > 0 {
			between += n - float64(q.Rated.First)
			span += s
			expected += s * share
		}
	}
	if written < 2 || due <= 0 {
		return nil
	}
	worst := min(0, written/due-1)
	if span > 0 && between > 0 {
		if e := between/expected - 1; math.Abs(e) > math.Abs(worst) {
			worst = e
		}
	}
	return &worst
}

// timingError is how much longer than their own times the frames of a replay
// took, relative, for the worst worker; time in which nobody could send is left
// out. nil: no frame had a time of its own.
func timingError(queues []engine.TxQueue) (worst *float64) {
	for _, q := range queues {
		took := q.Rated.LastNs - q.Rated.FirstNs
		if q.LateNs == 0 || took <= 0 {
			continue
		}
		late := max(0, q.LateNs-int64(away(q)))
		if e := -float64(min(late, took)) / float64(took); worst == nil || e < *worst {
			worst = &e
		}
	}
	return worst
}

// excused is how many of a worker's thrown permits were due while it was away:
// nobody could have sent those. A path that is too slow excuses nothing: a turn
// that takes the kernel long is a gap like any other, and only the time in which
// the thread waited for a CPU meanwhile is none of the path's.
func excused(q engine.TxQueue, share float64) float64 {
	return min(float64(q.Thrown), away(q).Seconds()*share)
}

// away is how long a worker could not send, whatever the path.
func away(q engine.TxQueue) time.Duration {
	t := max(0, q.Stalls.Sum-time.Duration(q.CallsNs)) + q.Stalls.Long
	if q.WaitedNs != nil {
		t += time.Duration(*q.WaitedNs)
	}
	return t
}
