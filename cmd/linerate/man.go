package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
)

func manCommand() command {
	return command{
		name: "man", job: "manual pages: of the program to stdout, or all into a folder", synopsis: "man [DIR]",
		about: `Prints linerate(1) in troff, or writes it and one page for each command into the
folder DIR, which is made if it is not there.`,
		examples: []example{
			{"linerate man", "linerate man | man -l - shows it"},
			{"linerate man /usr/local/share/man/man1", ""},
		},
		files: true,
		flags: noFlags("man"),
		run:   runMan,
	}
}

func runMan(_ context.Context, stdout, _ io.Writer, args []string) error {
	fs := newFlags("man")
	if err := parse(stdout, fs, args); err != nil {
		return err
	}
	switch fs.NArg() {
	case 0:
		_, err := io.WriteString(stdout, programPage())
		return unwritten(err)
	case 1:
		return writePages(fs.Arg(0))
	}
	return &usageError{fmt.Sprintf("man takes one folder, got %d", fs.NArg()), "linerate man man1"}
}

// writePages writes every page into a folder.
func writePages(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder %s: %w", dir, cause(err))
	}
	pages := map[string]string{"linerate.1": programPage()}
	for _, c := range commands() {
		pages["linerate-"+c.name+".1"] = c.page()
	}
	for name, text := range pages {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return fmt.Errorf("write %s: %w", path, cause(err))
		}
	}
	return nil
}

// manPage is a page under way, in the man macros of groff_man(7).
type manPage struct{ bytes.Buffer }

func newManPage(name, what string) *manPage {
	p := &manPage{}
	fmt.Fprintf(p, ".TH %s 1 \"\" \"linerate %s\" \"User Commands\"\n", strings.ToUpper(troff(name)), troff(version))
	p.section("NAME")
	fmt.Fprintf(p, "%s \\- %s\n", troff(name), troff(what))
	return p
}

func (p *manPage) section(name string) { fmt.Fprintf(p, ".SH %s\n", name) }

// item is one entry of a list: a term in bold, and what there is to say of it.
func (p *manPage) item(term, text string) {
	fmt.Fprintf(p, ".TP\n.B %s\n%s\n", troff(term), troffText(text))
}

// block keeps the lines as they are.
func (p *manPage) block(text string) {
	fmt.Fprintf(p, ".nf\n%s\n.fi\n", troffText(strings.TrimRight(text, "\n")))
}

func (p *manPage) examples(examples []example) {
	p.section("EXAMPLES")
	p.block(exampleText(examples))
}

func (p *manPage) exitStatus() {
	p.section("EXIT STATUS")
	for _, e := range []struct {
		code int
		what string
	}{
		{exitPassed, "done and passed"}, {exitFailed, "the run failed: loss over the limit, or an invalid run"},
		{exitUsage, "a command line that cannot be carried out"},
		{exitCannotRun, "could not run here: permission, feature or interface"},
		{exitInterrupted, "interrupted; the partial result was printed"},
	} {
		p.item(fmt.Sprint(e.code), e.what)
	}
}

// programPage is linerate(1).
func programPage() string {
	p := newManPage("linerate", strings.TrimSuffix(strings.TrimPrefix(aboutProgram, "linerate "), "."))
	p.section("SYNOPSIS")
	p.WriteString(".B linerate\n.I COMMAND\n[ARGS] [FLAGS]\n")
	p.section("COMMANDS")
	for _, c := range commands() {
		p.item("linerate "+c.usage(), c.job)
	}
	p.examples(programExamples())
	p.exitStatus()
	p.section("SEE ALSO")
	var also []string
	for _, c := range commands() {
		also = append(also, ".BR linerate\\-"+troff(c.name)+" (1)")
	}
	p.WriteString(strings.Join(also, ",\n") + "\n")
	return p.String()
}

// page is linerate-COMMAND(1), of the same definitions as the help.
func (c command) page() string {
	p := newManPage("linerate-"+c.name, c.job)
	p.section("SYNOPSIS")
	fmt.Fprintf(p, ".B %s\n", troff("linerate "+c.usage()))
	p.section("DESCRIPTION")
	p.block(c.about)
	if fs := c.flags(); fs.HasFlags() {
		p.section("OPTIONS")
		fs.VisitAll(func(f *pflag.Flag) { p.item(manFlag(f)) })
	}
	p.examples(c.examples)
	p.exitStatus()
	p.section("SEE ALSO")
	p.WriteString(".BR linerate (1)\n")
	return p.String()
}

// manFlag is the term and the text of one flag.
func manFlag(f *pflag.Flag) (term, text string) {
	kind, text := pflag.UnquoteUsage(f)
	term = strings.Join(typed(f), ", ")
	if takesValue(f) {
		term += " " + kind
	}
	switch f.DefValue {
	case "", "0", "false", "0s", "[]":
	default:
		text += fmt.Sprintf(" (default %s)", f.DefValue)
	}
	return term, text
}

// troff escapes a text: a hyphen that is to be typed is \-, and a backslash
// would begin an escape.
func troff(s string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
}

// troffText escapes lines: one that begins with a dot or a quote would be a
// request.
func troffText(s string) string {
	lines := strings.Split(troff(s), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
