package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"linerate/internal/budget"
	"linerate/internal/report"
	"linerate/internal/trial"
)

// outputFlags say where results go.
type outputFlags struct {
	json, ndjson, progress bool
	file                   string
}

func (f *outputFlags) register(fs *pflag.FlagSet) {
	fs.BoolVar(&f.json, "json", false, "print one JSON document on stdout and nothing else there")
	fs.BoolVar(&f.ndjson, "ndjson", false, "print one JSON line an interval; the last line is the document")
	fs.StringVarP(&f.file, "output", "o", "", "write the JSON document to a file, besides the text")
	fs.BoolVar(&f.progress, "progress", false, "show progress even when stderr is no terminal")
}

// output writes one run as the flags say.
type output struct {
	flags          outputFlags
	stdout, stderr io.Writer
	live           bool // a progress line is on the screen
	err            error
}

func newOutput(f outputFlags, stdout, stderr io.Writer) (*output, error) {
	if f.json && f.ndjson {
		return nil, &usageError{"--json and --ndjson exclude each other", "one of them"}
	}
	if err := checkFile(f.file); err != nil {
		return nil, err
	}
	return &output{flags: f, stdout: stdout, stderr: stderr}, nil
}

// say prints a line for a person: to stdout, or to stderr when stdout is for a
// program.
func (o *output) say(format string, args ...any) {
	w := o.stdout
	if o.flags.json || o.flags.ndjson {
		w = o.stderr
	}
	fmt.Fprintf(w, format+"\n", args...)
}

// observe is the trial's observer: an interval line, or a progress line.
func (o *output) observe(runID string) trial.Observer {
	show := o.flags.progress || isTerminal(o.stderr)
	if !show && !o.flags.ndjson {
		return nil
	}
	return func(p trial.Progress) {
		if o.flags.ndjson {
			if err := report.WriteInterval(o.stdout, intervalDocument(runID, p)); err != nil && o.err == nil {
				o.err = err
			}
		}
		if show {
			o.live = isTerminal(o.stderr)
			end := "\n"
			if o.live {
				end = "\r"
			}
			fmt.Fprint(o.stderr, report.Progress(intervalDocument(runID, p)), end)
		}
	}
}

// finish writes the result and turns the verdict into an exit code. A file that
// cannot be written does not keep the result from stdout.
func (o *output) finish(run report.Run, interrupted bool) error {
	if o.live {
		fmt.Fprint(o.stderr, "\r\x1b[K")
	}
	err := o.err
	switch {
	case o.flags.json:
		err = firstError(err, report.WriteJSON(o.stdout, run))
	case o.flags.ndjson:
		err = firstError(err, report.WriteRunLine(o.stdout, run))
	default:
		err = firstError(err, report.WriteText(o.stdout, run, isTerminal(o.stdout) && os.Getenv("NO_COLOR") == ""))
	}
	if o.flags.file != "" {
		err = firstError(err, writeFile(o.flags.file, run))
	}
	switch {
	case err != nil:
		return &unwrittenError{err}
	case interrupted:
		return &verdictError{exitInterrupted}
	case run.Verdict != budget.Pass:
		return &verdictError{exitFailed}
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// isTerminal tells whether w is a terminal a person looks at.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
