package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"linerate/internal/nettest"
)

// Every page is written, groff has nothing to say against it, and what a reader
// sees has every flag and every example.
func TestManPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "share", "man1")
	if code, stdout, stderr := invoke(t, "man", dir); code != exitPassed || stdout != "" || stderr != "" {
		t.Fatalf("exit %d, %q, %q", code, stdout, stderr)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) != len(commands())+1 {
		t.Fatalf("wrote %q, %v", pages, err)
	}
	if _, stdout, _ := invoke(t, "man"); stdout != programPage() {
		t.Errorf("man prints %q", stdout)
	}
	nettest.Require(t, nettest.Program("groff"))
	for _, path := range pages {
		name := strings.TrimSuffix(filepath.Base(path), ".1")
		if lint, err := exec.Command("groff", "-man", "-ww", "-rCHECKSTYLE=3", "-z", path).CombinedOutput(); err != nil || len(lint) > 0 {
			t.Errorf("%s: %v: %s", name, err, lint)
		}
		out, err := exec.Command("groff", "-man", "-Tascii", "-P-cbou", "-rLL=200n", path).Output()
		if err != nil {
			t.Fatal(err)
		}
		seen := string(out)
		want := []string{"NAME", "SYNOPSIS", "EXIT STATUS", "SEE ALSO", "\n       " + name + " - "}
		if c, ok := findCommand(strings.TrimPrefix(name, "linerate-")); ok {
			c.flags().VisitAll(func(f *pflag.Flag) { want = append(want, typed(f)...) })
			for _, e := range c.examples {
				want = append(want, e.line)
			}
			want = append(want, strings.Split(c.about, "\n")...)
		}
		for _, w := range want {
			if !strings.Contains(seen, w) {
				t.Errorf("%s does not show %q:\n%s", name, w, seen)
			}
		}
	}
}

// man(1) itself shows a page.
func TestManShows(t *testing.T) {
	nettest.Require(t, nettest.Program("man"), nettest.Program("groff"))
	path := filepath.Join(t.TempDir(), "linerate.1")
	if err := os.WriteFile(path, []byte(programPage()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("man", "-E", "UTF-8", "-l", path)
	cmd.Env = append(os.Environ(), "MANPAGER=cat", "MANWIDTH=80")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "linerate-demo(1)") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestManErrors(t *testing.T) {
	if code, _, stderr := invoke(t, "man", "a", "b"); code != exitUsage || !strings.Contains(stderr, "one folder") {
		t.Errorf("exit %d, %q", code, stderr)
	}
	if code, _, stderr := invoke(t, "man", "/dev/null/x"); code != exitCannotRun || !strings.Contains(stderr, "not a directory") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}
