package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func ceilingOutput(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if err := runCeiling(context.Background(), &stdout, &stderr, args); err != nil && !errors.Is(err, pflag.ErrHelp) {
		t.Fatalf("ceiling %q: %v", args, err)
	}
	if stderr.Len() > 0 {
		t.Errorf("ceiling %q wrote to stderr: %s", args, &stderr)
	}
	return stdout.String()
}

func TestCeilingGolden(t *testing.T) {
	for name, args := range map[string]string{
		"default.txt":   "",
		"frame-64.txt":  "--frame 64",
		"mtu-1500.txt":  "--mtu 1500 --vlan 1 --timestamps",
		"ipv6-qinq.txt": "--frame 64,1518 --ipv6 --timestamps --vlan 2 --speed 2.5G",
		"rfc2544.txt":   "--frame 64,128,256,512,1024,1280,1518",
		"mtu-9000.json": "--mtu 9000 --timestamps --json",
		"no-room.json":  "--frame 64 --ipv6 --timestamps --json",
		"help.txt":      "--help",
	} {
		t.Run(name, func(t *testing.T) {
			want, err := os.ReadFile(filepath.Join("testdata", "ceiling", name))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), ceilingOutput(t, strings.Fields(args)...)); diff != "" {
				t.Errorf("ceiling %s (-want +got):\n%s", args, diff)
			}
		})
	}
}

// The least frames of the tag, as measured rules give them.
func TestCeilingLeastFrame(t *testing.T) {
	for args, want := range map[string][2]int{
		"":                {64, 64},
		"--vlan 1":        {68, 64},
		"--vlan 2":        {72, 64},
		"--ipv6":          {84, 76},
		"--ipv6 --vlan 1": {88, 80},
		"--ipv6 --vlan 2": {92, 84},
	} {
		var doc ceilingDocument
		out := ceilingOutput(t, append(strings.Fields(args), "--json")...)
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatal(err)
		}
		if got := [2]int{doc.LeastFrame, doc.LeastFrameShort}; got != want {
			t.Errorf("ceiling %s: least frames %v, want %v", args, got, want)
		}
	}
}

func TestCeilingUsage(t *testing.T) {
	for args, want := range map[string][2]string{
		"--frame 63":             {"--frame \"63\"", "imix"},
		"--frame 64-1518":        {"1455 sizes", "at most 8"},
		"--frame 64 --mtu 1500":  {"--frame and --mtu", "one of them"},
		"--mtu 0":                {"--mtu 0", "from 46 to 9710"},
		"--mtu 9707 --vlan 1":    {"--mtu 9707", "from 42 to 9706"},
		"--vlan 3":               {"--vlan 3", "number of tags"},
		"--vlan -1":              {"--vlan -1", "number of tags"},
		"--speed 10":             {"--speed \"10\"", "10G"},
		"--speed fast":           {"--speed \"fast\"", "10G"},
		"--no-such-flag":         {"no-such-flag", "help ceiling"},
		"64":                     {"unexpected \"64\"", "flags only"},
		"--frame imix --mtu x":   {"mtu", "help ceiling"},
		"--frame 1,2 --json":     {"--frame \"1,2\"", "64"},
		"--json --frame 64,,128": {"not a frame length", "imix"},
	} {
		var stdout, stderr bytes.Buffer
		err := runCeiling(context.Background(), &stdout, &stderr, strings.Fields(args))
		var usage *usageError
		if !errors.As(err, &usage) {
			t.Errorf("ceiling %s: error %v, want a *usageError", args, err)
			continue
		}
		if !strings.Contains(usage.Text, want[0]) || !strings.Contains(usage.Remedy, want[1]) {
			t.Errorf("ceiling %s: %+v, want %q", args, usage, want)
		}
		if stdout.Len() > 0 {
			t.Errorf("ceiling %s printed %q all the same", args, &stdout)
		}
	}
}

// full is an output that takes nothing.
type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestCeilingOutputFails(t *testing.T) {
	for _, arg := range []string{"--json", "--ipv6", "--help"} {
		err := runCeiling(context.Background(), full{}, full{}, []string{arg})
		if !errors.Is(err, errFull) {
			t.Errorf("ceiling %s: error %v, want that of the output", arg, err)
		}
	}
}
