package trial

import (
	"errors"
	"fmt"
	"time"

	"linerate/bpf"
	"linerate/internal/engine"
	"linerate/internal/nic"
	"linerate/xsk"
)

// snapshot is every counter outside the sockets, read at one moment. The
// baselines are taken after the attach: an attach re-makes rings and resets
// counters on most drivers.
type snapshot struct {
	atNs     int64
	tx, rx   nic.Counters
	far      nic.Counters         // of the reflector
	turned   engine.ProgramCounts // by it
	program  engine.ProgramCounts
	trace    []bpf.TraceCount
	answered uint64 // by the sender's port
	cpu      cpuTimes
}

// snapshot reads the counters, each that can be read: a device may be gone, and
// its counters with it, while the program's and the socket's stand.
func (r *running) snapshot() (snapshot, error) {
	// What else is sent on the port comes first, here and by the tracepoints: a
	// frame that goes out behind it moves the device's counter, and the ports are
	// not at rest.
	s := snapshot{atNs: xsk.NowNs(), answered: r.answered()}
	var errs []error
	failed := func(what, of string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", what, of, err))
		}
	}
	var err error
	if r.trace != nil {
		s.trace, err = r.trace.Counters()
		failed("read", "the tracepoints", err)
	}
	if r.spec.Tx != nil {
		s.tx, err = r.spec.Tx.Port.Counters()
		failed("read counters of", r.spec.Tx.Endpoint, err)
	}
	if r.spec.Rx != nil {
		s.rx, err = r.spec.Rx.Port.Counters()
		failed("read counters of", r.spec.Rx.Endpoint, err)
		s.program, err = r.rx.Program()
		failed("read the program on", r.spec.Rx.Endpoint, err)
	}
	if r.reflector != nil {
		s.far, err = r.spec.Reflector.Port.Counters()
		failed("read counters of", r.spec.Reflector.Endpoint, err)
		s.turned, err = r.reflector.Program()
		failed("read the program on", r.spec.Reflector.Endpoint, err)
	}
	s.cpu = readCPU()
	return s, errors.Join(errs...)
}

// rest reads the counters until two readings in a row agree: they are read one
// after the other, so only ports at rest give one consistent picture. when is
// for the reader of a drift.
func (r *running) rest(when string) (snapshot, error) {
	before, err := r.snapshot()
	moved := uint64(0)
	for range restTries {
		now, nowErr := r.snapshot()
		moved = now.frames() - min(before.frames(), now.frames())
		before, err = now, nowErr
		if moved == 0 {
			return before, err
		}
		time.Sleep(restPause)
	}
	r.out.drift = append(r.out.drift, drift{when, moved})
	return before, err
}

// drift is a time at which no consistent picture was to be had: so many frames
// went by between two readings in a row.
type drift struct {
	when   string
	frames uint64
}

const (
	restTries = 20
	restPause = 5 * time.Millisecond
)

// frames adds up the counters that every frame moves.
func (s snapshot) frames() (n uint64) {
	for _, c := range []nic.Reading{s.tx.DeviceTx(), s.rx.DeviceRx()} {
		if c.Frames != nil {
			n += *c.Frames
		}
	}
	for _, q := range s.program.Seen {
		n += q
	}
	return n
}

// since is now - before for counters that can be reset under us: a counter
// that went backwards is unknown, not huge.
func since(now, before uint64) *uint64 {
	if now < before {
		return nil
	}
	d := now - before
	return &d
}

// sinceQueues is since over a map by queue.
func sinceQueues(now, before map[int]uint64) map[int]*uint64 {
	out := make(map[int]*uint64, len(now))
	for q, n := range now {
		out[q] = since(n, before[q])
	}
	return out
}

// traced is what one tracepoint counted on a port during the trial, by code:
// frames sent and dropped.
func (r *running) traced(e *End, point bpf.Point) map[string]bpf.TraceCount {
	out := map[string]bpf.TraceCount{}
	at := bpf.Target{Ifindex: e.Port.Index, Netns: uint32(e.Port.NS.Inum())}
	for _, c := range r.last.trace {
		if c.Target == at && c.Point == point {
			out[c.CodeName] = c
		}
	}
	for _, b := range r.base.trace {
		c, ok := out[b.CodeName]
		if !ok || b.Target != at || b.Point != point {
			continue
		}
		c.Sent -= min(c.Sent, b.Sent)
		c.Dropped -= min(c.Dropped, b.Dropped)
		out[b.CodeName] = c
	}
	return out
}
