// Package internal_test holds the rules that all packages keep, as tests: who may import what, how long a file
// may be, what has to be documented. Every rule is itself shown an example that breaks it.
package internal_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rules are all the checks, by the name of the subtest.
var rules = map[string]func(*tree) []string{
	"layers":       checkLayers,
	"pure":         checkPure,
	"libraries":    checkLibraries,
	"users":        checkUsers,
	"unsafe":       checkUnsafe,
	"quiet":        checkQuiet,
	"exec":         checkExec,
	"globals":      checkGlobals,
	"sizes":        checkSizes,
	"docs":         checkDocs,
	"package-docs": checkPackageDocs,
}

func TestRules(t *testing.T) {
	tr, err := load("..")
	if err != nil {
		t.Fatal(err)
	}
	for name, check := range rules {
		t.Run(name, func(t *testing.T) {
			for _, bad := range check(tr) {
				t.Error(bad)
			}
		})
	}
}

func TestPurePackagesBuildElsewhere(t *testing.T) {
	var here []string
	for _, p := range pure {
		if found, err := filepath.Glob("../" + p + "/*.go"); err == nil && len(found) > 0 {
			here = append(here, "./"+p)
		}
	}
	if len(here) == 0 {
		return
	}
	if err := buildElsewhere("..", here); err != nil {
		t.Error(err)
	}
}

func TestBuildElsewhereCatchesLinux(t *testing.T) {
	for text, ok := range map[string]bool{
		"package p\n\nimport \"syscall\"\n\nvar _ = syscall.SYS_EPOLL_CREATE1\n": false,
		"package p\n": true,
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "go.mod"), "module p\n\ngo 1.26\n")
		write(t, filepath.Join(dir, "p.go"), text)
		if err := buildElsewhere(dir, []string{"."}); (err == nil) != ok {
			t.Errorf("%q: built is %v, want %v: %v", text, err == nil, ok, err)
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// example breaks one rule, or keeps all of them when bad is empty.
type example struct {
	name, rule string
	src        map[string]string
	bad        string // part of the one finding
}

func one(path, text string) map[string]string { return map[string]string{path: text} }

func lines(n int) string { return strings.Repeat("\t_ = 0\n", n) }

func TestRulesCatch(t *testing.T) {
	seen := map[string]bool{}
	for _, ex := range append(importExamples, sourceExamples...) {
		seen[ex.rule] = seen[ex.rule] || ex.bad != ""
		t.Run(ex.rule+"/"+ex.name, func(t *testing.T) {
			got := rules[ex.rule](plant(t, ex.src))
			switch {
			case ex.bad == "" && len(got) > 0:
				t.Errorf("a good example is refused: %q", got)
			case ex.bad != "" && (len(got) != 1 || !strings.Contains(got[0], ex.bad)):
				t.Errorf("got %q, want one finding with %q", got, ex.bad)
			}
		})
	}
	for name := range rules {
		if !seen[name] {
			t.Errorf("no example breaks the rule %q", name)
		}
	}
}

func TestLongFunctionsAllowed(t *testing.T) {
	tr := plant(t, one("xsk/a.go", "package xsk\n\nfunc (s *S) f() {\n"+lines(70)+"}\n"))
	if got := tr.sizes(map[string]string{"xsk.S.f": "numbered steps"}); len(got) != 0 {
		t.Errorf("a listed function is refused: %q", got)
	}
	stale := map[string]string{"xsk.S.f": "numbered steps", "xsk.gone": "?", "bpf.notYet": "?"}
	got := tr.sizes(stale)
	if !slices.Equal(got, []string{"longFunctions: xsk.gone is not long any more"}) {
		t.Errorf("stale entries: %q", got)
	}
}

func TestLoadSeesOtherSystemsAndSkipsTools(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module linerate\n\ngo 1.26\n")
	for name, text := range map[string]string{
		"p.go": "package p\n", "p_windows.go": "package p\n", "p_test.go": "package p\n", "x_test.go": "package p_test\n",
		"gen.go": "//go:build ignore\n\npackage main\n", "other.go": "//go:build !linux\n\npackage p\n",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	tr, err := load(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	tr.each(anyFile, func(_ *pkg, f *file) { got = append(got, f.path) })
	slices.Sort(got)
	if want := []string{"other.go", "p.go", "p_test.go", "p_windows.go", "x_test.go"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func blank(n int) string { return strings.Repeat("\n", n) }
