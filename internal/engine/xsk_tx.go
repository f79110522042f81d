package engine

import (
	"context"
	"errors"
	"fmt"
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

// kernelBudget is what a kick sends where the kernel takes no other budget
// (TX_BATCH_SIZE, net/xdp/xsk.c).
const kernelBudget = 32

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
	meters  []*meter.TxCounters
}

// OpenXSKSender attaches a pass program to the port (ixgbe gives a zero-copy
// queue only to an interface that runs XDP) and opens one socket a queue.
func OpenXSKSender(cfg Config) (Sender, error) {
	if err := cfg.validateTx(); err != nil {
		return nil, err
	}
	s := &xskSender{cfg: cfg}
	if err := cfg.Port.Do(s.open); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// open runs on a thread in the port's namespace.
func (s *xskSender) open() error {
	mode, err := s.program()
	if err != nil {
		return err
	}
	for _, q := range s.cfg.Queues {
		w, err := newXSKTx(s.cfg, q)
		if err != nil {
			return err
		}
		s.workers = append(s.workers, w)
		s.meters = append(s.meters, w.tx.counters)
	}
	if s.workers[0].sock.Config().TxBudget == 0 {
		s.granted.Notes = append(s.granted.Notes, Note{Code: "tx_budget_unsupported", Args: []any{kernelBudget}})
	}
	s.granted.XDPMode = mode
	s.granted.Mode = socketMode(s.workers[0].sock.ZeroCopied(), s.granted.XDPMode)
	return nil
}

// program attaches the pass program, unless the port has one of ours, and gives
// the mode in which a program runs there.
func (s *xskSender) program() (XDPMode, error) {
	var err error
	if s.cfg.Shared {
		mode, id, err := bpf.ReadXDP(s.cfg.Port.IfIndex)
		switch {
		case err != nil:
			return "", err
		case id == 0:
			return "", fmt.Errorf("send on %s: the receiver there has no program on it", s.cfg.Port.Name)
		case mode == bpf.ModeGeneric:
			return Generic, nil
		}
		return Native, nil
	}
	if s.pass, err = bpf.LoadPass(); err != nil {
		return "", err
	}
	if s.att, err = attach(s.pass.Program(), s.cfg); err != nil {
		return "", err
	}
	s.granted.Notes = fallback(s.att, s.cfg)
	return xdpMode(s.att), nil
}

func (s *xskSender) Granted() Granted { return s.granted }

func (s *xskSender) Counters() []*meter.TxCounters { return s.meters }

// Run sends one trial. It ends when the offer is done, when ctx ends, or when
// a worker meets an error it cannot go on from; the result is valid in each
// case, and the error tells the third from the others.
func (s *xskSender) Run(ctx context.Context, o Offer) (TxResult, error) {
	if err := o.validate(len(s.workers)); err != nil {
		return TxResult{}, err
	}
	var stop atomic.Bool
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()
	var loops []*txLoop
	for _, w := range s.workers {
		loops = append(loops, w.tx)
	}
	err := together(len(loops), &stop, func(i int) error { return loops[i].run(&stop, o, i, len(loops), s.cfg.Fault) })
	return txResult(loops), err
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

// What a chunk is at.
const (
	ours  = iota // free, or being written
	piece        // in the kernel's hands, and its frame goes on in another
	last         // in the kernel's hands, and ends a frame: the frame completes with it
)

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
	state []uint8       // of each chunk
	per   int           // chunks the longest frame takes
	// Where frames take several chunks they are made here first; else nil.
	made    []byte
	madeLen wire.BufLen
	laid    []uint8 // chunks of the frames laid last, a ring
	laidAt  int
}

// layOut prepares a queue's chunks; all are free.
func layOut(cfg Config) *xskTx {
	w := &xskTx{chunk: uint64(cfg.Chunk), prev: make([]wire.BufLen, cfg.Budget),
		state: make([]uint8, cfg.Budget), per: pieces(int(cfg.MaxLen), cfg.Chunk)}
	if w.per > 1 {
		w.made = make([]byte, w.per*cfg.Chunk)
		w.laid = make([]uint8, cfg.Budget)
	}
	for i := range uint32(cfg.Budget) {
		w.free = append(w.free, i)
	}
	return w
}

func newXSKTx(cfg Config, q Queue) (*xskTx, error) {
	u, err := xsk.NewUmem(xsk.UmemConfig{Frames: cfg.Budget, Chunk: cfg.Chunk})
	if err != nil {
		return nil, err
	}
	w := layOut(cfg)
	w.umem = u
	w.sock, err = xsk.Open(u, xsk.Config{
		IfIndex: cfg.Port.IfIndex, Queue: q.ID, ZeroCopy: cfg.ZeroCopy,
		TxSize: uint32(cfg.Budget), CompSize: uint32(cfg.Budget),
		TxBudget: cfg.Budget, SG: w.per > 1,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open queue %d of %s: %w", q.ID, cfg.Port.Name, err), u.Close())
	}
	w.mem = u.Data(0, uint32(cfg.Budget*cfg.Chunk))
	w.tx = newTxLoop(q, cfg, w)
	return w, nil
}

func (w *xskTx) close() error { return errors.Join(w.sock.Close(), w.umem.Close()) }

// fresh: another trial's frames may differ where this one writes nothing.
func (w *xskTx) fresh() {
	w.madeLen = 0
	clear(w.prev)
}

func (w *xskTx) longest() wire.BufLen { return wire.BufLen(w.per) * wire.BufLen(w.chunk) }

func (w *xskTx) invalid() (uint64, error) {
	st, err := w.sock.Stats()
	return st.TxInvalidDescs, err
}

// room is how many frames can be written now. The TX ring has an entry for
// every chunk, so it has room wherever there are chunks.
func (w *xskTx) room() int { return len(w.free) / w.per }

// put writes n frames, or as many as there is room for, and hands them to the
// kernel's ring.
func (w *xskTx) put(fw *frame.Writer, n int, now int64) (sent int, bytes uint64) {
	if w.made != nil {
		return w.putPieces(fw, n, now)
	}
	idx, got := w.sock.Tx.Reserve(uint32(min(n, len(w.free))))
	mem, chunk, prev, free, state := w.mem, w.chunk, w.prev, w.free, w.state
	top := len(free)
	for k := uint32(0); k < got; k++ {
		top--
		c := free[top]
		at := uint64(c) * chunk
		size := fw.Next(mem[at:at+chunk], prev[c], uint64(now))
		prev[c] = size
		state[c] = last
		bytes += uint64(size) + wire.FCSBytes
		w.sock.Tx.Set(idx+k, xsk.Desc{Addr: at, Len: uint32(size)})
	}
	w.free = free[:top]
	w.sock.Tx.Submit(got)
	return int(got), bytes
}

// putEnd writes one END frame.
func (w *xskTx) putEnd(fw *frame.Writer, sent uint64, now int64) (uint64, bool) {
	idx, ok := w.reserve(w.per)
	if !ok {
		return 0, false
	}
	if w.made != nil {
		size := fw.End(w.made, sent, uint64(now))
		w.madeLen = 0
		w.lay(idx, w.made[:size])
		return uint64(size) + wire.FCSBytes, true
	}
	c := w.free[len(w.free)-1]
	w.free = w.free[:len(w.free)-1]
	at := uint64(c) * w.chunk
	size := fw.End(w.mem[at:at+w.chunk], sent, uint64(now))
	w.prev[c] = 0
	w.state[c] = last
	w.sock.Tx.Set(idx, xsk.Desc{Addr: at, Len: uint32(size)})
	w.sock.Tx.Submit(1)
	return uint64(size) + wire.FCSBytes, true
}

// reap takes chunks back and tells how many frames they complete. An address
// that the kernel was not given, or gives back twice, is passed over: its chunk
// would be written while it is sent.
func (w *xskTx) reap() (frames int) {
	idx, n := w.sock.Comp.Peek(uint32(len(w.state)))
	for k := uint32(0); k < n; k++ {
		c := w.sock.Comp.Get(idx+k) / w.chunk
		if c >= uint64(len(w.state)) || w.state[c] == ours {
			continue
		}
		if w.state[c] == last {
			frames++
		}
		w.state[c] = ours
		w.free = append(w.free, uint32(c))
	}
	w.sock.Comp.Release(n)
	return frames
}

// kick tells the kernel to send.
func (w *xskTx) kick() xsk.KickResult { return w.sock.KickTx() }

func (w *xskTx) needsKick() bool { return w.sock.TxNeedsWakeup() }

func (w *xskTx) held() uint64 {
	n := w.sock.Tx.Pending()
	if w.made == nil {
		return uint64(n)
	}
	return w.heldFrames(int(n))
}
