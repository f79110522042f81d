package report

import (
	"fmt"
	"strings"

	"linerate/internal/budget"
	"linerate/internal/wire"
)

// The widths of a boundary's line: boundary, row name, count.
const (
	nameWidth  = 20
	countWidth = 15
)

// stretches adds one line for each boundary and, below it, what moved there.
func (p *page) stretches(run Run) {
	all := budget.Stretches(run.Budget)
	several := false
	for _, s := range all {
		several = several || s.Direction != all[0].Direction
	}
	direction := ""
	for i, s := range all {
		if several && (i == 0 || s.Direction != direction) {
			direction = s.Direction
			p.line("  " + clean(direction))
		}
		p.stretch(s)
	}
}

func (p *page) stretch(s budget.Stretch) {
	line := fmt.Sprintf("  %-*s", labelWidth-2, clean(string(s.Boundary)))
	if s.From.Row != "" {
		line += point(s.From)
		if s.To.Row != "" {
			line += " -> "
		}
	}
	if s.To.Row != "" {
		line += point(s.To)
	}
	p.line(line)
	for _, m := range s.Moves {
		if m.Frames != nil && *m.Frames == 0 {
			continue
		}
		p.move(m)
	}
}

func point(pt budget.Point) string {
	return fmt.Sprintf("%-*s %*s", nameWidth, clean(pt.Row), countWidth, count(pt.Frames))
}

// move adds a loss, gain or held row with the name of its counter.
func (p *page) move(m budget.Move) {
	sign, c := "- ", yellow
	switch m.Kind {
	case budget.Gain:
		sign, c = "+ ", none
	case budget.Held:
		sign, c = "? ", red
	}
	if m.Row == budget.RowEndFrames {
		c = none // ours, on purpose
	}
	line := point(budget.Point{Row: sign + m.Row, Frames: m.Frames})
	room := columns - labelWidth - len(line) - 2
	counter := ""
	if m.Counter != "" && room > 3 {
		counter = "  " + cut(clean(m.Counter), room)
	}
	p.line(strings.Repeat(" ", labelWidth) + p.paint(line, c) + counter)
}

// shownFaults is how many places are named before the rest is only counted.
const shownFaults = 4

func (p *page) unexplained(run Run, closed budget.Result) {
	places := findings(closed)
	switch n := run.Frames.Unexplained; {
	case n == nil:
		p.prose("", "unexplained unknown: "+clean(whyUnknown(run, closed)), yellow)
	case *n == 0:
		p.row("", item{"unexplained 0", green})
	default:
		p.row("", item{"unexplained " + wire.FormatCount(*n), red})
	}
	for i, place := range places {
		if i == shownFaults {
			p.prose("", fmt.Sprintf("and %d more, in the JSON", len(places)-i), red)
			break
		}
		p.prose("", clean(place), red)
	}
	p.line("")
}

// whyUnknown says what is missing to know it all.
func whyUnknown(run Run, closed budget.Result) string {
	switch {
	case run.Rx == nil:
		return "no receiver in hand"
	case run.Tx == nil:
		return "no sender in hand"
	case len(closed.Unknown) == 0:
		return "a stage has no counter"
	default:
		return "no value for " + strings.Join(closed.Unknown, ", ")
	}
}

// findings names every counter at fault and every residual that is none's.
func findings(r budget.Result) []string {
	var found []string
	for _, f := range r.Faults {
		how := "high"
		n := uint64(f.Frames)
		if f.Frames < 0 {
			how, n = "low", -n
		}
		found = append(found, fmt.Sprintf("%s: counter %s%s is %s too %s, its neighbours agree without it",
			f.Boundary, named(f.Row, f.Counter), ofQueue(f.Queue), wire.FormatCount(n), how))
	}
	for _, x := range r.Residuals {
		if x.Frames == 0 || x.Fault {
			continue
		}
		what := "vanished"
		n := uint64(x.Frames)
		if x.Frames < 0 {
			what, n = "appeared", -n
		}
		found = append(found, fmt.Sprintf("%s: %s %s between %s and %s%s", x.Boundary, wire.FormatCount(n), what,
			named(x.From, x.FromCounter), named(x.To, x.ToCounter), ofQueue(x.Queue)))
	}
	return found
}

// named is a row with the kernel's own name of its counter.
func named(row, counter string) string {
	if counter == "" || counter == row {
		return row
	}
	return row + " (" + counter + ")"
}

func ofQueue(queue *int) string {
	if queue == nil {
		return ""
	}
	return fmt.Sprintf(" of queue %d", *queue)
}
