package report

import (
	"fmt"
	"io"

	"linerate/internal/budget"
	"linerate/internal/wire"
)

// WriteText writes the run for a person: the frame budget boundary by boundary,
// what it adds up to, rates, latency, cost, warnings and the verdict. Rows of 0
// are left out; the JSON has them all. Nothing is coloured unless colours is
// set. The error is that of w.
func WriteText(w io.Writer, run Run, colours bool) error {
	p := &page{colours: colours}
	closed := run.closed()
	p.head(run)
	p.stretches(run)
	p.frames(run)
	p.unexplained(run, closed)
	p.rate(run.Rate)
	p.latency(run.Latency)
	p.cpu(run.CPU)
	for _, warning := range run.Warnings {
		p.warning(warning)
	}
	p.verdict(run)
	if _, err := io.WriteString(w, p.b.String()); err != nil {
		return fmt.Errorf("write run %s: %w", run.RunID, err)
	}
	return nil
}

// closed is the walk that came with the run or, for a run that was read from a
// document, one made anew: the events are not in it, so held rows are believed.
func (run Run) closed() budget.Result {
	if len(run.Closed.Residuals) > 0 || len(run.Closed.Unknown) > 0 {
		return run.Closed
	}
	held := budget.Event{Limit: 1<<64 - 1}
	return budget.Close(run.Budget, held)
}

func (p *page) head(run Run) {
	items := []item{{run.Tx.brief("no sender in hand") + " -> " + run.Rx.brief("no receiver in hand"), bold}}
	if run.DurationNs != nil {
		items = append(items, item{formatNs(*run.DurationNs), none})
	}
	items = append(items, item{"run " + clean(run.RunID), none})
	p.row("linerate", items...)
	p.line("")
}

// brief names an end: where, by which engine, in which mode.
func (e *End) brief(missing string) string {
	if e == nil {
		return "(" + missing + ")"
	}
	text := e.Endpoint + " " + e.Engine
	if e.Mode != "" {
		text += " " + string(e.Mode)
	}
	return clean(text)
}

// count prints a number of frames.
func count(n *uint64) string {
	if n == nil {
		return "unknown"
	}
	return wire.FormatCount(*n)
}

// tally is a count with its name, in the colour c when it is not 0.
func tally(name string, n *uint64, c colour) item {
	it := item{name + " " + count(n), none}
	if n != nil && *n > 0 {
		it.colour = c
	}
	return it
}

// isZero reports whether n is known to be 0.
func isZero(n *uint64) bool { return n != nil && *n == 0 }

func (p *page) frames(run Run) {
	f := run.Frames
	lost := red
	if run.Verdict == budget.Pass {
		lost = yellow // allowed, but worth a look
	}
	p.line("")
	path := []item{tally("sent", f.Sent, none), tally("received", f.Received, none), tally("lost", f.Lost, lost)}
	path = append(path, nonzero("unsent", f.Unsent, none)...)
	path = append(path, nonzero("refused", f.Refused, none)...)
	path = append(path, nonzero("too late", f.TooLate, yellow)...)
	p.row("frames", path...)
	if run.Rx == nil {
		return // nobody has looked at what arrived
	}
	kind := []item{tally("duplicate", f.Duplicate, red), tally("reordered", f.Reordered, yellow), tally("corrupt", f.Corrupt, red)}
	if isZero(f.Foreign.OtherRun) && isZero(f.Foreign.Untagged) && isZero(f.Foreign.Unreadable) {
		kind = append(kind, item{"foreign 0", none})
	}
	kind = append(kind, nonzero("foreign: other run", f.Foreign.OtherRun, yellow)...)
	kind = append(kind, nonzero("foreign: untagged", f.Foreign.Untagged, none)...)
	kind = append(kind, nonzero("foreign: unreadable", f.Foreign.Unreadable, none)...)
	kind = append(kind, nonzero("reordered between queues", f.ReorderedBetweenQueues, none)...)
	p.row("", kind...)
}

// nonzero is a count with its name, unless it is 0 or unknown.
func nonzero(name string, n *uint64, c colour) []item {
	if n == nil || *n == 0 {
		return nil
	}
	return []item{tally(name, n, c)}
}

func (p *page) rate(r Rate) {
	var items []item
	pps := func(name string, v *float64) {
		if v != nil {
			items = append(items, item{name + " " + wire.FormatPPS(wire.PPS(*v)), none})
		}
	}
	pps("offered", r.OfferedPPS)
	pps("tx", r.TxPPS)
	pps("rx", r.RxPPS)
	l1 := r.RxL1BitsPerSec
	if l1 == nil {
		l1 = r.TxL1BitsPerSec
	}
	if l1 != nil {
		text := wire.FormatBits(wire.BitsPerSec(*l1)) + " L1"
		if r.LineRateRatio != nil {
			text += fmt.Sprintf(" (%.2f %%)", *r.LineRateRatio*100)
		}
		items = append(items, item{text, none})
	}
	p.labelled("rate", items)
	p.labelled("gap", r.gaps())
}

// gaps says how even the stream was.
func (r Rate) gaps() (items []item) {
	if g := r.Gap; g != nil {
		items = times([]string{"p50", "p99", "max"}, g.P50, g.P99, g.Max)
	}
	if r.PacingErrorRatio != nil {
		items = append(items, item{fmt.Sprintf("error %.3f %%", *r.PacingErrorRatio*100), none})
	}
	if s := r.Stalls; s != nil && s.Count > 0 {
		items = append(items, item{fmt.Sprintf("%s stalls, longest %s",
			wire.FormatCount(s.Count), formatNs(s.LongestNs)), yellow})
	}
	return items
}

// labelled adds a row unless it has nothing to say.
func (p *page) labelled(label string, items []item) {
	if len(items) > 0 {
		p.row(label, items...)
	}
}

// times is a named list of times; what is unknown is left out.
func times(names []string, ns ...*int64) (items []item) {
	for i, n := range ns {
		if n != nil {
			items = append(items, item{names[i] + " " + formatNs(*n), none})
		}
	}
	return items
}

func (p *page) latency(l *Latency) {
	if l == nil {
		return
	}
	items := times([]string{"p50", "p99", "p99.9", "max"}, l.P50, l.P99, l.P999, l.Max)
	items = append(items, item{wire.FormatCount(l.Count) + " stamps", none})
	if l.BiasNs != nil {
		items = append(items, item{"bias " + formatNs(*l.BiasNs), none})
	}
	if n := l.NoStamp; n != nil && *n > 0 {
		items = append(items, item{wire.FormatCount(*n) + " without stamp", yellow})
	}
	if l.IncludesOwnQueue {
		items = append(items, item{"includes own queue", yellow})
	}
	p.row("latency", items...)
}

func (p *page) cpu(c CPU) {
	var items []item
	add := func(format string, v *float64) {
		if v != nil {
			items = append(items, item{fmt.Sprintf(format, *v), none})
		}
	}
	add("tx %.1f ns/frame", c.TxNsPerFrame)
	add("rx %.1f ns/frame", c.RxNsPerFrame)
	add("%.2f core-seconds busy, all cores", c.BusyCoreSeconds)
	if len(items) > 0 && c.Method != "" {
		items = append(items, item{"by " + clean(string(c.Method)), none})
	}
	p.labelled("cpu", items)
}

func (p *page) warning(w Warning) {
	text := string(w.Code) + ": " + w.Text
	if w.Remedy != "" {
		text += " -> " + w.Remedy
	}
	p.prose("warning", clean(text), yellow)
}

func (p *page) verdict(run Run) {
	c := map[budget.Verdict]colour{budget.Pass: green, budget.Fail: red, budget.Invalid: yellow}[run.Verdict]
	text := clean(string(run.Verdict))
	for i, r := range run.Reasons {
		separator := "; "
		if i == 0 {
			separator = ": "
		}
		text += separator + clean(run.reason(r))
	}
	p.prose("verdict", text, c)
}

// reason is the text of r, or its code where a warning has said the rest.
func (run Run) reason(r budget.Reason) string {
	for _, w := range run.Warnings {
		if string(w.Code) == r.Code && w.Text == r.Text {
			return r.Code
		}
	}
	return r.Text
}
