package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"linerate/bpf"
	"linerate/internal/meter"
)

// childPatience bounds how long a child may take to obey.
const childPatience = 5 * time.Second

// A child at work that has said nothing at so many looks in a row is taken for
// dead. Looks are counted and not time: where the parent was stopped too, the
// child's reports are there at the next look.
const silences = 10

// Errors of an asavie child.
var (
	ErrChildGone   = errors.New("the asavie engine ended without a result")
	ErrChildSilent = errors.New("the asavie engine does not answer")
)

// asavieProcess is the parent's end of an asavie child. Its methods belong to
// the goroutine that runs the trial; the counters are anybody's.
type asavieProcess struct {
	cmd      *exec.Cmd
	in, out  *os.File // pipes
	orders   *json.Encoder
	reports  chan childReport // closed when the child is gone
	tx       []*meter.TxCounters
	rx       []*meter.RxCounters
	ended    atomic.Bool
	heard    atomic.Uint64 // reports so far
	mode     string
	patience time.Duration // how long it may be silent, or take to end
	once     sync.Once
	err      error
}

// startAsavie starts a child inside the port's namespace and has it open its
// sockets. sockets is the XSKMAP's file for a receiver, else nil.
func startAsavie(c Config, receive bool, sockets *os.File) (*asavieProcess, error) {
	p := &asavieProcess{cmd: exec.Command("/proc/self/exe", ChildCommand), reports: make(chan childReport), patience: childPatience}
	for range c.Queues {
		if receive {
			p.rx = append(p.rx, new(meter.RxCounters))
		} else {
			p.tx = append(p.tx, new(meter.TxCounters))
		}
	}
	p.cmd.Stderr = os.Stderr
	// A child outlives neither its parent nor the parent's terminal signals:
	// those are for the parent, which ends the trial in order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if sockets != nil {
		p.cmd.ExtraFiles = []*os.File{sockets}
	}
	if err := p.start(c); err != nil {
		return nil, err
	}
	open := childOpen{IfIndex: c.Port.IfIndex, Name: c.Port.Name, Queues: c.Queues, ZeroCopy: c.ZeroCopy,
		Chunk: c.Chunk, Batch: c.Batch, Budget: c.Budget, RingSize: c.RingSize, Fault: c.Fault, Receive: receive}
	r, err := p.ask(childOrder{Open: &open})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the asavie engine: %w", err), p.Close())
	}
	p.mode = r.Mode
	return p, nil
}

// start forks on a thread in the namespace: the child inherits it.
func (p *asavieProcess) start(c Config) error {
	childIn, in, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start the asavie engine: %w", err)
	}
	defer childIn.Close()
	out, childOut, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start the asavie engine: %w", errors.Join(err, in.Close()))
	}
	defer childOut.Close()
	p.cmd.Stdin, p.cmd.Stdout = childIn, childOut
	if err := c.Port.Do(p.cmd.Start); err != nil {
		return fmt.Errorf("start the asavie engine: %w", errors.Join(err, in.Close(), out.Close()))
	}
	p.in, p.out, p.orders = in, out, json.NewEncoder(in)
	go p.listen()
	return nil
}

// listen takes in what the child says: counters are published, the rest goes
// to whoever waits for it.
func (p *asavieProcess) listen() {
	defer close(p.reports)
	in := json.NewDecoder(p.out)
	for {
		var r childReport
		if in.Decode(&r) != nil {
			return
		}
		p.heard.Add(1)
		for i := range min(len(r.Tx), len(p.tx)) {
			p.tx[i].Publish(&r.Tx[i])
		}
		for i := range min(len(r.Rx), len(p.rx)) {
			p.rx[i].Publish(&r.Rx[i])
		}
		p.ended.Store(r.Ended)
		if r.Ready || r.Err != "" || r.TxDone != nil || r.RxDone != nil {
			p.reports <- r
		}
	}
}

// ask gives an order and waits for the answer.
func (p *asavieProcess) ask(o childOrder) (childReport, error) {
	if err := p.order(o); err != nil {
		return childReport{}, err
	}
	late := time.NewTimer(p.patience)
	defer late.Stop()
	select {
	case r, ok := <-p.reports:
		return p.answer(r, ok)
	case <-late.C:
		return childReport{}, p.giveUp()
	}
}

// order gives an order. A child that does not read is not waited for.
func (p *asavieProcess) order(o childOrder) error {
	_ = p.in.SetWriteDeadline(time.Now().Add(p.patience)) // a pipe has deadlines, and a closed one says so below
	if err := p.orders.Encode(o); err != nil {
		return errors.Join(ErrChildGone, err)
	}
	return nil
}

// answer is what was received, and an error if that was nothing.
func (p *asavieProcess) answer(r childReport, ok bool) (childReport, error) {
	switch {
	case !ok:
		return r, ErrChildGone
	case r.Err != "":
		return r, errors.New(r.Err)
	}
	return r, nil
}

// giveUp ends a child that says nothing: what it might say later would be taken
// for the answer to another order.
func (p *asavieProcess) giveUp() error {
	return errors.Join(ErrChildSilent, p.cmd.Process.Kill())
}

// trial gives an order for a trial and, when ctx ends, the order to stop. A
// child at work tells its counters: one that has gone silent hangs.
func (p *asavieProcess) trial(ctx context.Context, o childOrder) (childReport, error) {
	if err := p.order(o); err != nil {
		return childReport{}, err
	}
	look := time.NewTicker(p.patience / silences)
	defer look.Stop()
	stop := ctx.Done()
	for before, silent := p.heard.Load(), 0; silent < silences; {
		select {
		case r, ok := <-p.reports:
			return p.answer(r, ok)
		case <-stop:
			stop = nil
			if err := p.order(childOrder{Stop: true}); err != nil {
				return childReport{}, err
			}
		case <-look.C:
			silent++
			if now := p.heard.Load(); now != before {
				before, silent = now, 0
			}
		}
	}
	return childReport{}, p.giveUp()
}

// Close ends the child: first by closing its input, then by force.
func (p *asavieProcess) Close() error {
	p.once.Do(func() {
		p.in.Close()
		kill := time.AfterFunc(p.patience, func() { _ = p.cmd.Process.Kill() })
		defer kill.Stop()
		for range p.reports { // until the child closes its output
		}
		p.out.Close()
		if err := p.cmd.Wait(); err != nil {
			p.err = fmt.Errorf("end the asavie engine: %w", err)
		}
	})
	return p.err
}

// asavieSender sends with the library, in a child process.
type asavieSender struct {
	*asavieProcess
	pass    *bpf.Pass
	att     *bpf.Attachment
	granted Granted
}

// OpenAsavieSender opens the library's sockets for sending, in a process of
// their own.
func OpenAsavieSender(c Config) (Sender, error) {
	if err := c.validateTx(); err != nil {
		return nil, err
	}
	s := &asavieSender{}
	err := c.Port.Do(func() (err error) {
		if s.pass, err = bpf.LoadPass(); err != nil {
			return err
		}
		s.att, err = attach(s.pass.Program(), c)
		return err
	})
	if err == nil {
		s.asavieProcess, err = startAsavie(c, false, nil)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.granted = s.grantedBy(s.att, c)
	return s, nil
}

// grantedBy joins what the child and the attachment say.
func (p *asavieProcess) grantedBy(a *bpf.Attachment, c Config) Granted {
	m := xdpMode(a)
	return Granted{Mode: socketMode(p.mode == zeroCopied, m), XDPMode: m, Notes: fallback(a, c)}
}

func (s *asavieSender) Granted() Granted { return s.granted }

func (s *asavieSender) Counters() []*meter.TxCounters { return s.tx }

// Run sends one trial in the child.
func (s *asavieSender) Run(ctx context.Context, o Offer) (TxResult, error) {
	if err := o.validate(len(s.tx)); err != nil {
		return TxResult{}, err
	}
	if o.Replay != nil {
		return TxResult{}, ErrNoReplay
	}
	r, err := s.trial(ctx, childOrder{Offer: &o})
	if r.TxDone == nil {
		return TxResult{}, err
	}
	return *r.TxDone, err
}

// Close ends the child and detaches.
func (s *asavieSender) Close() error {
	var errs []error
	if s.asavieProcess != nil {
		errs = append(errs, s.asavieProcess.Close())
	}
	if s.att != nil {
		errs = append(errs, s.att.Close())
	}
	if s.pass != nil {
		errs = append(errs, s.pass.Close())
	}
	return errors.Join(errs...)
}

// asavieReceiver receives with the library, in a child process; the steer
// program and its map are ours.
type asavieReceiver struct {
	*asavieProcess
	steer   *bpf.Steer
	att     *bpf.Attachment
	granted Granted
	armed   bool
	queues  []Queue
}

// OpenAsavieReceiver opens the library's sockets for receiving, in a process
// of their own.
func OpenAsavieReceiver(c Config, o RxOptions) (Receiver, error) {
	if err := c.validateRx(); err != nil {
		return nil, err
	}
	r := &asavieReceiver{queues: c.Queues}
	if err := r.open(c, o); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *asavieReceiver) open(c Config, o RxOptions) error {
	o.Steer.LoseBeforeSeen, o.Steer.LoseAfterSeen = c.Fault.LoseBeforeSeen, c.Fault.LoseAfterSeen
	var sockets *os.File
	defer func() {
		if sockets != nil {
			sockets.Close()
		}
	}()
	err := c.Port.Do(func() (err error) {
		if r.steer, err = bpf.LoadSteer(o.Steer); err != nil {
			return err
		}
		if sockets, err = r.steer.SocketsFile(); err != nil {
			return err
		}
		r.att, err = attach(r.steer.Program(), c)
		return err
	})
	if err != nil {
		return err
	}
	if r.asavieProcess, err = startAsavie(c, true, sockets); err != nil {
		return err
	}
	r.granted = r.grantedBy(r.att, c)
	return nil
}

func (r *asavieReceiver) Granted() Granted { return r.granted }

func (r *asavieReceiver) Counters() []*meter.RxCounters { return r.rx }

func (r *asavieReceiver) Program() (ProgramCounts, error) { return steerCounts(r.steer) }

func (r *asavieReceiver) Ended() bool { return r.ended.Load() }

// Arm has the child put its sockets in the program's map, once.
func (r *asavieReceiver) Arm() error {
	if r.armed {
		return nil
	}
	if _, err := r.ask(childOrder{Arm: true}); err != nil {
		return fmt.Errorf("steer to the asavie engine: %w", err)
	}
	r.armed = true
	return nil
}

// Disarm takes the child's sockets out of the program's map.
func (r *asavieReceiver) Disarm() error {
	r.armed = false
	return disarm(r.steer, r.queues)
}

// Run receives one trial in the child.
func (r *asavieReceiver) Run(ctx context.Context, w Watch) (RxResult, error) {
	if w.Rings != nil {
		return RxResult{}, ErrNoCapture
	}
	if err := r.Arm(); err != nil {
		return RxResult{}, err
	}
	rep, err := r.trial(ctx, childOrder{Watch: &w})
	if rep.RxDone == nil {
		return RxResult{}, err
	}
	return *rep.RxDone, err
}

// Close detaches first, then ends the child.
func (r *asavieReceiver) Close() error {
	var errs []error
	if r.att != nil {
		errs = append(errs, r.att.Close())
	}
	if r.asavieProcess != nil {
		errs = append(errs, r.asavieProcess.Close())
	}
	if r.steer != nil {
		errs = append(errs, r.steer.Close())
	}
	return errors.Join(errs...)
}
