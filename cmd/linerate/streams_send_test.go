package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"linerate/internal/nettest"
	"linerate/internal/report"
)

func streamsFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "streams.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const taggedStreams = `streams:
  - name: sizes
    layers: [eth, ipv4, {udp: {src: {from: 1000, count: 100}}}]
    frame: [64, 128, 1518]
    rate: 10kpps
    count: 4000
  - name: six
    layers: [eth, {vlan: {id: 7}}, ipv6, udp]
    frame: 200
    rate: 2kpps
    burst: {size: 10, gap: 5ms}
    time: 400ms
`

func demoOf(t *testing.T, args ...string) report.Run {
	t.Helper()
	code, stdout, stderr := invoke(t, append([]string{"demo", "--json", "--max-loss", "any"}, args...)...)
	var run report.Run
	if err := json.Unmarshal([]byte(stdout), &run); err != nil {
		t.Fatalf("exit %d, %v\n%s", code, err, stderr)
	}
	if f := run.Frames; f.Unexplained == nil || *f.Unexplained != 0 {
		t.Errorf("exit %d, unexplained %v\n%s", code, f.Unexplained, stdout)
	}
	return run
}

// Streams of a file are sent at their own rates, each counted in a space of its
// own, verified, and reported one by one, by one worker or two.
func TestStreamsAreSent(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	path := streamsFile(t, taggedStreams)
	for _, queues := range []string{"0", "0,1"} {
		run := demoOf(t, "--streams", path, "--queues", queues, "--ring", "16384")
		if len(run.Streams) != 2 {
			t.Fatalf("queues %s: streams %+v", queues, run.Streams)
		}
		a, b := run.Streams[0], run.Streams[1]
		if *a.Sent != 4000 || *a.Received+*a.Lost != 4000 {
			t.Errorf("queues %s: stream sizes: sent %d, received %d, lost %d, want 4,000", queues, *a.Sent, *a.Received, *a.Lost)
		}
		// 10 frames in 5 ms and a gap of 5 ms: 40 bursts.
		if n := *b.Sent; n < 380 || n > 420 || n != *b.Received+*b.Lost {
			t.Errorf("queues %s: stream six: sent %d, received %d, lost %d, want about 400", queues, n, *b.Received, *b.Lost)
		}
		if *run.Frames.Sent != *a.Sent+*b.Sent || *run.Frames.Corrupt != 0 || *run.Frames.Duplicate != 0 {
			t.Errorf("queues %s: frames %+v", queues, run.Frames)
		}
	}
}

// Frames that cannot carry the tag are counted at both ends.
func TestUntaggedStreamsAreCounted(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	path := streamsFile(t, strings.Replace(taggedStreams, "ipv6, udp", "ipv6, tcp", 1))
	run := demoOf(t, "--streams", path)
	var taken uint64
	for _, r := range run.Budget {
		if r.Row == "taken" {
			taken += *r.Frames
		}
	}
	if run.Frames.Received != nil || *run.Frames.Sent < 4300 || taken != *run.Frames.Sent {
		t.Errorf("sent %d, taken %d, received %v", *run.Frames.Sent, taken, run.Frames.Received)
	}
	code, _, stderr := invoke(t, "demo", "--streams", path, "--action", "verify")
	if code != 2 || !strings.Contains(stderr, "six") {
		t.Errorf("verify without a tag: exit %d\n%s", code, stderr)
	}
}

func TestStreamsUsage(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	path := streamsFile(t, taggedStreams)
	broken := streamsFile(t, "streams:\n  - name: a\n    layres: [eth]\n")
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"--streams " + path + " --rate 1Mpps", 2, "--rate does not go with --streams"},
		{"--streams " + path + " --engine asavie", 2, "cannot send a file of streams"},
		{"--streams " + path + " --engine live", 2, "cannot send a file of streams"},
		{"--streams " + broken, 2, fmt.Sprintf("%s:3:5", broken)},
		{"--streams /no/such/file", 3, "/no/such/file"},
	} {
		code, _, stderr := invoke(t, append([]string{"demo"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit %d, want %d and %q\n%s", c.args, code, c.code, c.says, stderr)
		}
	}
}
