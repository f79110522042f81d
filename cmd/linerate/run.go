package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"linerate/internal/engine"
	"linerate/internal/report"
)

// Exit codes, the contract of the command line.
const (
	exitPassed      = 0
	exitFailed      = 1
	exitUsage       = 2
	exitCannotRun   = 3
	exitInterrupted = 130
)

// usageError is a command line that cannot be carried out.
type usageError struct {
	Text   string
	Remedy string
}

func (e *usageError) Error() string {
	if e.Remedy == "" {
		return e.Text
	}
	return e.Text + "\n  try: " + e.Remedy
}

// unwrittenError is a result, or an error, that could not be written where it
// was wanted: there is nothing more to write there.
type unwrittenError struct{ err error }

func (e *unwrittenError) Error() string { return fmt.Sprintf("write the result: %v", e.err) }

func (e *unwrittenError) Unwrap() error { return e.err }

// verdictError carries an exit code for a run that was reported in full.
type verdictError struct{ code int }

func (e *verdictError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// command is one subcommand.
type command struct {
	name, job string
	run       func(ctx context.Context, stdout, stderr io.Writer, args []string) error
}

// commands lists the subcommands in the order of the help text.
func commands() []command {
	return []command{
		{"demo", "build a throw-away two-host lab, send, verify, print the frame budget", runDemo},
		{"run", "one trial with both ends in hand: the whole budget", runRun},
		{"blast", "send only", runBlast},
		{"sink", "receive: verify, count, drop or capture", runSink},
		{"ceiling", "exact arithmetic: pps, L1/L2, goodput for a frame size or MTU", runCeiling},
		{"streams", "read a streams file: show its first frames, print its schema", runStreams},
		{"lab", "throw-away labs by hand: up, down, exec, list", runLab},
	}
}

// planned are the commands of the contract that this build does not have.
var planned = []string{"doctor", "tune", "tcp", "compare", "validate", "regress", "report", "capture-host", "completion"}

// run carries out one command line and returns the exit code.
func run(ctx context.Context, stdout, stderr io.Writer, args []string) int {
	if len(args) == 0 || args[0] == "-h" || args[0] == "--help" {
		printHelp(stdout)
		return exitPassed
	}
	name, rest := args[0], args[1:]
	asJSON := wantsJSON(args)
	if name == "help" {
		if len(rest) == 0 || rest[0] == "help" {
			printHelp(stdout)
			return exitPassed
		}
		name, rest = rest[0], []string{"--help"}
	}
	switch name {
	case "version", "--version":
		fmt.Fprintln(stdout, "linerate", version)
		return exitPassed
	case engine.ChildCommand:
		return exitCode(engine.RunChild(ctx, os.Stdin, stdout), stdout, stderr, false)
	}
	for _, c := range commands() {
		if c.name == name {
			err := c.run(ctx, stdout, stderr, rest)
			return exitCode(err, stdout, stderr, asJSON)
		}
	}
	if slices.Contains(planned, name) {
		err := fmt.Errorf("%s is not built yet in linerate %s", name, version)
		return exitCode(err, stdout, stderr, asJSON)
	}
	return exitCode(&usageError{fmt.Sprintf("no command %q", name), "linerate help"}, stdout, stderr, asJSON)
}

// wantsJSON finds --json before any flag has been parsed: what is wrong with
// the flags is a document too.
func wantsJSON(args []string) (yes bool) {
	for _, a := range args {
		switch value, is := strings.CutPrefix(a, "--json="); {
		case a == "--":
			return yes
		case a == "--json":
			yes = true
		case is:
			on, err := strconv.ParseBool(value)
			yes = on || err != nil // a value that is none is a usage error to tell
		}
	}
	return yes
}

// exitCode prints an error once, where the contract wants it, and maps it.
func exitCode(err error, stdout, stderr io.Writer, asJSON bool) int {
	var verdict *verdictError
	switch {
	case err == nil, errors.Is(err, pflag.ErrHelp):
		return exitPassed
	case errors.As(err, &verdict):
		return verdict.code
	}
	code, name := exitCannotRun, "cannot_run"
	switch {
	case errors.As(err, new(*unwrittenError)):
		asJSON = false
	case isUsage(err):
		code, name = exitUsage, "usage"
	case errors.Is(err, context.Canceled):
		code, name = exitInterrupted, "interrupted"
	}
	text, remedy, _ := strings.Cut(err.Error(), "\n  try: ")
	if asJSON {
		if werr := report.WriteFailure(stdout, report.Failure{Code: name, Text: text, Remedy: report.Text(remedy)}); werr == nil {
			return code
		}
	}
	fmt.Fprintln(stderr, "linerate:", err)
	return code
}

func printHelp(w io.Writer) {
	fmt.Fprint(w, "linerate drives 10GbE at line rate over AF_XDP and says where every frame went.\n\nusage: linerate COMMAND [ARGS] [FLAGS]\n\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-9s %s\n", c.name, c.job)
	}
	fmt.Fprint(w, "\nlinerate help COMMAND prints the flags of one command. Start with: linerate demo\n")
}

// newFlags makes the flag set of one command, with its help text.
func newFlags(stdout io.Writer, synopsis, example string) *pflag.FlagSet {
	name, _, _ := strings.Cut(synopsis, " ")
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	fs.SetOutput(io.Discard) // errors are printed once, by exitCode
	fs.SortFlags = false
	fs.Usage = func() {
		fmt.Fprintf(stdout, "usage: linerate %s\n\n%s\nflags:\n%s", synopsis, example, fs.FlagUsages())
	}
	return fs
}

// parse reads the flags; what is wrong with them is a usage error.
func parse(fs *pflag.FlagSet, args []string) error {
	err := fs.Parse(args)
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return err
	}
	return &usageError{err.Error(), "linerate help " + fs.Name()}
}
