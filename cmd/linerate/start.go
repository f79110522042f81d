package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errNotTogether is why a trial did not start: another that should start with it
// could not.
var errNotTogether = errors.New("another trial that should start at the same time could not")

// startMargin is what the slowest trial may take to hear of the common start.
const startMargin = 20 * time.Millisecond

// start lets several trials start at the same time. Its methods are safe for
// concurrent use.
type start struct {
	mu       sync.Mutex
	missing  int
	latestNs int64
	broken   bool
	done     chan struct{} // closed once all are ready, or one is gone
}

func newStart(trials int) *start { return &start{missing: trials, done: make(chan struct{})} }

// begin waits until every trial is ready and gives all of them the same time,
// which none of them finds too early.
func (s *start) begin(ctx context.Context, earliestNs int64) (startNs int64, err error) {
	s.mu.Lock()
	s.latestNs = max(s.latestNs, earliestNs)
	s.missing--
	if s.missing == 0 {
		close(s.done)
	}
	s.mu.Unlock()
	select {
	case <-s.done:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return 0, errNotTogether
	}
	return s.latestNs + int64(startMargin), nil
}

// leave says that a trial has ended. If that was before all were ready, they do
// not start.
func (s *start) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.missing > 0 && !s.broken {
		s.broken = true
		s.missing = -1
		close(s.done)
	}
}
