package internal_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// checkPackageDocs: every package says in at least one sentence what it is for, under a name that means something.
func checkPackageDocs(t *tree) (bad []string) {
	vague := []string{"util", "utils", "common", "helper", "helpers", "types", "manager", "misc"}
	for _, p := range t.pkgs {
		product, said := false, false
		for _, f := range p.files {
			product = product || !f.test
			said = said || !f.test && strings.Contains(f.syntax.Doc.Text(), ".")
		}
		if product && !said {
			bad = append(bad, fmt.Sprintf("%s: no package comment of at least one sentence", p.path))
		}
		if name := p.path[strings.LastIndexByte(p.path, '/')+1:]; slices.Contains(vague, name) {
			bad = append(bad, fmt.Sprintf("%s: %q says nothing about what is in it", p.path, name))
		}
	}
	return bad
}

// wellKnown are the methods whose meaning the standard library fixes: a comment could only repeat it.
var wellKnown = []string{"Error", "String", "Unwrap"}

// checkDocs: every exported name has a doc comment; in a group, that of the group will do.
func checkDocs(t *tree) (bad []string) {
	t.each(func(f *file) bool { return !f.test && !f.generated }, func(_ *pkg, f *file) {
		for _, decl := range f.syntax.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				recv := receiver(d)
				known := recv != "" && slices.Contains(wellKnown, d.Name.Name)
				if d.Name.IsExported() && (recv == "" || ast.IsExported(recv)) && !known && d.Doc.Text() == "" {
					bad = append(bad, t.at(d.Pos(), "%s has no doc comment", funcName(d)))
				}
			case *ast.GenDecl:
				bad = append(bad, t.undocumented(d)...)
			}
		}
	})
	return bad
}

func (t *tree) undocumented(gen *ast.GenDecl) (bad []string) {
	if gen.Tok == token.IMPORT {
		return nil
	}
	for _, spec := range gen.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && s.Doc.Text() == "" && (gen.Doc.Text() == "" || gen.Lparen.IsValid()) {
				bad = append(bad, t.at(s.Pos(), "%s has no doc comment", s.Name.Name))
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() && s.Doc.Text()+s.Comment.Text()+gen.Doc.Text() == "" {
					bad = append(bad, t.at(name.Pos(), "%s has no doc comment", name.Name))
				}
			}
		}
	}
	return bad
}
