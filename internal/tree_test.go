package internal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
)

// tree is the source of the module, parsed: all that the rules look at.
// It comes from disk (load) or from memory (plant), so that a rule can be shown a bad example.
type tree struct {
	module string
	fset   *token.FileSet
	pkgs   []*pkg
}

// pkg is one package; its path is relative to the module root ("internal/wire").
type pkg struct {
	path  string
	files []*file
}

// file is one Go file; its path is relative to the module root.
type file struct {
	path      string
	syntax    *ast.File
	test      bool
	generated bool
}

// listed is the part of the output of `go list -json` that load reads.
type listed struct {
	Dir, ImportPath string
	Module          struct{ Path, Dir string }

	GoFiles, CgoFiles, IgnoredGoFiles, TestGoFiles, XTestGoFiles []string
}

// load parses every Go file of the module whose root is dir, also those for other systems.
func load(dir string) (*tree, error) {
	cmd := exec.Command("go", "list", "-json", "./...")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w: %s", dir, err, stderr.String())
	}
	t := &tree{fset: token.NewFileSet()}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			return t, nil
		} else if err != nil {
			return nil, fmt.Errorf("read go list: %w", err)
		}
		if err := t.addListed(l); err != nil {
			return nil, err
		}
	}
}

func (t *tree) addListed(l listed) error {
	t.module = l.Module.Path
	names := append([]string{}, l.GoFiles...)
	names = append(names, l.CgoFiles...)
	names = append(names, l.IgnoredGoFiles...)
	names = append(names, l.TestGoFiles...)
	names = append(names, l.XTestGoFiles...)
	rel, err := filepath.Rel(l.Module.Dir, l.Dir)
	if err != nil {
		return fmt.Errorf("place %s in the module: %w", l.Dir, err)
	}
	for _, name := range names {
		src, err := os.ReadFile(filepath.Join(l.Dir, name))
		if err != nil {
			return err
		}
		if err := t.add(path.Join(filepath.ToSlash(rel), name), src); err != nil {
			return err
		}
	}
	return nil
}

// plant makes a tree of sources in memory: path -> text.
func plant(t *testing.T, sources map[string]string) *tree {
	t.Helper()
	tr := &tree{module: "linerate", fset: token.NewFileSet()}
	paths := make([]string, 0, len(sources))
	for p := range sources {
		paths = append(paths, p)
	}
	sort.Strings(paths)
	for _, p := range paths {
		if err := tr.add(p, []byte(sources[p])); err != nil {
			t.Fatal(err)
		}
	}
	return tr
}

// add parses one file. A file that no build ever takes (`//go:build ignore`) is a tool, not part of the module.
func (t *tree) add(name string, src []byte) error {
	syntax, err := parser.ParseFile(t.fset, name, src, parser.ParseComments)
	if err != nil {
		return err
	}
	if ignored(syntax) {
		return nil
	}
	f := &file{
		path:      name,
		syntax:    syntax,
		test:      strings.HasSuffix(name, "_test.go"),
		generated: ast.IsGenerated(syntax),
	}
	dir := path.Dir(name)
	for _, p := range t.pkgs {
		if p.path == dir {
			p.files = append(p.files, f)
			return nil
		}
	}
	t.pkgs = append(t.pkgs, &pkg{path: dir, files: []*file{f}})
	return nil
}

func ignored(f *ast.File) bool {
	for _, group := range f.Comments {
		for _, c := range group.List {
			if c.Pos() > f.Package || !constraint.IsGoBuild(c.Text) {
				continue
			}
			expr, err := constraint.Parse(c.Text)
			if err == nil && !expr.Eval(func(tag string) bool { return tag != "ignore" }) && strings.Contains(c.Text, "ignore") {
				return true
			}
		}
	}
	return false
}

// each calls f for every file that keep lets through.
func (t *tree) each(keep func(*file) bool, f func(*pkg, *file)) {
	for _, p := range t.pkgs {
		for _, one := range p.files {
			if keep(one) {
				f(p, one)
			}
		}
	}
}

func anyFile(*file) bool       { return true }
func productFile(f *file) bool { return !f.test && !strings.HasPrefix(f.path, "internal/nettest/") }
func handWritten(f *file) bool { return !f.generated }
func ownProduct(f *file) bool  { return productFile(f) && handWritten(f) }
func (f *file) within(dir string) bool {
	return strings.HasPrefix(f.path, dir+"/")
}

// at writes one finding with its place.
func (t *tree) at(pos token.Pos, format string, args ...any) string {
	p := t.fset.Position(pos)
	return fmt.Sprintf("%s:%d: %s", p.Filename, p.Line, fmt.Sprintf(format, args...))
}

// local gives the path inside the module of an import, and whether it is one of the module's.
func (t *tree) local(imp string) (string, bool) {
	return strings.CutPrefix(imp, t.module+"/")
}

// importPath gives the text of an import without its quotes.
func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value
	}
	return p
}

// importsUnder says whether imp is root or a package below it.
func importsUnder(imp, root string) bool {
	return imp == root || strings.HasPrefix(imp, root+"/")
}

// find gives the first import of a package under root.
func (f *file) find(root string) (*ast.ImportSpec, bool) {
	for _, spec := range f.syntax.Imports {
		if importsUnder(importPath(spec), root) {
			return spec, true
		}
	}
	return nil, false
}

// nameOf gives the name under which the file uses the package imp, "" if it does not import it.
func (f *file) nameOf(imp string) string {
	for _, spec := range f.syntax.Imports {
		if importPath(spec) != imp {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(imp)
	}
	return ""
}

// uses calls f for every pkg.Name in node where pkg is the file's name for imp.
func (f *file) uses(node ast.Node, imp string, found func(*ast.SelectorExpr)) {
	name := f.nameOf(imp)
	if name == "" {
		return
	}
	ast.Inspect(node, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == name {
				found(sel)
			}
		}
		return true
	})
}
