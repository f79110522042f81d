package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
const (
	silenceEvery = 500 * time.Millisecond
	silences     = 10
)

// What can become of a child.
var (
	errGone   = errors.New("the asavie engine ended without a result")
	errSilent = errors.New("the asavie engine does not answer")
)

// asavieProcess is the parent's end of an asavie child. Its methods belong to
// the goroutine that runs the trial; the counters are anybody's.
type asavieProcess struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     io.ReadCloser
	orders  *json.Encoder
	reports chan childReport // closed when the child is gone
	tx      []*meter.TxCounters
	rx      []*meter.RxCounters
	ended   atomic.Bool
	heard   atomic.Uint64 // reports so far
	mode    string
	once    sync.Once
	err     error
}

// startAsavie starts a child inside the port's namespace and has it open its
// sockets. sockets is the XSKMAP's file for a receiver, else nil.
func startAsavie(c Config, receive bool, sockets *os.File) (*asavieProcess, error) {
	p := &asavieProcess{reports: make(chan childReport)}
	for range c.Queues {
		if receive {
			p.rx = append(p.rx, new(meter.RxCounters))
		} else {
			p.tx = append(p.tx, new(meter.TxCounters))
		}
	}
	p.cmd = exec.Command("/proc/self/exe", ChildCommand)
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
	r, err := p.ask(childOrder{Open: &open}, childPatience)
	if err == nil && !r.Ready {
		err = errors.New(r.Err)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the asavie engine: %w", err), p.Close())
	}
	p.mode = r.Mode
	return p, nil
}

// start forks on a thread in the namespace: the child inherits it.
func (p *asavieProcess) start(c Config) error {
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	if p.out, err = p.cmd.StdoutPipe(); err != nil {
		return err
	}
	if err := c.Port.Do(p.cmd.Start); err != nil {
		return fmt.Errorf("start the asavie engine: %w", err)
	}
	p.orders = json.NewEncoder(p.in)
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

// ask gives an order and waits for the answer; 0 waits for as long as it takes.
func (p *asavieProcess) ask(o childOrder, patience time.Duration) (childReport, error) {
	if err := p.orders.Encode(o); err != nil {
		return childReport{}, fmt.Errorf("the asavie engine is gone: %w", err)
	}
	return p.answer(patience)
}

func (p *asavieProcess) answer(patience time.Duration) (childReport, error) {
	var late <-chan time.Time
	if patience > 0 {
		t := time.NewTimer(patience)
		defer t.Stop()
		late = t.C
	}
	select {
	case r, ok := <-p.reports:
		if !ok {
			return r, errGone
		}
		return r, nil
	case <-late:
		return childReport{}, errSilent
	}
}

// trial gives an order for a trial and, when ctx ends, the order to stop.
func (p *asavieProcess) trial(ctx context.Context, o childOrder) (childReport, error) {
	if err := p.orders.Encode(o); err != nil {
		return childReport{}, fmt.Errorf("the asavie engine is gone: %w", err)
	}
	look := time.NewTicker(silenceEvery)
	defer look.Stop()
	for before, silent := p.heard.Load(), 0; silent < silences; {
		select {
		case r, ok := <-p.reports:
			if !ok {
				return r, errGone
			}
			return r, nil
		case <-ctx.Done():
			return p.ask(childOrder{Stop: true}, childPatience)
		case <-look.C:
			silent++
			if now := p.heard.Load(); now != before {
				before, silent = now, 0
			}
		}
	}
	return childReport{}, errSilent
}

// Close ends the child: first by closing its input, then by force.
func (p *asavieProcess) Close() error {
	p.once.Do(func() {
		p.in.Close()
		kill := time.AfterFunc(childPatience, func() { _ = p.cmd.Process.Kill() })
		defer kill.Stop()
		for range p.reports { // until the child closes its output
		}
		p.err = p.cmd.Wait()
	})
	return p.err
}

// asavieSender sends with the library, in a child process.
type asavieSender struct {
	*asavieProcess
	pass *bpf.Pass
	att  *bpf.Attachment
}

// OpenAsavieSender opens the library's sockets for sending, in a process of
// their own.
func OpenAsavieSender(c Config) (Sender, error) {
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
	return s, nil
}

func (s *asavieSender) Granted() Granted {
	return Granted{Mode: socketMode(s.mode == "zerocopy", xdpMode(s.att)), XDPMode: xdpMode(s.att)}
}

func (s *asavieSender) Counters() []*meter.TxCounters { return s.tx }

// Run sends one trial in the child.
func (s *asavieSender) Run(ctx context.Context, o Offer) (TxResult, error) {
	r, err := s.trial(ctx, childOrder{Offer: &o})
	if r.Err != "" {
		err = errors.Join(err, errors.New(r.Err))
	}
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
	steer  *bpf.Steer
	att    *bpf.Attachment
	armed  bool
	queues []Queue
}

// OpenAsavieReceiver opens the library's sockets for receiving, in a process
// of their own.
func OpenAsavieReceiver(c Config, o RxOptions) (Receiver, error) {
	r := &asavieReceiver{queues: c.Queues}
	if err := r.open(c, o); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *asavieReceiver) open(c Config, o RxOptions) error {
	o.Steer.LoseBeforeSeen, o.Steer.LoseAfterSeen = c.Fault.LoseBeforeSeen, c.Fault.LoseAfterSeen
	var sockets *os.File
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
	defer sockets.Close()
	r.asavieProcess, err = startAsavie(c, true, sockets)
	return err
}

func (r *asavieReceiver) Granted() Granted {
	return Granted{Mode: socketMode(r.mode == "zerocopy", xdpMode(r.att)), XDPMode: xdpMode(r.att)}
}

func (r *asavieReceiver) Counters() []*meter.RxCounters { return r.rx }

func (r *asavieReceiver) Program() (ProgramCounts, error) { return steerCounts(r.steer) }

func (r *asavieReceiver) Ended() bool { return r.ended.Load() }

// Arm has the child put its sockets in the program's map, once.
func (r *asavieReceiver) Arm() error {
	if r.armed {
		return nil
	}
	rep, err := r.ask(childOrder{Arm: true}, childPatience)
	if err == nil && rep.Err != "" {
		err = errors.New(rep.Err)
	}
	if err != nil {
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
	if err := r.Arm(); err != nil {
		return RxResult{}, err
	}
	rep, err := r.trial(ctx, childOrder{Watch: &w})
	if rep.Err != "" {
		err = errors.Join(err, errors.New(rep.Err))
	}
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
