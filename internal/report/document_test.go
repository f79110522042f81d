package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"linerate/internal/budget"
	"linerate/internal/report"
	"linerate/internal/report/schematest"
)

func encode(t testing.TB, run report.Run) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := report.WriteJSON(&b, run); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unknown is a run of which nothing is known but that it was.
func unknown() report.Run {
	return report.Run{Version: "0.1.0", RunID: "0000", Verdict: budget.Invalid, Spec: map[string]any{},
		Tx: &report.End{Endpoint: "eth1", Engine: "xsk"}, Latency: &report.Latency{},
		Budget:  []budget.Row{{Row: budget.RowOffered, Boundary: budget.BoundaryOffer, Kind: budget.Checkpoint}},
		Streams: []report.Stream{{}}, Rate: report.Rate{Gap: &report.Gap{}, Stalls: &report.Stalls{}}}
}

func TestUnknownIsNull(t *testing.T) {
	data := encode(t, unknown())
	if err := schematest.Validate(data); err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				walk(at+"."+key, inner)
			}
		case nil:
		default:
			t.Errorf("%s = %v, want null", at, v)
		}
	}
	for _, key := range []string{"frames", "cpu", "host", "rx", "duration_ns"} {
		if _, there := document[key]; !there {
			t.Errorf("no key %s", key)
		}
		walk(key, document[key])
	}
	for _, key := range []string{"budget", "streams", "warnings"} {
		if _, list := document[key].([]any); !list {
			t.Errorf("%s = %v, want a list", key, document[key])
		}
	}
}

func TestNoNumberIsNull(t *testing.T) {
	run := demo()
	run.Rate.TxPPS, run.CPU.BusyCoreSeconds = report.Ptr(math.NaN()), report.Ptr(math.Inf(1))
	data := encode(t, run)
	if err := schematest.Validate(data); err != nil {
		t.Error(err)
	}
	again, err := report.DecodeRun(data)
	if err != nil || again.Rate.TxPPS != nil || again.CPU.BusyCoreSeconds != nil {
		t.Errorf("%v, %v, %v", again.Rate.TxPPS, again.CPU.BusyCoreSeconds, err)
	}
	if !math.IsNaN(*run.Rate.TxPPS) {
		t.Error("writing changes the run")
	}
}

func TestLargestCountsSurvive(t *testing.T) {
	run := demo()
	run.Frames.Offered = budget.Count(math.MaxUint64)
	run.Spec = map[string]any{"seed": uint64(math.MaxUint64)}
	data := encode(t, run)
	if err := schematest.Validate(data); err != nil {
		t.Error(err)
	}
	again, err := report.DecodeRun(data)
	if err != nil {
		t.Fatal(err)
	}
	if *again.Frames.Offered != math.MaxUint64 || !bytes.Equal(encode(t, again), data) {
		t.Errorf("offered %d, seed %v", *again.Frames.Offered, again.Spec)
	}
}

// objects calls f with every object of a document and the path to it.
func objects(v any, at string, f func(at string, o map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		f(at, v)
		for key, inner := range v {
			objects(inner, at+"/"+key, f)
		}
	case []any:
		for _, inner := range v {
			objects(inner, at+"[]", f)
		}
	}
}

// documents is one of each schema.
func documents(t *testing.T) [][]byte {
	t.Helper()
	var interval, failure bytes.Buffer
	if err := report.WriteInterval(&interval, someInterval()); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteFailure(&failure, report.Failure{Code: "interface_unknown", Text: "eth9: no such interface"}); err != nil {
		t.Fatal(err)
	}
	var set bytes.Buffer
	if err := report.WriteSetJSON(&set, someSet()); err != nil {
		t.Fatal(err)
	}
	return [][]byte{encode(t, demo()), interval.Bytes(), failure.Bytes(), set.Bytes()}
}

// Of every object of every document, each key is needed and no other allowed.
func TestSchemasAreStrict(t *testing.T) {
	for _, data := range documents(t) {
		if err := schematest.Validate(data); err != nil {
			t.Fatal(err)
		}
		var document any
		if err := json.Unmarshal(data, &document); err != nil {
			t.Fatal(err)
		}
		refused := func(at string) {
			changed, err := json.Marshal(document)
			if err != nil {
				t.Fatal(err)
			}
			if schematest.Validate(changed) == nil {
				t.Errorf("%s: the schema does not mind", at)
			}
		}
		seen := map[string]bool{}
		objects(document, "", func(at string, o map[string]any) {
			if seen[at] || strings.HasSuffix(at, "/spec") {
				return
			}
			seen[at] = true
			o["surprise"] = 1
			refused(at + "/surprise")
			delete(o, "surprise")
			for key, value := range o {
				if at != "" || key != "schema" {
					delete(o, key)
					refused(at + "/" + key + " missing")
					o[key] = value
				}
			}
		})
	}
}

func TestSchemaNames(t *testing.T) {
	for _, name := range report.SchemaNames() {
		data, ok := report.Schema(name)
		if !ok || !bytes.Contains(data, []byte("https://json-schema.org/draft/2020-12/schema")) {
			t.Errorf("%s: no schema of draft 2020-12", name)
		}
	}
	if _, ok := report.Schema("linerate.nothing/1"); ok {
		t.Error("a schema for nothing")
	}
	if err := schematest.Validate([]byte(`{"schema":"linerate.nothing/1"}`)); err == nil {
		t.Error("a document without schema is valid")
	}
}

func someInterval() report.Interval {
	return report.Interval{RunID: "4c52", StartNs: 0, EndNs: 1e9,
		Tx: &report.TxInterval{Offered: budget.Count(100_000), PPS: report.Ptr(math.NaN())}, Rx: &report.RxInterval{}}
}

// writes counts the calls of Write.
type writes struct {
	bytes.Buffer
	n int
}

func (w *writes) Write(p []byte) (int, error) {
	w.n++
	return w.Buffer.Write(p)
}

func TestNDJSON(t *testing.T) {
	var w writes
	i := someInterval()
	for range 3 {
		if err := report.WriteInterval(&w, i); err != nil {
			t.Fatal(err)
		}
	}
	if err := report.WriteRunLine(&w, demo()); err != nil {
		t.Fatal(err)
	}
	if w.n != 4 || strings.Count(w.String(), "\n") != 4 {
		t.Errorf("%d writes, %d lines; want 4 and 4", w.n, strings.Count(w.String(), "\n"))
	}
	lines := strings.Split(strings.TrimSpace(w.String()), "\n")
	for n, line := range lines {
		if err := schematest.Validate([]byte(line)); err != nil {
			t.Errorf("line %d: %v", n+1, err)
		}
		if !strings.Contains(line, `"run_id":"4c52"`) {
			t.Errorf("line %d names no run", n+1)
		}
	}
	want := `{"schema":"linerate.interval/1","run_id":"4c52","start_ns":0,"end_ns":1000000000,` +
		`"tx":{"offered":100000,"sent":null,"refused":null,"pps":null,"l1_bits_per_sec":null,"l2_bits_per_sec":null},` +
		`"rx":{"received":null,"pps":null,"l1_bits_per_sec":null,"l2_bits_per_sec":null}}`
	if lines[0] != want {
		t.Errorf("got  %s\nwant %s", lines[0], want)
	}
	if !math.IsNaN(*i.Tx.PPS) {
		t.Error("writing changes the interval")
	}
}

func TestFailure(t *testing.T) {
	var b bytes.Buffer
	f := report.Failure{Code: "permission", Text: "bind xsk: needs CAP_NET_RAW", Remedy: "run as root"}
	if err := report.WriteFailure(&b, f); err != nil {
		t.Fatal(err)
	}
	want := `{"schema":"linerate.error/1","run_id":null,"code":"permission","text":"bind xsk: needs CAP_NET_RAW","remedy":"run as root"}` + "\n"
	if b.String() != want {
		t.Errorf("got  %swant %s", b.String(), want)
	}
	if err := schematest.Validate(b.Bytes()); err != nil {
		t.Error(err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := string(encode(t, demo()))
	for name, data := range map[string]string{
		"nothing":        "",
		"half":           good[:len(good)/2],
		"two documents":  good + good,
		"another schema": strings.Replace(good, "linerate.run/1", "linerate.run/2", 1),
		"no verdict":     strings.Replace(good, `"verdict": "pass"`, `"verdict": "maybe"`, 1),
		"negative count": strings.Replace(good, `"offered": 300000`, `"offered": -1`, 1),
		"text as number": strings.Replace(good, `"kernel": "6.18.0"`, `"kernel": 6`, 1),
	} {
		_, err := report.DecodeRun([]byte(data))
		var bad *report.DocumentError
		if !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), "decode linerate.run/1: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	later := strings.Replace(good, `"verdict"`, `"added_later": {"a": 1}, "verdict"`, 1)
	if _, err := report.DecodeRun([]byte(later)); err != nil {
		t.Errorf("a key of a later version: %v", err)
	}
}

func FuzzRunRoundTrip(f *testing.F) {
	files, err := filepath.Glob("testdata/golden/*.json")
	if err != nil || len(files) == 0 {
		f.Fatalf("no golden documents: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		run, err := report.DecodeRun(data)
		if err != nil {
			return
		}
		var first bytes.Buffer
		if err := report.WriteJSON(&first, run); err != nil {
			if run.Started.Year() > 9999 || run.Started.Year() < 0 {
				return // JSON has no such time
			}
			t.Fatal(err)
		}
		again, err := report.DecodeRun(first.Bytes())
		if err != nil {
			t.Fatalf("what was written is not read: %v\n%s", err, first.Bytes())
		}
		if second := encode(t, again); !bytes.Equal(first.Bytes(), second) {
			t.Fatalf("the second time it is another:\n%s", cmp.Diff(first.String(), string(second)))
		}
		var text bytes.Buffer
		if err := report.WriteText(&text, run, false); err != nil {
			t.Fatal(err)
		}
	})
}
