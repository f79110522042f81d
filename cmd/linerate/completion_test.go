package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"linerate/internal/nettest"
)

// script writes the completion of a shell to a file.
func script(t *testing.T, shell string) string {
	t.Helper()
	code, text, stderr := invoke(t, "completion", shell)
	if code != exitPassed {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	path := filepath.Join(t.TempDir(), "linerate."+shell)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// askBash has a real bash call the completion, with the words that it would
// have been given, the last one under the cursor.
const askBash = `set -eu
source "$1"; shift
compopt() { :; }    # only while completing
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
spec=$(complete -p linerate)
[[ $spec =~ -F\ ([^ ]+) ]]
"${BASH_REMATCH[1]}" linerate "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
((${#COMPREPLY[@]} == 0)) || printf '%s\n' "${COMPREPLY[@]}"
`

func TestBashCompletes(t *testing.T) {
	nettest.Require(t, nettest.Program("bash"))
	path := script(t, "bash")
	ask := func(words ...string) []string {
		t.Helper()
		cmd := exec.Command("bash", append([]string{"--norc", "-c", askBash, "bash", path, "linerate"}, words...)...)
		cmd.Dir = filepath.Dir(path)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil || stderr.Len() > 0 {
			t.Fatalf("%q: %v: %s", words, err, stderr.String())
		}
		return strings.Fields(string(out))
	}
	for _, c := range []struct{ typed, want string }{ // the last word is under the cursor
		{"d", "demo"},
		{"", strings.Join(commandNames(), " ") + " --help --version"},
		{"run|--max", "--max-loss --max-rate-error"},
		{"run|--engine|", "xsk asavie live"},
		{"run|--engine|a", "asavie"},
		{"run|--rx-mode|=|co", "copy"}, // as bash cuts --rx-mode=co
		{"run|--rx-mode|=", "auto zerocopy copy generic"},
		{"sink|eth1|--action|d", "drop"},
		{"blast|--action|d", ""}, // not a flag of blast: anything, which is no word, no file
		{"run|--rate|", ""},
		{"run|-o|line", "linerate.bash"},
		{"man|line", "linerate.bash"},
		{"lab|", "up down exec list"},
		{"lab|up|", ""},
		{"completion|", "bash zsh fish"},
		{"help|b", "blast"},
		{"blast|lo", "lo"}, // every host has this interface
		{"run|--tx|lo", "lo"},
		{"nonsense|--", ""},
	} {
		if got := ask(strings.Split(c.typed, "|")...); !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%q: offers %q, want %q", c.typed, got, strings.Fields(c.want))
		}
	}
	for _, c := range commands() {
		var want []string
		c.eachFlag(func(f *pflag.Flag) { want = append(want, typed(f)...) })
		if got := ask(c.name, "-"); !slices.Equal(got, want) {
			t.Errorf("%s -: offers %q, want %q", c.name, got, want)
		}
	}
}

// The other shells read their scripts without a complaint; fish also answers.
func TestOtherShells(t *testing.T) {
	t.Run("zsh", func(t *testing.T) {
		nettest.Require(t, nettest.Program("zsh"))
		path := script(t, "zsh")
		if out, err := exec.Command("zsh", "-f", "-n", path).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("syntax: %v: %s", err, out)
		}
		load := `autoload -Uz compinit && compinit -D -u && source "$1" && print -r -- $_comps[linerate]`
		if out, err := exec.Command("zsh", "-f", "-c", load, "zsh", path).CombinedOutput(); err != nil || string(out) != "_linerate\n" {
			t.Errorf("load: %v: %s", err, out)
		}
	})
	t.Run("fish", func(t *testing.T) {
		nettest.Require(t, nettest.Program("fish"))
		path := script(t, "fish")
		home := "HOME=" + t.TempDir() // fish writes there
		fish := func(args ...string) string {
			cmd := exec.Command("fish", append([]string{"--no-config"}, args...)...)
			cmd.Env = append(os.Environ(), home)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%q: %v: %s", args, err, out)
			}
			return string(out)
		}
		if out := fish("--no-execute", path); out != "" {
			t.Errorf("syntax: %s", out)
		}
		for typed, want := range map[string]string{
			"linerate ceil": "ceiling", "linerate run --engine a": "asavie", "linerate demo --max-l": "--max-loss",
			"linerate completion z": "zsh", "linerate lab d": "down",
		} {
			out := fish("-c", `source $argv[1]; complete -C $argv[2]`, path, typed)
			offered, _, _ := strings.Cut(strings.TrimSpace(out), "\t")
			if offered != want || strings.Count(out, "\n") != 1 {
				t.Errorf("%q: offers %q, want %q", typed, out, want)
			}
		}
	})
}

func TestCompletionUsage(t *testing.T) {
	for _, args := range [][]string{{"completion"}, {"completion", "tcsh"}, {"completion", "bash", "zsh"}} {
		if code, stdout, stderr := invoke(t, args...); code != exitUsage || stdout != "" || !strings.Contains(stderr, "bash") {
			t.Errorf("%v: exit %d, %q, %q", args, code, stdout, stderr)
		}
	}
}
