package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

const aboutProgram = "linerate drives 10GbE at line rate over AF_XDP and says where every frame went."

// programExamples are the command lines to begin with.
func programExamples() []example {
	return []example{
		{"linerate demo", "a throw-away lab, 3 s of frames, the budget"},
		{"linerate run --tx eth1 --rx eth2 --rate 1Mpps", "two ports of this host, joined by a cable"},
		{"linerate ceiling --frame 64", "what 10GbE can carry at most"},
		{"linerate help run", "the flags of one command"},
	}
}

func helpCommand() command {
	return command{
		name: "help", job: "what there is, or the flags and examples of one command", synopsis: "help [COMMAND]",
		about:    `Prints the commands, or the flags and examples of one of them.`,
		examples: []example{{"linerate help", ""}, {"linerate help run", ""}},
		flags:    noFlags("help"),
		run:      runHelp,
	}
}

func runHelp(_ context.Context, stdout, _ io.Writer, args []string) error {
	fs := newFlags("help")
	if err := parse(stdout, fs, args); err != nil {
		return err
	}
	if fs.NArg() == 0 {
		return unwritten(printHelp(stdout))
	}
	c, ok := findCommand(fs.Arg(0))
	if !ok {
		return unknownCommand(fs.Arg(0))
	}
	return unwritten(c.help(stdout))
}

func versionCommand() command {
	return command{
		name: "version", job: "the version of this program", synopsis: "version",
		about: `Prints the name and the version of this program.`, examples: []example{{"linerate version", ""}},
		flags: noFlags("version"),
		run: func(_ context.Context, stdout, _ io.Writer, args []string) error {
			fs := newFlags("version")
			if err := parse(stdout, fs, args); err != nil {
				return err
			}
			if err := noMore(fs); err != nil {
				return err
			}
			_, err := fmt.Fprintln(stdout, "linerate", version)
			return unwritten(err)
		},
	}
}

// unwritten marks an error of the output.
func unwritten(err error) error {
	if err != nil {
		return &unwrittenError{err}
	}
	return nil
}

func printHelp(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nusage: linerate COMMAND [ARGS] [FLAGS]\n\n", aboutProgram)
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-12s%s\n", c.name, c.job)
	}
	b.WriteString("\nexamples:\n" + exampleText(programExamples()))
	_, err := io.WriteString(w, b.String())
	return err
}

// help prints all there is to say of one command.
func (c command) help(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "usage: linerate %s\n\n%s\n\nexamples:\n%s", c.usage(), c.about, exampleText(c.examples))
	if fs := c.flags(); fs.HasFlags() {
		b.WriteString("\nflags:\n" + fs.FlagUsages())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// usage is how to type a command, without the program's name.
func (c command) usage() string {
	if c.flags().HasFlags() {
		return c.synopsis + " [FLAGS]"
	}
	return c.synopsis
}

// exampleText sets the notes of examples below each other.
func exampleText(examples []example) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for _, e := range examples {
		if e.note == "" {
			fmt.Fprintf(t, "  %s\n", e.line)
			continue
		}
		fmt.Fprintf(t, "  %s\t# %s\n", e.line, e.note)
	}
	_ = t.Flush() // into memory
	return b.String()
}
