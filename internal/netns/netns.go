// Package netns runs functions on a thread that lives inside one network
// namespace, and makes, deletes and lists the named namespaces of /run/netns in
// the way iproute2 does.
//
// A namespace is a property of a thread, not of a process, so each NS owns one
// locked OS thread that has entered the namespace and is never handed back to
// the Go scheduler: when the NS is closed the thread ends. The thread also has
// a mount namespace of its own with the namespace's sysfs on /sys; after
// setns alone /sys/class/net still lists the host's interfaces.
package netns

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Dir holds the named network namespaces, one bind mount per name (ip-netns(8)).
const Dir = "/run/netns"

// NS is one OS thread inside one network namespace.
// All methods are safe for use by many goroutines.
type NS struct {
	mu   sync.Mutex
	name string // guarded by mu: Pin gives one to a nameless namespace
	inum uint64
	tid  int

	jobs chan job
	done chan struct{} // closed when the thread takes no more jobs
	quit chan struct{}
	once sync.Once
}

type job struct {
	f   func() error
	out chan<- outcome
}

// outcome is how a function left: by return, by panic or by runtime.Goexit.
type outcome struct {
	err      error
	panicked any
	returned bool
}

// Open starts a thread inside the namespace called name: an entry of Dir, a
// path (anything with a slash, such as /proc/PID/ns/net), or "" for the
// namespace of the caller. The caller owns the NS and must Close it.
//
// Entering another namespace needs CAP_SYS_ADMIN; "" needs nothing as long as
// /sys already shows the caller's own namespace. Errors are *Error and
// *NotFoundError.
func Open(name string) (*NS, error) {
	f, err := openRef(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return start(name, f)
}

// start makes the thread and waits until it is inside; a nil ref asks for a new
// namespace.
func start(name string, ref *os.File) (*NS, error) {
	n := &NS{
		name: name,
		jobs: make(chan job),
		done: make(chan struct{}),
		quit: make(chan struct{}),
	}
	ready := make(chan error)
	ownThread(func() { n.serve(ref, ready) })
	if err := <-ready; err != nil {
		return nil, err
	}
	return n, nil
}

// openRef opens the file that stands for the namespace. For "" this is one
// system call on the caller's thread, so it names the caller's namespace even
// inside another NS's Do.
func openRef(name string) (*os.File, error) {
	path := name
	switch {
	case name == "":
		path = "/proc/thread-self/ns/net"
	case !strings.Contains(name, "/"):
		if err := CheckName(name); err != nil {
			return nil, err
		}
		path = filepath.Join(Dir, name)
	}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) && name != "" {
		existing, _ := List()
		return nil, &NotFoundError{Name: name, Existing: existing}
	}
	if err != nil {
		return nil, newError("open", name, "", err)
	}
	return f, nil
}

// ownThread runs f in a goroutine locked to an OS thread that ends with f. The
// main thread is never taken: it cannot end, and /proc/self is its view.
func ownThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f()
			return // still locked: the runtime ends the thread
		}
		// Hold the main thread until another thread has taken the work.
		taken := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(taken)
			f()
		}()
		<-taken
		runtime.UnlockOSThread()
	}()
}

// serve is the body of the namespace's thread.
func (n *NS) serve(ref *os.File, ready chan<- error) {
	defer close(n.done)
	if err := n.enter(ref); err != nil {
		ready <- err
		return
	}
	n.tid = unix.Gettid()
	close(ready)
	for {
		select {
		case j := <-n.jobs:
			run(j)
		case <-n.quit:
			return
		}
	}
}

// run calls one function and always answers, even when the function panics or
// ends its goroutine (as t.FailNow does); the latter also ends the thread.
func run(j job) {
	var o outcome
	defer func() {
		if !o.returned {
			o.panicked = recover()
		}
		j.out <- o
	}()
	o.err = j.f()
	o.returned = true
}

// Do runs f on the namespace's thread and returns what f returned. Calls are
// served one at a time; f may itself call Do. A panic in f is raised again in
// the caller, and an f that ends its goroutine ends the caller's too. After
// Close, Do returns ErrClosed without running f.
func (n *NS) Do(f func() error) error {
	select {
	case <-n.done: // the thread's id may be another thread's by now
		return newError("run in", n.Name(), "", ErrClosed)
	default:
	}
	if unix.Gettid() == n.tid {
		return f() // already there: a nested call must not wait for itself
	}
	out := make(chan outcome, 1)
	select {
	case <-n.quit:
		return newError("run in", n.Name(), "", ErrClosed)
	default:
	}
	select {
	case n.jobs <- job{f, out}:
	case <-n.done:
		return newError("run in", n.Name(), "", ErrClosed)
	}
	o := <-out
	switch {
	case o.panicked != nil:
		panic(o.panicked)
	case !o.returned:
		runtime.Goexit()
	}
	return o.err
}

// Close ends the thread after the call in progress, if any, and waits for that.
// What f left open (sockets) stays open. Close may be called more than once,
// but not from inside Do.
func (n *NS) Close() error {
	n.once.Do(func() { close(n.quit) })
	<-n.done
	return nil
}

// Name is what Open was given, or the first name that Pin gave.
func (n *NS) Name() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.name
}

// named takes the name over unless there is one.
func (n *NS) named(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.name == "" {
		n.name = name
	}
}

// Inum is the inode number of the namespace: two NS with the same number are
// in the same namespace, and BPF programs see it as net.ns.inum.
func (n *NS) Inum() uint64 { return n.inum }

// Another starts a second thread inside the same namespace, for work that must
// not wait behind this one. It works even if the name has been deleted since.
func (n *NS) Another() (*NS, error) {
	var f *os.File
	err := n.Do(func() (err error) {
		f, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	if err != nil {
		return nil, newError("open", n.Name(), "", err)
	}
	defer f.Close()
	return start(n.Name(), f)
}
