package report

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// columns is the widest line of the text, in characters.
const columns = 100

// colour is an SGR code (ECMA-48, 8.3.117); none leaves the text as it is.
type colour string

const (
	none   colour = ""
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	bold   colour = "1"
)

// item is a piece of a line that is not broken.
type item struct {
	text   string
	colour colour
}

// page collects the lines of the text.
type page struct {
	b       strings.Builder
	colours bool
}

// paint colours s if colours are asked for.
func (p *page) paint(s string, c colour) string {
	if !p.colours || c == none || s == "" {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
}

// line adds one line as it stands.
func (p *page) line(s string) {
	p.b.WriteString(strings.TrimRight(s, " "))
	p.b.WriteByte('\n')
}

// labelWidth is where the items of a labelled line begin.
const labelWidth = 12

// row adds a label and items, two spaces apart, on as many lines as they need.
func (p *page) row(label string, items ...item) {
	var line strings.Builder
	width := labelWidth
	fmt.Fprintf(&line, "  %-*s", labelWidth-2, label)
	for i, it := range items {
		n := utf8.RuneCountInString(it.text)
		gap := 2
		if width == labelWidth {
			gap = 0
		}
		if i > 0 && width+gap+n > columns {
			p.line(line.String())
			line.Reset()
			line.WriteString(strings.Repeat(" ", labelWidth))
			width, gap = labelWidth, 0
		}
		line.WriteString(strings.Repeat(" ", gap) + p.paint(it.text, it.colour))
		width += gap + n
	}
	p.line(line.String())
}

// prose adds a label and a text that is broken between words.
func (p *page) prose(label, text string, c colour) {
	var lines []string
	current := ""
	for _, word := range strings.Fields(text) {
		if current != "" && labelWidth+utf8.RuneCountInString(current)+1+utf8.RuneCountInString(word) > columns {
			lines = append(lines, current)
			current = ""
		}
		current = strings.TrimLeft(current+" "+word, " ")
	}
	for _, l := range append(lines, current) {
		p.line(fmt.Sprintf("  %-*s", labelWidth-2, label) + p.paint(l, c))
		label = ""
	}
}

// clean replaces what a terminal would obey: names come from the kernel, from
// the command line and from documents.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

// cut shortens s to n characters.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	runes := []rune(s)
	return string(runes[:max(n-3, 0)]) + "..."
}

// formatNs prints a time in the unit that fits, with four digits at most.
func formatNs(ns int64) string {
	switch d := time.Duration(ns); {
	case d < 0:
		return "-" + formatNs(-max(ns, -1<<62))
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", ns)
	case d < time.Millisecond:
		return fmt.Sprintf("%.2f us", float64(ns)/1e3)
	case d < time.Second:
		return fmt.Sprintf("%.2f ms", float64(ns)/1e6)
	default:
		return fmt.Sprintf("%.3f s", float64(ns)/1e9)
	}
}
