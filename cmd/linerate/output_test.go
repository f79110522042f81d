package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"linerate/internal/budget"
	"linerate/internal/nettest"
	"linerate/internal/report"
)

// passed is the least document that passes.
func passed() report.Run { return report.Run{RunID: "test", Verdict: budget.Pass} }

// A file is replaced as a whole; what is no plain file is written to and stays
// what it is: -o /dev/null must not leave the host without /dev/null.
func TestWriteFileKeepsWhatIsThere(t *testing.T) {
	nettest.Require(t, nettest.Root)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, minor := range map[string]uint32{"null": 3, "full": 7} {
		if err := unix.Mknod(at(name), unix.S_IFCHR|0o600, int(unix.Mkdev(1, minor))); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"dangling": "made", "linked": at("plain"), "to-null": "null"} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(at("plain"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"null", "full", "dangling", "linked", "to-null"} {
		before, err := os.Lstat(at(name))
		if err != nil {
			t.Fatal(err)
		}
		err = writeFile(at(name), func(w io.Writer) error { return report.WriteJSON(w, passed()) })
		if (name == "full") != errors.Is(err, unix.ENOSPC) || name != "full" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if after, err := os.Lstat(at(name)); err != nil || after.Mode().Type() != before.Mode().Type() {
			t.Errorf("%s was %s and is %v, %v", name, before.Mode(), after, err)
		}
	}
	for _, name := range []string{"plain", "made"} {
		if data, err := os.ReadFile(at(name)); err != nil || !bytes.Contains(data, []byte(report.RunSchema)) {
			t.Errorf("%s holds %q, %v", name, data, err)
		}
	}
	if left, _ := filepath.Glob(at(".linerate-*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// An -o that cannot be written, found out when the run is over, costs nobody
// the result on stdout, and puts no second document there.
func TestResultSurvivesTheFile(t *testing.T) {
	for _, flags := range []outputFlags{{file: "/no/such/place"}, {file: "/no/such/place", json: true}} {
		var stdout, stderr bytes.Buffer
		o := &output{flags: flags, stdout: &stdout, stderr: &stderr}
		err := o.finish(passed(), false)
		if code := exitCode(err, &stdout, &stderr, flags.json); code != exitCannotRun {
			t.Errorf("exit %d, want %d", code, exitCannotRun)
		}
		if strings.Count(stdout.String(), "pass") != 1 || strings.Contains(stdout.String(), report.ErrorSchema) {
			t.Errorf("stdout holds %q", stdout.String())
		}
		if !strings.Contains(stderr.String(), "/no/such/place") {
			t.Errorf("stderr holds %q", stderr.String())
		}
	}
}

// What Ctrl-C cut short before there was a result is an interruption.
func TestInterruptedBeforeAResult(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := exitCode(errors.Join(context.Canceled), &stdout, &stderr, true); code != exitInterrupted || !strings.Contains(stdout.String(), `"interrupted"`) {
		t.Errorf("exit %d, stdout %q", code, stdout.String())
	}
}
