package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Every example of the help is a command line that its command's own flags
// accept, and every flag's value as well where that can be told.
func TestExamplesParse(t *testing.T) {
	all := programExamples()
	for _, c := range commands() {
		if len(c.examples) == 0 {
			t.Errorf("%s has no example", c.name)
		}
		for _, e := range c.examples {
			if words := strings.Fields(e.line); len(words) < 2 || words[1] != c.name {
				t.Errorf("example %q of %s is of another command", e.line, c.name)
			}
		}
		all = append(all, c.examples...)
	}
	for _, e := range all {
		words := strings.Fields(e.line)
		if len(words) < 2 || words[0] != "linerate" {
			t.Errorf("%q is no command line of ours", e.line)
			continue
		}
		c, ok := findCommand(words[1])
		if !ok {
			t.Errorf("%q: no such command", e.line)
			continue
		}
		fs := c.flags()
		fs.SetInterspersed(c.name != "lab" || words[2] != "exec")
		if err := fs.Parse(words[2:]); err != nil {
			t.Errorf("%q: %v", e.line, err)
			continue
		}
		switch {
		case c.endpoint && fs.NArg() != 1:
			t.Errorf("%q: want one endpoint", e.line)
		case len(c.firstWords()) > 0 && fs.NArg() > 0 && !slices.Contains(c.firstWords(), fs.Arg(0)):
			t.Errorf("%q: no word %q", e.line, fs.Arg(0))
		case !c.endpoint && !c.files && len(c.firstWords()) == 0 && fs.NArg() > 0:
			t.Errorf("%q: arguments %q", e.line, fs.Args())
		}
	}
}

// Examples that need no interface run.
func TestExamplesRun(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("mix.yaml", []byte(streamsSample), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range commands() {
		if slices.Contains([]string{"demo", "run", "blast", "sink", "lab"}, c.name) {
			continue
		}
		for _, e := range c.examples {
			if strings.Contains(e.line, "/") {
				continue // writes there
			}
			if code, stdout, stderr := invoke(t, strings.Fields(e.line)[1:]...); code != exitPassed || stdout == "" || stderr != "" {
				t.Errorf("%q: exit %d, stdout %q, stderr %q", e.line, code, stdout, stderr)
			}
		}
	}
}

// help COMMAND and COMMAND --help are the same, for every command, and show
// every flag.
func TestHelp(t *testing.T) {
	_, top, _ := invoke(t, "help")
	for _, c := range commands() {
		if !strings.Contains(top, c.name) || !strings.Contains(top, c.job) {
			t.Errorf("help does not list %s", c.name)
		}
		code, text, _ := invoke(t, "help", c.name)
		if code != exitPassed || !strings.Contains(text, "usage: linerate "+c.synopsis) {
			t.Errorf("help %s: exit %d, %q", c.name, code, text)
		}
		if code, other, _ := invoke(t, c.name, "--help"); code != exitPassed || other != text {
			t.Errorf("%s --help: exit %d, %q", c.name, code, other)
		}
		for _, line := range strings.Split(strings.TrimSpace(c.flags().FlagUsages()), "\n") {
			if !strings.Contains(text, strings.TrimSpace(line)) {
				t.Errorf("help %s does not show %q", c.name, line)
			}
		}
	}
	for _, args := range []string{"", "-h", "--help", "help"} {
		if code, text, _ := invoke(t, strings.Fields(args)...); code != exitPassed || text != top {
			t.Errorf("linerate %s: exit %d, %q", args, code, text)
		}
	}
	if code, _, stderr := invoke(t, "help", "nonsense"); code != exitUsage || !strings.Contains(stderr, "nonsense") {
		t.Errorf("help nonsense: exit %d, %q", code, stderr)
	}
}
