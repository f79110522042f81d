package report_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"linerate/internal/budget"
	"linerate/internal/report"
	"linerate/internal/report/schematest"
)

var update = flag.Bool("update", false, "write the golden documents anew")

// golden compares got with a file, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestGoldenDocuments(t *testing.T) {
	for name, run := range examples() {
		var b bytes.Buffer
		if err := report.WriteJSON(&b, run); err != nil {
			t.Fatal(err)
		}
		if err := schematest.Validate(b.Bytes()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := budget.Check(run.Budget); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := run.Frames.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		golden(t, name+".json", b.Bytes())
	}
}

// What the contract says of each example.
func TestExamplesAreWhatTheySay(t *testing.T) {
	known := func(n *uint64) int64 {
		if n == nil {
			return -1
		}
		return int64(*n)
	}
	tests := []struct {
		name                                         string
		verdict                                      budget.Verdict
		unexplained, lost, received, refused, unsent int64
	}{
		{"demo", budget.Pass, 0, 0, 300_000, 0, 0},
		{"blast", budget.Pass, -1, -1, -1, 3, 12},
		{"sink", budget.Pass, -1, 0, 300_000, -1, -1},
		{"sink-no-end", budget.Invalid, -1, -1, 250_000, -1, -1},
		{"overload", budget.Pass, 0, 1203, 4_003_311, 95_278, 208},
		{"lost-one", budget.Fail, 1, 1, 299_999, 0, 0},
		{"link-down", budget.Invalid, 0, 187, 154_813, 0, 145_000},
	}
	for _, tt := range tests {
		run := examples()[tt.name]
		f := run.Frames
		got := []int64{known(f.Unexplained), known(f.Lost), known(f.Received), known(f.Refused), known(f.Unsent)}
		want := []int64{tt.unexplained, tt.lost, tt.received, tt.refused, tt.unsent}
		if diff := cmp.Diff(want, got); diff != "" || run.Verdict != tt.verdict {
			t.Errorf("%s: verdict %s, want %s; unexplained, lost, received, refused, unsent (-want +got):\n%s",
				tt.name, run.Verdict, tt.verdict, diff)
		}
	}
	open := lostOne().Closed.Residuals
	for _, r := range open {
		if (r.Frames != 0) != (r.Boundary == budget.Wire) {
			t.Errorf("one frame lost on the wire: %+v", r)
		}
	}
}

func TestGoldenText(t *testing.T) {
	for name, run := range examples() {
		plain, coloured := text(t, run, false), text(t, run, true)
		golden(t, name+".txt", []byte(plain))
		golden(t, name+".colour.txt", []byte(strings.ReplaceAll(coloured, "\x1b", `\e`)))
		if strings.Contains(plain, "\x1b") {
			t.Errorf("%s: colour that nobody asked for", name)
		}
		if stripped := sgr.ReplaceAllString(coloured, ""); stripped != plain {
			t.Errorf("%s: colours change the text:\n%s", name, cmp.Diff(plain, stripped))
		}
		lines := strings.Split(strings.TrimSuffix(plain, "\n"), "\n")
		if len(lines) > 27 {
			t.Errorf("%s: %d lines", name, len(lines))
		}
		for _, line := range lines {
			if utf8.RuneCountInString(line) > 100 {
				t.Errorf("%s: over 100 columns: %s", name, line)
			}
		}
	}
}
