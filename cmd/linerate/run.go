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

// run carries out one command line and returns the exit code.
func run(ctx context.Context, stdout, stderr io.Writer, args []string) int {
	if len(args) == 0 {
		args = []string{"help"}
	}
	name, rest := args[0], args[1:]
	switch name {
	case "-h", "--help":
		name, rest = "help", nil
	case "--version":
		name = "version"
	case engine.ChildCommand:
		return exitCode(engine.RunChild(ctx, os.Stdin, stdout), stdout, stderr, false)
	}
	err := unknownCommand(name)
	if c, ok := findCommand(name); ok {
		err = c.run(ctx, stdout, stderr, rest)
	}
	return exitCode(err, stdout, stderr, wantsJSON(args))
}

// unknownCommand says what a name that is no command's is instead.
func unknownCommand(name string) error {
	if slices.Contains(planned, name) {
		return fmt.Errorf("%s is not built yet in linerate %s", name, version)
	}
	return &usageError{fmt.Sprintf("no command %q", name), "linerate help"}
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
