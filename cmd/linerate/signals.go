package main

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"linerate/internal/lab/veth"
)

// withSignals returns a context that the first Ctrl-C, SIGTERM or SIGHUP ends:
// the run drains and accounts. A second one ends the program at once, the labs
// that it built first; a third has the kernel's default action.
// code is the exit code of a program that has come to its end meanwhile.
func withSignals(parent context.Context) (ctx context.Context, code func(int) int) {
	ctx, cancel := context.WithCancel(parent)
	var ending atomic.Bool
	caught := make(chan os.Signal, 2)
	signal.Notify(caught, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		signal.Notify(caught, syscall.SIGHUP)
	}
	// A reader of stdout that goes away, or a file that grows too large, is an
	// error of the write, not the end of the program: there may be a lab to
	// remove. (Not ignored: a command that lab exec becomes would inherit that.)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGXFSZ)
	go func() {
		<-caught
		cancel()
		<-caught
		ending.Store(true)
		signal.Reset(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		veth.DownOwn()
		os.Exit(exitInterrupted)
	}()
	return ctx, func(n int) int {
		if ending.Load() {
			select {} // what went wrong since is our own doing
		}
		return n
	}
}
