package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const streamsExamples = "../../internal/stream/testdata/"

// A stream is shown layer by layer, from its bytes.
func TestStreamsShow(t *testing.T) {
	code, out, stderr := invoke(t, "streams", "show", streamsExamples+"protocols.yaml", "--stream", "icmp", "--frames", "2", "--hex")
	if code != exitPassed || stderr != "" {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for _, line := range []string{
		"stream 7 icmp: eth/ipv4/icmp, mean frame 81.5 B, rate max",
		"no test tag, so its frames are only counted: only UDP",
		"  frame 1, 99 B",
		"    icmp type echo-reply code 0 id 77 seq 1 checksum 0x",
		"    payload bytes 18 hex deadbeef01deadbeef01deadbeef01de...",
		"    receiver says untagged",
		"    0010  00 2e 00 00 40 00 40 01 ",
	} {
		if !strings.Contains(out, line) {
			t.Errorf("no %q in\n%s", line, out)
		}
	}
	if n := strings.Count(out, "  frame "); n != 2 {
		t.Errorf("%d frames shown, want 2", n)
	}
}

// Every example can be shown as one document.
func TestStreamsShowJSON(t *testing.T) {
	for name, want := range map[string]int{"protocols.yaml": 16, "rates.yaml": 4, "wrong.yaml": 8} {
		code, out, stderr := invoke(t, "streams", "show", streamsExamples+name, "--json")
		if code != exitPassed || stderr != "" {
			t.Fatalf("%s: exit %d: %s", name, code, stderr)
		}
		var doc streamsDocument
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if doc.Schema != "linerate.streams/1" || len(doc.Streams) != want {
			t.Errorf("%s: schema %s, %d streams, want %d", name, doc.Schema, len(doc.Streams), want)
		}
		for _, s := range doc.Streams {
			for k, f := range s.Frames {
				if f.Index != k || len(f.Hex) != 2*(f.Frame-4) || f.Layers[0].Layer != "eth" || f.Layers[0].Fields["src"] == "" {
					t.Errorf("%s: frame %+v", s.Name, f)
				}
			}
		}
	}
}

// The file that the help shows is one.
func TestStreamsHelp(t *testing.T) {
	code, out, _ := invoke(t, "help", "streams")
	if code != exitPassed || !strings.Contains(out, streamsSample) || !strings.Contains(out, "--frames") {
		t.Errorf("exit %d: %s", code, out)
	}
	path := filepath.Join(t.TempDir(), "sample.yaml")
	if err := os.WriteFile(path, []byte(streamsSample), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, stderr := invoke(t, "streams", "show", path); code != exitPassed || strings.Count(out, "receiver says good") != 3 {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
}

func TestStreamsSchema(t *testing.T) {
	code, out, _ := invoke(t, "streams", "schema")
	if code != exitPassed || !json.Valid([]byte(out)) || !strings.Contains(out, "flow_label") {
		t.Errorf("exit %d: %.200s", code, out)
	}
}

// What is wrong with the file is usage; that it is not there is not.
func TestStreamsErrors(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("streams:\n  - {name: a, frame: 64, layers: [eth, ipv4, upd]}\n  - {name: a}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := streamsExamples + "rates.yaml"
	for _, c := range []struct {
		args, says string
		code       int
	}{
		{"show " + bad, bad + `:2:46: layers: no layer "upd", did you mean "udp"?`, exitUsage},
		{"show " + bad, bad + `:3:5: layers: missing`, exitUsage},
		{"show " + bad + " --json", `"usage"`, exitUsage},
		{"show", "needs one file", exitUsage},
		{"show a b", "needs one file", exitUsage},
		{"", "want show or schema", exitUsage},
		{"draw", "want show or schema", exitUsage},
		{"show " + good + " --frames 0", "want 1 to 10000", exitUsage},
		{"show " + good + " --stream x", "no such stream", exitUsage},
		{"show /no/such", "no such file", exitCannotRun},
		{"show /", "is a directory", exitCannotRun},
	} {
		code, out, stderr := invoke(t, append([]string{"streams"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(out+stderr, c.says) {
			t.Errorf("streams %s: exit %d, want %d and %q:\n%s%s", c.args, code, c.code, c.says, out, stderr)
		}
	}
}
