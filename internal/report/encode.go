package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"linerate/internal/budget"
)

// WriteJSON writes the run as one indented document. An unknown number that was
// computed as NaN or infinite is written as null. The error is that of w, or of
// a Spec that JSON cannot hold.
func WriteJSON(w io.Writer, run Run) error {
	data, err := json.MarshalIndent(run.normal(), "", "  ")
	if err != nil {
		return fmt.Errorf("encode run %s: %w", run.RunID, err)
	}
	return write(w, data)
}

// WriteRunLine writes the run as one line: the last of --ndjson.
func WriteRunLine(w io.Writer, run Run) error {
	data, err := json.Marshal(run.normal())
	if err != nil {
		return fmt.Errorf("encode run %s: %w", run.RunID, err)
	}
	return write(w, data)
}

// WriteInterval writes an interval as one line, in one call of w.Write.
func WriteInterval(w io.Writer, i Interval) error {
	i.Schema = IntervalSchema
	if i.Tx != nil {
		tx := *i.Tx
		finite(&tx.PPS, &tx.L1BitsPerSec, &tx.L2BitsPerSec)
		i.Tx = &tx
	}
	if i.Rx != nil {
		rx := *i.Rx
		finite(&rx.PPS, &rx.L1BitsPerSec, &rx.L2BitsPerSec)
		i.Rx = &rx
	}
	data, err := json.Marshal(i)
	if err != nil {
		return fmt.Errorf("encode interval of run %s: %w", i.RunID, err)
	}
	return write(w, data)
}

// WriteFailure writes the document of a command that could not do its job.
func WriteFailure(w io.Writer, f Failure) error {
	f.Schema = ErrorSchema
	data, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("encode error %s: %w", f.Code, err)
	}
	return write(w, data)
}

// write puts data and a line end into one call, so that a reader of a pipe never
// sees half a line.
func write(w io.Writer, data []byte) error {
	if _, err := w.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("write document: %w", err)
	}
	return nil
}

// normal returns run as the schema wants it: lists are there when empty, and
// what is no number is null. run itself stays as it is.
func (run Run) normal() Run {
	run.Schema = RunSchema
	run.Tx, run.Rx = run.Tx.normal(), run.Rx.normal()
	run.Budget = present(run.Budget)
	run.Streams = present(run.Streams)
	run.Warnings = present(run.Warnings)
	r, c := &run.Rate, &run.CPU
	finite(&r.OfferedPPS, &r.TxPPS, &r.RxPPS, &r.TxL1BitsPerSec, &r.TxL2BitsPerSec, &r.RxL1BitsPerSec,
		&r.LineRateRatio, &r.PacingErrorRatio, &c.TxNsPerFrame, &c.RxNsPerFrame, &c.BusyCoreSeconds)
	return run
}

func (e *End) normal() *End {
	if e == nil {
		return nil
	}
	end := *e
	end.Queues = present(e.Queues)
	return &end
}

// present makes a missing list an empty one.
func present[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// finite makes numbers that are none unknown.
func finite(numbers ...**float64) {
	for _, n := range numbers {
		if *n != nil && (math.IsNaN(**n) || math.IsInf(**n, 0)) {
			*n = nil
		}
	}
}

// DocumentError is a document that is not what it should be.
type DocumentError struct {
	Want string // the schema that was asked for
	What string // what is wrong
	Err  error  // the decoder's error, if it was that
}

// Error implements error.
func (e *DocumentError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("decode %s: %s: %v", e.Want, e.What, e.Err)
	}
	return fmt.Sprintf("decode %s: %s", e.Want, e.What)
}

// Unwrap returns the decoder's error.
func (e *DocumentError) Unwrap() error { return e.Err }

// verdicts lists what a document may say.
var verdicts = []budget.Verdict{budget.Pass, budget.Fail, budget.Invalid}

// DecodeRun reads one run document, as WriteJSON and WriteRunLine write it. Keys
// that it does not know are ignored: later versions add some. The error is a
// *DocumentError.
func DecodeRun(data []byte) (Run, error) {
	fail := func(what string, err error) (Run, error) {
		return Run{}, &DocumentError{Want: RunSchema, What: what, Err: err}
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber() // a 64-bit number of the spec must come back as it went
	var run Run
	if err := decoder.Decode(&run); err != nil {
		return fail("not a document", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return fail("more than one document", nil)
	}
	if run.Schema != RunSchema {
		return fail(fmt.Sprintf("the schema is %q", run.Schema), nil)
	}
	if !slices.Contains(verdicts, run.Verdict) {
		return fail(fmt.Sprintf("no such verdict: %q", run.Verdict), nil)
	}
	return run.normal(), nil
}
