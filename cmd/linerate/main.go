// Command linerate sends frames at line rate over AF_XDP, receives and
// verifies every one, and says where each of them went.
package main

import (
	"context"
	"os"
)

// version is set by the linker: -X main.version=...
var version = "dev"

func main() {
	os.Exit(mainCode())
}

func mainCode() int {
	ctx, code := withSignals(context.Background())
	return code(run(ctx, os.Stdout, os.Stderr, os.Args[1:]))
}
