// Command linerate sends frames at line rate over AF_XDP, receives and
// verifies every one, and says where each of them went.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the linker: -X main.version=...
var version = "dev"

func main() {
	os.Exit(mainCode())
}

func mainCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal ends the run, which drains and accounts; after it the
	// default action is back, so a second one ends the program at once.
	context.AfterFunc(ctx, stop)
	return run(ctx, os.Stdout, os.Stderr, os.Args[1:])
}
