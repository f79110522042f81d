package internal_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// Sizes, in lines. A function over lookHard needs an entry in longFunctions; over maxFunction nothing helps.
const (
	maxFile     = 400
	lookHard    = 60
	maxFunction = 90
)

// longFunctions lists the functions over lookHard lines that have a reason to be: "package.Func" or
// "package.Type.Method" -> the reason. An entry that no longer needs to be here is an error.
var longFunctions = map[string]string{}

// byAddress are the lookup tables that the data path reads through a pointer: their address may be taken.
var byAddress = []string{"internal/frame.crcAt"}

// linkerVars are the package-level variables that the linker sets.
var linkerVars = []string{"cmd/linerate.version"}

// checkQuiet: rule 3: outside cmd nobody prints, logs, ends the process; few start another one.
func checkQuiet(t *tree) (bad []string) {
	loud := map[string]*regexp.Regexp{
		"os":  regexp.MustCompile(`^Exit$`),
		"log": regexp.MustCompile(`.`),
		"fmt": regexp.MustCompile(`^Print`),
	}
	t.each(ownProduct, func(p *pkg, f *file) {
		if f.within("cmd") {
			return
		}
		for imp, names := range loud {
			f.uses(f.syntax, imp, func(sel *ast.SelectorExpr) {
				if names.MatchString(sel.Sel.Name) {
					bad = append(bad, t.at(sel.Pos(), "%s.%s is for cmd: take an io.Writer, return an error", imp, sel.Sel.Name))
				}
			})
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if id, ok := call.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") {
				bad = append(bad, t.at(call.Pos(), "%s is for nobody", id.Name))
			}
			return true
		})
	})
	return bad
}

// checkExec: rule 3: who may start another program.
func checkExec(t *tree) (bad []string) {
	starts := map[string][]string{"os": {"StartProcess"}, "syscall": {"ForkExec", "StartProcess"}}
	t.each(ownProduct, func(_ *pkg, f *file) {
		if mayExec.MatchString(f.path) {
			return
		}
		if spec, ok := f.find("os/exec"); ok {
			bad = append(bad, t.at(spec.Pos(), "os/exec belongs to lab/vm, the ssh transport and the asavie engine"))
		}
		for imp, names := range starts {
			f.uses(f.syntax, imp, func(sel *ast.SelectorExpr) {
				if slices.Contains(names, sel.Sel.Name) {
					bad = append(bad, t.at(sel.Pos(), "%s.%s starts a program: see mayExec", imp, sel.Sel.Name))
				}
			})
		}
	})
	return bad
}

// checkGlobals: rule 5: a package-level variable is an error value, a table, a regular expression, an embedded
// file or an interface assertion, and nobody writes to it.
func checkGlobals(t *tree) (bad []string) {
	for _, p := range t.pkgs {
		vars := map[string]*ast.ValueSpec{}
		for _, f := range p.files {
			if !ownProduct(f) {
				continue
			}
			for _, decl := range f.syntax.Decls {
				gen, ok := decl.(*ast.GenDecl)
				if !ok || gen.Tok != token.VAR {
					continue
				}
				for _, s := range gen.Specs {
					bad = append(bad, t.declared(p, gen, s.(*ast.ValueSpec), vars)...)
				}
			}
		}
		for _, f := range p.files {
			if ownProduct(f) {
				bad = append(bad, t.written(p, f, vars)...)
			}
		}
	}
	return bad
}

// declared judges the declaration of package-level variables and remembers them in vars.
func (t *tree) declared(p *pkg, gen *ast.GenDecl, spec *ast.ValueSpec, vars map[string]*ast.ValueSpec) (bad []string) {
	embedded := strings.Contains(commentLines(gen.Doc)+commentLines(spec.Doc), "//go:embed ")
	for i, name := range spec.Names {
		if name.Name == "_" || slices.Contains(linkerVars, p.path+"."+name.Name) {
			continue
		}
		vars[name.Name] = spec
		var value ast.Expr
		if i < len(spec.Values) {
			value = spec.Values[i]
		}
		if !embedded && !fixedValue(value) {
			bad = append(bad, t.at(name.Pos(), "package-level variable %s: make it a const, a field or a parameter", name.Name))
		}
	}
	return bad
}

// fixedValue says whether the initial value is that of a table, an error, a regular expression: something that
// has no reason to change. Plain values belong into a const, pointers into a constructor.
func fixedValue(value ast.Expr) bool {
	switch v := value.(type) {
	case *ast.CompositeLit:
		return true
	case *ast.CallExpr:
		id, ok := v.Fun.(*ast.Ident)
		return !ok || id.Name != "new" && id.Name != "make"
	}
	return false
}

// written finds every assignment to, and every address taken of, a package-level variable of the file's package.
func (t *tree) written(p *pkg, f *file, vars map[string]*ast.ValueSpec) (bad []string) {
	hit := func(e ast.Expr) {
		id := rootIdent(e)
		if id == nil {
			return
		}
		spec, ok := vars[id.Name]
		if ok && (id.Obj == nil || id.Obj.Decl == spec) { //nolint:staticcheck // scopes of one file are enough here
			bad = append(bad, t.at(id.Pos(), "package-level variable %s is written to", id.Name))
		}
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, lhs := range n.Lhs {
					hit(lhs)
				}
			}
		case *ast.IncDecStmt:
			hit(n.X)
		case *ast.UnaryExpr:
			id := rootIdent(n.X)
			if n.Op == token.AND && id != nil && !slices.Contains(byAddress, p.path+"."+id.Name) {
				hit(n.X)
			}
		}
		return true
	})
	return bad
}

// rootIdent gives x of x, x.f, x[i] and *x.
func rootIdent(e ast.Expr) *ast.Ident {
	for {
		switch v := e.(type) {
		case *ast.Ident:
			return v
		case *ast.SelectorExpr:
			e = v.X
		case *ast.IndexExpr:
			e = v.X
		case *ast.StarExpr:
			e = v.X
		case *ast.ParenExpr:
			e = v.X
		default:
			return nil
		}
	}
}

// checkSizes: files and functions that a reader can hold.
func checkSizes(t *tree) (bad []string) { return t.sizes(longFunctions) }

func (t *tree) sizes(allowed map[string]string) (bad []string) {
	needed := map[string]bool{}
	dirs := map[string]bool{}
	t.each(handWritten, func(p *pkg, f *file) {
		dirs[p.path] = true
		if n := t.fset.File(f.syntax.FileStart).LineCount(); n > maxFile {
			bad = append(bad, fmt.Sprintf("%s: %d lines, the limit is %d", f.path, n, maxFile))
		}
		for _, decl := range f.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := t.fset.Position(fn.End()).Line - t.fset.Position(fn.Pos()).Line + 1
			name := p.path + "." + funcName(fn)
			needed[name] = n > lookHard
			switch {
			case n > maxFunction:
				bad = append(bad, t.at(fn.Pos(), "%s has %d lines, the limit is %d", name, n, maxFunction))
			case n > lookHard && !f.test && allowed[name] == "":
				bad = append(bad, t.at(fn.Pos(), "%s has %d lines: over %d it needs a reason in longFunctions", name, n, lookHard))
			}
		}
	})
	for name := range allowed {
		if dir := name[:strings.IndexByte(name, '.')]; dirs[dir] && !needed[name] {
			bad = append(bad, fmt.Sprintf("longFunctions: %s is not long any more", name))
		}
	}
	return bad
}

func funcName(fn *ast.FuncDecl) string {
	if recv := receiver(fn); recv != "" {
		return recv + "." + fn.Name.Name
	}
	return fn.Name.Name
}

// receiver gives the name of the type that a method belongs to.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return ""
	}
	if id := rootIdent(fn.Recv.List[0].Type); id != nil {
		return id.Name
	}
	return "?"
}

func isTypeDecl(gen *ast.GenDecl) bool { return gen.Tok == token.TYPE }

// commentLines gives a comment with its directives, which (*ast.CommentGroup).Text leaves out.
func commentLines(group *ast.CommentGroup) string {
	var b strings.Builder
	if group != nil {
		for _, c := range group.List {
			b.WriteString(c.Text + "\n")
		}
	}
	return b.String()
}
