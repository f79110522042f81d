package main

import (
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"linerate/internal/budget"
	"linerate/internal/metrics"
	"linerate/internal/report"
	"linerate/internal/trial"
)

// outputFlags say where results go.
type outputFlags struct {
	json, ndjson, progress bool
	file, metrics          string
}

func (f *outputFlags) register(fs *pflag.FlagSet) {
	fs.BoolVar(&f.json, "json", false, "print one JSON document on stdout and nothing else there")
	fs.BoolVar(&f.ndjson, "ndjson", false, "print one JSON line an interval; the last line is the document")
	fs.StringVarP(&f.file, "output", "o", "", "write the JSON document to a file, besides the text")
	files(fs, "output")
	fs.StringVar(&f.metrics, "metrics", "", "serve OpenMetrics at http://`ADDR`/metrics while the run lasts; :9100 is 127.0.0.1:9100")
	fs.BoolVar(&f.progress, "progress", false, "show progress even when stderr is no terminal")
}

// output writes one run as the flags say.
type output struct {
	flags          outputFlags
	stdout, stderr io.Writer

	mu        sync.Mutex // over what observers of several trials do
	live      bool       // a progress line is on the screen
	err       error
	collector *metrics.Collector // nil without --metrics
}

func newOutput(f outputFlags, stdout, stderr io.Writer) (*output, error) {
	if f.json && f.ndjson {
		return nil, &usageError{"--json and --ndjson exclude each other", "one of them"}
	}
	if err := checkFile("-o", f.file); err != nil {
		return nil, err
	}
	if err := f.checkMetrics(); err != nil {
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
	if !show && !o.flags.ndjson && o.collector == nil {
		return nil
	}
	return func(p trial.Progress) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.collector != nil {
			o.collector.Observe(p)
		}
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
	return o.write(document{
		json: func(w io.Writer) error { return report.WriteJSON(w, run) },
		line: func(w io.Writer) error { return report.WriteRunLine(w, run) },
		text: func(w io.Writer, colours bool) error { return report.WriteText(w, run, colours) },
	}, run.Verdict, interrupted)
}

// finishSet is finish for several runs; the verdict is that of the worst.
func (o *output) finishSet(set report.Set, interrupted bool) error {
	if o.live {
		fmt.Fprint(o.stderr, "\r\x1b[K")
	}
	return o.write(document{
		json: func(w io.Writer) error { return report.WriteSetJSON(w, set) },
		line: func(w io.Writer) error { return report.WriteSetLine(w, set) },
		text: func(w io.Writer, colours bool) error { return report.WriteSetText(w, set, colours) },
	}, set.Verdict, interrupted)
}

// document is a result in the forms that it can be written in.
type document struct {
	json, line func(io.Writer) error
	text       func(w io.Writer, colours bool) error
}

func (o *output) write(d document, verdict budget.Verdict, interrupted bool) error {
	err := o.err
	switch {
	case o.flags.json:
		err = firstError(err, d.json(o.stdout))
	case o.flags.ndjson:
		err = firstError(err, d.line(o.stdout))
	default:
		err = firstError(err, d.text(o.stdout, isTerminal(o.stdout) && os.Getenv("NO_COLOR") == ""))
	}
	if o.flags.file != "" {
		err = firstError(err, writeFile(o.flags.file, d.json))
	}
	switch {
	case err != nil:
		return &unwrittenError{err}
	case interrupted:
		return &verdictError{exitInterrupted}
	case verdict != budget.Pass:
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
