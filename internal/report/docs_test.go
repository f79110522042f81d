package report_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"linerate/internal/budget"
	"linerate/internal/report"
)

const docsPath = "../../DOCUMENTS.md"

// DOCUMENTS.md lists every row and every warning there is, from the tables
// that the program itself uses.
func TestDocumentsListRowsAndWarnings(t *testing.T) {
	want := docs()
	if *update {
		if err := os.WriteFile(filepath.FromSlash(docsPath), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(filepath.FromSlash(docsPath))
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Error("DOCUMENTS.md is not what the tables say: go test ./internal/report -update")
	}
}

func docs() string {
	var b strings.Builder
	b.WriteString(`# The documents

` + "`--json`" + ` prints one document, ` + "`--ndjson`" + ` one line an interval and the document of the run as the last. The
JSON Schemas are in [internal/report/schema](internal/report/schema); golden documents, made by real runs, in
[cmd/linerate/testdata/golden](cmd/linerate/testdata/golden). Keys are added, never renamed. A number that is not known
is null, never 0 and never absent. This file is made from the program's own tables by
` + "`go test ./internal/report -update`" + `.

## Rows of the budget

A row says what one counter counted during the run: a checkpoint that every frame passes, a loss, a gain, or frames held
in a ring that an event emptied. At each boundary before + gains - losses - held = after.

| row | where | what it counts |
|---|---|---|
`)
	for _, d := range budget.Definitions() {
		var places []string
		for _, p := range d.Places {
			places = append(places, fmt.Sprintf("%s (%s)", p.Boundary, p.Kind))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", d.Row, strings.Join(places, ", "), d.Meaning)
	}
	b.WriteString(`
## Warnings

A warning that invalidates makes the verdict ` + "`invalid`" + `: the measurement is worth nothing, whatever its numbers say.

| code | invalidates | text | remedy |
|---|---|---|---|
`)
	for _, c := range report.Codes() {
		yes := ""
		if c.Invalidates {
			yes = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.Code, yes, strings.ReplaceAll(c.Text, "|", "\\|"), c.Remedy)
	}
	return b.String()
}
