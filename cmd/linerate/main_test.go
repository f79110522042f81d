package main

import (
	"context"
	"fmt"
	"os"
	"testing"

	"linerate/internal/engine"
	"linerate/internal/nettest"
)

// TestMain lets the test binary be the child of the asavie engine, as the
// program is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == engine.ChildCommand {
		if err := engine.RunChild(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	nettest.Main(m)
}
