package stream

import (
	"fmt"
	"slices"
	"strings"
)

// Error is one thing wrong in a streams file. Line and Column count from 1, 0
// where they are not known.
type Error struct {
	File         string
	Line, Column int
	Key          string // the key or the layer in question, "" if none
	What         string
	Near         string // the valid name nearest to the one given, "" if none is near
}

// Error says file:line:column: key: what.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
		if e.Column > 0 {
			fmt.Fprintf(&b, ":%d", e.Column)
		}
	}
	b.WriteString(": ")
	if e.Key != "" {
		b.WriteString(e.Key + ": ")
	}
	b.WriteString(e.What)
	if e.Near != "" {
		fmt.Fprintf(&b, ", did you mean %q?", e.Near)
	}
	return b.String()
}

// Errors is everything found wrong in a file, in the order of its lines.
type Errors []*Error

// Error gives one line for each.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// nearest is the name within a third of its length, "" if none is.
func nearest(got string, names []string) string {
	best, least := "", len(got)
	for _, name := range names {
		if d := distance(strings.ToLower(got), name); d < least && d <= max(1, len(name)/3) {
			best, least = name, d
		}
	}
	return best
}

// maxName bounds what distance compares: no name is longer.
const maxName = 32

// distance is the least number of letters to change, add, leave out or exchange
// with their neighbour.
func distance(a, b string) int {
	if len(a) > maxName || len(b) > maxName {
		return maxName
	}
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

// namesOf lists the words of a table.
func namesOf(table []nameOf) []string {
	out := make([]string, len(table))
	for i, n := range table {
		out[i] = n.name
	}
	return out
}

// oneOf lists names for people.
func oneOf(names []string) string {
	names = slices.Clone(names)
	slices.Sort(names)
	return strings.Join(names, ", ")
}
