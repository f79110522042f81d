package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"linerate/internal/lab/veth"
	"linerate/internal/nettest"
	"linerate/internal/report"
	"linerate/internal/report/schematest"
)

var update = flag.Bool("update", false, "write the golden documents anew, from real runs")

// valid checks one document against the schema that it must be of.
func valid(t *testing.T, name, text string) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	if doc["schema"] != name {
		t.Errorf("schema %v, want %s", doc["schema"], name)
	}
	if err := schematest.Validate([]byte(text)); err != nil {
		t.Error(err)
	}
	return doc
}

// golden is one of the documents that the repository holds: what makes it, the
// exit code, and what it must show.
type golden struct {
	name string
	code int
	make func(t *testing.T) (code int, doc string)
	show func(t *testing.T, frames map[string]any)
}

func goldens() []golden {
	return []golden{
		{"1-demo", exitPassed, func(t *testing.T) (int, string) {
			code, doc, _ := invoke(t, "demo", "--json", "-n", "3000", "--rate", "10kpps")
			return code, doc
		}, shows(map[string]any{"lost": 0, "unexplained": 0})},
		{"2-blast", exitPassed, goldenBlast, shows(map[string]any{"received": nil, "lost": nil, "unexplained": nil})},
		{"3-sink-with-end", exitPassed, goldenSink, shows(map[string]any{"received": 3000, "sent": 3000, "lost": 0, "unexplained": nil})},
		{"3-sink-without-end", exitFailed, func(t *testing.T) (int, string) {
			lab := nettest.Lab(t, veth.Config{})
			code, doc, _ := invoke(t, "sink", lab.B(), "-t", "300ms", "--json")
			return code, doc
		}, shows(map[string]any{"sent": nil, "lost": nil, "unexplained": nil})},
		{"4-overload", exitPassed, func(t *testing.T) (int, string) {
			nettest.Require(t, nettest.ThreadedNAPI)
			code, doc, _ := invoke(t, "demo", "--json", "-t", "1s", "--rate", "max", "--threaded-napi", "--budget", "2048", "--batch", "256")
			return code, doc
		}, shows(map[string]any{"unexplained": 0})},
		{"5-one-lost", exitFailed, func(t *testing.T) (int, string) {
			box := nettest.FaultBox(t, nettest.BoxConfig{Rules: []nettest.Rule{{Fault: nettest.Drop, Frames: []uint64{1000}}}})
			code, doc, _ := invoke(t, "run", "--tx", box.A(), "--rx", box.B(), "--json", "-n", "3000", "--rate", "5kpps", "--settle", "500ms")
			return code, doc
		}, shows(map[string]any{"lost": 1, "unexplained": 1})},
		{"6-link-down", exitFailed, goldenLinkDown, shows(map[string]any{})},
	}
}

// shows checks some of the frames' numbers.
func shows(want map[string]any) func(*testing.T, map[string]any) {
	return func(t *testing.T, frames map[string]any) {
		t.Helper()
		for key, n := range want {
			if got := frames[key]; fmt.Sprint(got) != fmt.Sprint(n) {
				t.Errorf("frames.%s is %v, want %v", key, got, n)
			}
		}
	}
}

func goldenBlast(t *testing.T) (int, string) {
	lab := nettest.Lab(t, veth.Config{})
	code, doc, _ := invoke(t, "blast", lab.A(), "--json", "-n", "3000", "--rate", "10kpps")
	return code, doc
}

func goldenSink(t *testing.T) (int, string) {
	lab := nettest.Lab(t, veth.Config{})
	type result struct {
		code int
		doc  string
	}
	done := make(chan result)
	go func() {
		code, doc, _ := invoke(t, "sink", lab.B(), "-t", "30s", "--json")
		done <- result{code, doc}
	}()
	time.Sleep(time.Second) // it attaches; END frames sent before would be missed
	if code, _, stderr := invoke(t, "blast", lab.A(), "-n", "3000", "--rate", "10kpps"); code != exitPassed {
		t.Errorf("blast: exit %d: %s", code, stderr)
	}
	r := <-done
	return r.code, r.doc
}

func goldenLinkDown(t *testing.T) (int, string) {
	lab := nettest.Lab(t, veth.Config{})
	ns := openNS(t, lab.B())
	down := time.AfterFunc(time.Second, func() {
		_ = ns.Do(func() error {
			l, err := netlink.LinkByName(veth.Interface)
			if err != nil {
				return err
			}
			return netlink.LinkSetDown(l)
		})
	})
	defer down.Stop()
	code, doc, _ := invoke(t, "run", "--tx", lab.A(), "--rx", lab.B(), "--json", "-t", "20s", "--rate", "10kpps")
	return code, doc
}

// Every golden document is made anew by a real run, which must have the same
// shape: keys, rows, verdict and warnings; only numbers and names differ.
func TestGoldenDocuments(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	for _, g := range goldens() {
		t.Run(g.name, func(t *testing.T) {
			code, text := g.make(t)
			if code != g.code {
				t.Errorf("exit %d, want %d\n%s", code, g.code, text)
			}
			doc := valid(t, report.RunSchema, text)
			frames, _ := doc["frames"].(map[string]any)
			g.show(t, frames)
			path := filepath.Join("testdata", "golden", g.name+".json")
			if *update {
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			kept, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(shape(valid(t, report.RunSchema, string(kept))), shape(doc)); diff != "" {
				t.Errorf("the golden document has another shape (-golden +now):\n%s", diff)
			}
		})
	}
}

// chance are the warnings that a run has or has not, as the machine is busy or
// the rings were full when the event came.
var chance = []string{"stalls", "burst", "own_queue_latency", "link_event", "held_frames"}

// shape is what two runs of one kind have in common. Warnings about how busy
// the machine was are left out, and what nobody can know beforehand: whether a
// number that may be null is.
func shape(doc map[string]any) any {
	var rows []string
	budget, _ := doc["budget"].([]any)
	for _, r := range budget {
		m, _ := r.(map[string]any)
		row := fmt.Sprintf("%v %v %v queue %v exact %v", m["boundary"], m["kind"], m["row"], m["queue"], m["exact"])
		if m["row"] != "purged" {
			rows = append(rows, row)
		}
	}
	var codes []string
	warnings, _ := doc["warnings"].([]any)
	for _, w := range warnings {
		m, _ := w.(map[string]any)
		if code := fmt.Sprint(m["code"]); !slices.Contains(chance, code) && !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	return map[string]any{"keys": keys(doc, ""), "rows": rows, "warnings": codes, "verdict": doc["verdict"]}
}

// keys lists the paths of all keys of nested objects.
func keys(v any, at string) []string {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	var out []string
	for k, sub := range m {
		out = append(out, at+k)
		out = append(out, keys(sub, at+k+".")...)
	}
	slices.Sort(out)
	return out
}

// --ndjson: intervals, each a document of its own, and the run as the last.
func TestNDJSON(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	code, stdout, stderr := invoke(t, "demo", "--ndjson", "-t", "1s", "--interval", "200ms", "--rate", "5kpps")
	if code != exitPassed {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if len(lines) < 3 {
		t.Fatalf("%d lines", len(lines))
	}
	id := valid(t, report.RunSchema, lines[len(lines)-1])["run_id"]
	for _, line := range lines[:len(lines)-1] {
		if doc := valid(t, report.IntervalSchema, line); doc["run_id"] != id {
			t.Errorf("interval of run %v in run %v", doc["run_id"], id)
		}
	}
}

// -o writes the document besides the text, whole or not at all.
func TestOutputFile(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	path := filepath.Join(t.TempDir(), "run.json")
	code, stdout, stderr := invoke(t, "demo", "-n", "1000", "--rate", "5kpps", "-o", path)
	if code != exitPassed || !strings.Contains(stdout, "unexplained") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	valid(t, report.RunSchema, string(text))
	if code, _, stderr := invoke(t, "demo", "-n", "10", "-o", filepath.Join(path, "no", "where")); code != exitCannotRun {
		t.Errorf("an impossible file: exit %d: %s", code, stderr)
	}
	var failure json.RawMessage
	code, stdout, _ = invoke(t, "blast", "no-such-if0", "--json")
	if err := json.Unmarshal([]byte(stdout), &failure); err != nil || code != exitCannotRun {
		t.Errorf("exit %d, %v in %q", code, err, stdout)
	}
	valid(t, report.ErrorSchema, stdout)
}
