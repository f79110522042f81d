package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

var (
	makeCommand  = regexp.MustCompile("(?m)(?:`|^)(?:[A-Z_]+=[0-9a-z]+ )?make ([a-z]+)")
	markdownLink = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	makeTarget   = regexp.MustCompile(`(?m)^([a-z]+):(?:[^=]|$)`)
)

// brokenDocs finds the make targets and the files that a document names and that do not exist.
func brokenDocs(doc, makefile string, exists func(string) bool) (bad []string) {
	var targets []string
	for _, m := range makeTarget.FindAllStringSubmatch(makefile, -1) {
		targets = append(targets, m[1])
	}
	for _, m := range makeCommand.FindAllStringSubmatch(doc, -1) {
		if !slices.Contains(targets, m[1]) {
			bad = append(bad, "no such target: make "+m[1])
		}
	}
	for _, m := range markdownLink.FindAllStringSubmatch(doc, -1) {
		if !exists(m[1]) {
			bad = append(bad, "no such file: "+m[1])
		}
	}
	return bad
}

func TestDocumentsNameWhatExists(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := filepath.Glob("../*.md")
	if err != nil || len(docs) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join("..", name))
		return err == nil
	}
	for _, doc := range docs {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range brokenDocs(string(text), string(makefile), exists) {
			t.Errorf("%s: %s", doc, b)
		}
	}
}

func TestBrokenDocsAreFound(t *testing.T) {
	exists := func(name string) bool { return name == "LICENSE" }
	doc := "type `make demo`, then `X=1 make coffee`; see [the licence](LICENSE) and [that](GONE.md#part)\nmake tea # now\n"
	got := brokenDocs(doc, "X = 1\ndemo: build\n\tfoo\nbuild:\n", exists)
	want := []string{"no such target: make coffee", "no such target: make tea", "no such file: GONE.md"}
	if !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
}
