package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"linerate/internal/budget"
	"linerate/internal/wire"
)

// Set is several runs that belong together: the steps of a ramp, port pairs that
// ran at the same time.
type Set struct {
	Schema  string         `json:"schema"`
	Version string         `json:"version"`
	Runs    []Run          `json:"runs"`
	Tables  []Table        `json:"tables"`
	Verdict budget.Verdict `json:"verdict"`
}

// Table is a view over the runs of a set. Each row holds, for each column, a
// number, a string, or nil: not known. Names of columns say the unit: frames,
// but per second in _pps, and a share of one in _ratio.
type Table struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
}

// Worst is the verdict of a set: that of its worst run.
func Worst(runs []Run) budget.Verdict {
	worst := budget.Pass
	for _, r := range runs {
		switch {
		case r.Verdict == budget.Invalid:
			worst = budget.Invalid
		case r.Verdict != budget.Pass && worst == budget.Pass:
			worst = budget.Fail
		}
	}
	return worst
}

// RunsTable is one row for each run: what first says of it, under the columns
// named, and what was offered, sent, received and lost.
func RunsTable(name string, columns []string, runs []Run, first func(i int) []any) Table {
	t := Table{Name: name, Columns: append(columns, "offered_pps", "tx_pps", "rx_pps", "offered", "sent", "received", "lost", "loss_ratio", "unexplained", "verdict")}
	for i, r := range runs {
		f := r.Frames
		t.Rows = append(t.Rows, append(first(i), number(r.Rate.OfferedPPS), number(r.Rate.TxPPS), number(r.Rate.RxPPS),
			whole(f.Offered), whole(f.Sent), whole(f.Received), whole(f.Lost), ratio(f.Lost, f.Sent), whole(f.Unexplained), string(r.Verdict)))
	}
	return t
}

// AddSum adds a last row to a table of runs: the sums of what can be summed,
// where it is known of every run.
func (t *Table) AddSum(label string) {
	sums := make([]any, len(t.Columns))
	at := map[string]int{}
	for c, name := range t.Columns {
		at[name] = c
		for i, row := range t.Rows {
			sums[c] = plus(sums[c], row[c], i == 0)
		}
	}
	sums[0] = label
	if c, ok := at["loss_ratio"]; ok {
		lost, known := sums[at["lost"]].(uint64)
		sent, also := sums[at["sent"]].(uint64)
		sums[c] = nil
		if known && also {
			sums[c] = ratio(&lost, &sent)
		}
	}
	t.Rows = append(t.Rows, sums)
}

// plus adds a cell to a sum; what is unknown, or no number, stays nil.
func plus(sum, cell any, first bool) any {
	if first {
		sum = map[bool]any{true: uint64(0), false: 0.0}[isWhole(cell)]
	}
	switch v := cell.(type) {
	case uint64:
		if s, ok := sum.(uint64); ok {
			return s + v
		}
	case float64:
		if s, ok := sum.(float64); ok {
			return s + v
		}
	}
	return nil
}

func isWhole(cell any) bool { _, yes := cell.(uint64); return yes }

func whole(n *uint64) any {
	if n == nil {
		return nil
	}
	return *n
}

func number(v *float64) any {
	if v == nil || math.IsNaN(*v) || math.IsInf(*v, 0) {
		return nil
	}
	return *v
}

func ratio(part, of *uint64) any {
	if part == nil || of == nil || *of == 0 {
		return nil
	}
	return float64(*part) / float64(*of)
}

// normal is the set as the schema wants it.
func (s Set) normal() Set {
	s.Schema = SetSchema
	runs := make([]Run, 0, len(s.Runs))
	for _, r := range s.Runs {
		runs = append(runs, r.normal())
	}
	s.Runs, s.Tables = runs, present(append([]Table(nil), s.Tables...))
	for i := range s.Tables {
		s.Tables[i].Columns, s.Tables[i].Rows = present(s.Tables[i].Columns), present(s.Tables[i].Rows)
	}
	return s
}

// WriteSetJSON writes the set as one indented document.
func WriteSetJSON(w io.Writer, s Set) error {
	data, err := json.MarshalIndent(s.normal(), "", "  ")
	if err != nil {
		return fmt.Errorf("encode set: %w", err)
	}
	return write(w, data)
}

// WriteSetLine writes the set as one line: the last of --ndjson.
func WriteSetLine(w io.Writer, s Set) error {
	data, err := json.Marshal(s.normal())
	if err != nil {
		return fmt.Errorf("encode set: %w", err)
	}
	return write(w, data)
}

// WriteSetText writes the tables of the set for a person, what is behind a run
// that did not pass, and the verdict. The error is that of w.
func WriteSetText(w io.Writer, s Set, colours bool) error {
	p := &page{colours: colours}
	for _, t := range s.Tables {
		p.table(t)
	}
	for i, r := range s.Runs {
		for _, reason := range r.Reasons {
			p.prose(fmt.Sprintf("run %d", i+1), clean(reason.Text), yellow)
		}
	}
	c := map[budget.Verdict]colour{budget.Pass: green, budget.Fail: red, budget.Invalid: yellow}[s.Verdict]
	p.prose("verdict", clean(string(s.Verdict)), c)
	if _, err := io.WriteString(w, p.b.String()); err != nil {
		return fmt.Errorf("write set: %w", err)
	}
	return nil
}

// table prints a table in columns, numbers to the right. A column that says
// nothing in any row is left out.
func (p *page) table(t Table) {
	lines := make([]strings.Builder, len(t.Rows)+1)
	for c, name := range t.Columns {
		cells := []string{strings.ReplaceAll(name, "_", " ")}
		said, text := false, false
		for _, row := range t.Rows {
			_, isText := row[c].(string)
			said, text = said || row[c] != nil, text || isText
			cells = append(cells, cell(name, row[c]))
		}
		if !said {
			continue
		}
		width := 0
		for _, s := range cells {
			width = max(width, utf8.RuneCountInString(s))
		}
		for i, s := range cells {
			gap := strings.Repeat(" ", width-utf8.RuneCountInString(s))
			if text {
				s, gap = s+gap, ""
			}
			lines[i].WriteString("  " + gap + s)
		}
	}
	for i := range lines {
		p.line(lines[i].String())
	}
	p.line("")
}

// cell prints one value in the unit that the name of its column says.
func cell(column string, v any) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case uint64:
		return wire.FormatCount(v)
	case float64:
		switch {
		case strings.HasSuffix(column, "_ratio"):
			return fmt.Sprintf("%.4f %%", v*100)
		case strings.HasSuffix(column, "_pps"):
			return wire.FormatPPS(wire.PPS(v))
		}
		return fmt.Sprintf("%g", v)
	case string:
		return clean(v)
	}
	return clean(fmt.Sprint(v))
}
