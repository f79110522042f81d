package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"linerate/bpf"
	"linerate/internal/frame"
	"linerate/internal/meter"
	"linerate/internal/wire"
	"linerate/xsk"
)

// DefaultBudget is how many frames of one queue may be under way: the UMEM
// working set, the TX ring and what one kick may send. A small set stays in
// the cache: 256 frames send 1.06x (60 B) to 1.14x (1514 B) of what cycling
// through 4096 does on veth.
const DefaultBudget = 256

// stampEvery is how many frames share one clock reading (measurement rule:
// at most 16 when latency is asked).
const stampEvery = 16

// xskSender is the AF_XDP sender: one goroutine, one socket, one UMEM a queue.
type xskSender struct {
	cfg     Config
	pass    *bpf.Pass
	att     *bpf.Attachment
	workers []*xskTx
	granted Granted
}

// OpenXSKSender attaches a pass program to the port (ixgbe gives a zero-copy
// queue only to an interface that runs XDP) and opens one socket a queue.
func OpenXSKSender(cfg Config) (Sender, error) {
	s := &xskSender{cfg: cfg}
	if err := cfg.Port.Do(s.open); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// open runs on a thread in the port's namespace.
func (s *xskSender) open() error {
	var err error
	if s.pass, err = bpf.LoadPass(); err != nil {
		return err
	}
	if s.att, err = attach(s.pass.Program(), s.cfg); err != nil {
		return err
	}
	for _, q := range s.cfg.Queues {
		w, err := newXSKTx(s.cfg, q)
		if err != nil {
			return err
		}
		s.workers = append(s.workers, w)
		for _, n := range append(w.umem.Notes(), w.sock.Notes()...) {
			s.granted.Notes = append(s.granted.Notes, Note{Code: "engine", Args: []any{n}})
		}
	}
	s.granted.XDPMode = xdpMode(s.att)
	s.granted.Mode = socketMode(s.workers[0].sock.ZeroCopied(), s.granted.XDPMode)
	return nil
}

func (s *xskSender) Granted() Granted { return s.granted }

func (s *xskSender) Counters() []*meter.TxCounters {
	out := make([]*meter.TxCounters, len(s.workers))
	for i, w := range s.workers {
		out[i] = w.tx.counters
	}
	return out
}

// Run sends one trial. It ends when the offer is done, when ctx ends, or when
// a worker meets an error it cannot go on from; the result is valid in each
// case, and the error tells the third from the others.
func (s *xskSender) Run(ctx context.Context, o Offer) (TxResult, error) {
	var stop atomic.Bool
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()
	errs := make([]error, len(s.workers))
	var wg sync.WaitGroup
	for i, w := range s.workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[i] = w.run(&stop, o, i, len(s.workers), s.cfg.Fault)
			if errs[i] != nil {
				stop.Store(true)
			}
		}()
	}
	wg.Wait()
	var res TxResult
	for _, w := range s.workers {
		res.add(w.tx)
	}
	return res, errors.Join(errs...)
}

// Close releases sockets, memory and the program. It may be called twice.
func (s *xskSender) Close() error {
	var errs []error
	for _, w := range s.workers {
		errs = append(errs, w.close())
	}
	s.workers = nil
	if s.att != nil {
		errs = append(errs, s.att.Close())
		s.att = nil
	}
	if s.pass != nil {
		errs = append(errs, s.pass.Close())
		s.pass = nil
	}
	return errors.Join(errs...)
}

// xskTx is one sending queue. Every field belongs to the worker's goroutine
// while it runs.
type xskTx struct {
	tx    *txLoop
	umem  *xsk.Umem
	sock  *xsk.Socket
	mem   []byte // the whole UMEM
	chunk uint64
	prev  []wire.BufLen // length last written in each chunk, 0: never
	free  []uint32      // chunks not in the kernel's hands, last in first out
	inval uint64        // tx_invalid_descs at the trial's start
	last  []bool        // chunks that end a frame: a frame completes with its last
	// Frames longer than a chunk are made here first; nil where none are.
	whole    []byte
	wholeLen wire.BufLen
	per      int // chunks the longest frame takes
}

func newXSKTx(cfg Config, q Queue) (*xskTx, error) {
	u, err := xsk.NewUmem(xsk.UmemConfig{Frames: cfg.Budget, Chunk: cfg.Chunk})
	if err != nil {
		return nil, err
	}
	w := &xskTx{umem: u, chunk: uint64(cfg.Chunk), prev: make([]wire.BufLen, cfg.Budget),
		last: make([]bool, cfg.Budget), per: pieces(int(cfg.MaxLen), cfg.Chunk)}
	if w.per > 1 {
		w.whole = make([]byte, w.per*cfg.Chunk)
	}
	w.sock, err = xsk.Open(u, xsk.Config{
		IfIndex: cfg.Port.IfIndex, Queue: q.ID, ZeroCopy: cfg.ZeroCopy,
		TxSize: uint32(cfg.Budget), CompSize: uint32(cfg.Budget),
		TxBudget: cfg.Budget, SG: w.per > 1,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open queue %d of %s: %w", q.ID, cfg.Port.Name, err), u.Close())
	}
	w.mem = u.Data(0, uint32(cfg.Budget*cfg.Chunk))
	for i := range uint32(cfg.Budget) {
		w.free = append(w.free, i)
		w.last[i] = true
	}
	w.tx = newTxLoop(q, cfg, w)
	return w, nil
}

func (w *xskTx) close() error { return errors.Join(w.sock.Close(), w.umem.Close()) }

func (w *xskTx) run(stop *atomic.Bool, o Offer, i, n int, f Fault) error {
	st, err := w.sock.Stats()
	if err != nil {
		return err
	}
	w.inval = st.TxInvalidDescs
	w.wholeLen = 0
	clear(w.prev) // another trial's frames may differ where this one writes nothing
	err = w.tx.run(stop, o, i, n, f)
	if st, serr := w.sock.Stats(); serr == nil {
		w.tx.q.Invalid = st.TxInvalidDescs - w.inval
	}
	return err
}

// room is how many frames can be written now.
func (w *xskTx) room() int { return len(w.free) / w.per }

// put writes n frames, at most room(), and hands them to the kernel's ring.
func (w *xskTx) put(fw *frame.Writer, n int, now int64) (sent int, bytes uint64) {
	if w.whole != nil {
		return w.putPieces(fw, n, now)
	}
	idx, got := w.sock.Tx.Reserve(uint32(n))
	mem, chunk, prev, free := w.mem, w.chunk, w.prev, w.free
	top := len(free)
	for k := uint32(0); k < got; k++ {
		top--
		c := free[top]
		at := uint64(c) * chunk
		size := fw.Next(mem[at:at+chunk], prev[c], uint64(now))
		prev[c] = size
		bytes += uint64(size) + wire.FCSBytes
		w.sock.Tx.Set(idx+k, xsk.Desc{Addr: at, Len: uint32(size)})
	}
	w.free = free[:top]
	w.sock.Tx.Submit(got)
	return int(got), bytes
}

// putEnd writes one END frame.
func (w *xskTx) putEnd(fw *frame.Writer, sent uint64, now int64) (uint64, bool) {
	if w.whole != nil {
		size := fw.End(w.whole, sent, uint64(now))
		w.wholeLen = 0
		return uint64(size) + wire.FCSBytes, w.lay(w.whole[:size])
	}
	idx, got := w.sock.Tx.Reserve(1)
	if got == 0 || len(w.free) == 0 {
		return 0, false
	}
	c := w.free[len(w.free)-1]
	w.free = w.free[:len(w.free)-1]
	at := uint64(c) * w.chunk
	w.last[c] = true
	size := fw.End(w.mem[at:at+w.chunk], sent, uint64(now))
	w.prev[c] = 0
	w.sock.Tx.Set(idx, xsk.Desc{Addr: at, Len: uint32(size)})
	w.sock.Tx.Submit(1)
	return uint64(size) + wire.FCSBytes, true
}

// reap takes chunks back and tells how many frames they complete.
func (w *xskTx) reap() (frames int) {
	idx, n := w.sock.Comp.Peek(uint32(len(w.prev)))
	for k := uint32(0); k < n; k++ {
		c := w.sock.Comp.Get(idx+k) / w.chunk
		if c < uint64(len(w.prev)) && len(w.free) < len(w.prev) {
			w.free = append(w.free, uint32(c))
			if w.last[c] {
				frames++
			}
		}
	}
	w.sock.Comp.Release(n)
	return frames
}

// kick tells the kernel to send.
func (w *xskTx) kick() xsk.KickResult { return w.sock.KickTx() }

func (w *xskTx) needsKick() bool { return w.sock.TxNeedsWakeup() }

func (w *xskTx) held() uint64 { return uint64(w.sock.Tx.Pending()) }
