package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"linerate/internal/lab/veth"
	"linerate/internal/nettest"
)

// invoke runs one command line in this process.
func invoke(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var out, err bytes.Buffer
	code = run(ctx, &out, &err, args)
	return code, out.String(), err.String()
}

// Command lines that no host would accept: exit 2, and what to type instead.
func TestUsageErrors(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"nonsense", `no command "nonsense"`},
		{"run", "run needs --tx and --rx"},
		{"run --pair a,b --metrics :9100", "one trial"},
		{"run --tx lo --rx lo", "both lo"},
		{"run --tx a --rx b extra", `no argument "extra"`},
		{"blast", "needs one interface"},
		{"sink a b", "needs one interface"},
		{"blast --no-such-flag lo", "no-such-flag"},
		{"demo --rate 1000", "a rate needs a unit"},
		{"demo --rate 0pps", "above zero"},
		{"demo --rate -1Mpps", "not negative"},
		{"demo --rate 5Gbps", "which layer"},
		{"demo --rate 1Tpps", "rate"},
		{"demo --frame 9", "frame"},
		{"demo --frame 64-", "frame"},
		{"demo --frame 99999", "frame"},
		{"demo --batch 0", "--batch 0"},
		{"demo --ring 100", "power of two"},
		{"demo --budget 100", "power of two"},
		{"demo --warmup 5s", "leaves nothing"},
		{"demo --max-loss lots", "lots"},
		{"demo --max-rate-error NaN", "NaN"},
		{"demo --max-rate-error Inf", "+Inf"},
		{"demo --max-rate-error -1", "-1"},
		{"demo -n 9223372036854775807", "where the sequence of the tag ends"},
		{"demo -t 2562047h", "at most"},
		{"demo --settle 1h", "at most"},
		{"demo -o /", "is a directory"},
		{"demo --max-loss 101%", "101%"},
		{"demo --queues 0,0", "stands twice"},
		{"demo --cores 999", "CPU"},
		{"demo --engine pigeon", "pigeon"},
		{"demo --mode warp", "warp"},
		{"demo --reflect --action count", "--reflect"},
		{"demo --reflect --rx-engine xsk", "inside XDP"},
		{"demo --rx-engine live", "no engine \"live\" for this end"},
		{"demo --tx-engine xdp", "no engine \"xdp\" for this end"},
		{"demo --engine live --mode zerocopy", "no socket"},
		{"demo --engine live --mode generic", "generic"},
		{"demo --chunk 3000", "3000"},
		{"demo --action juggle", "juggle"},
		{"demo --steer moon", "moon"},
		{"demo --src-ip 1.2.3", "not an address"},
		{"demo --dst-port 70000", "not a port"},
		{"demo --vlan 5000", "VLAN"},
		{"demo --dst-mac zz", "Ethernet address"},
		{"demo --flows 0", "at least 1"},
		{"demo --flows 99999", "hold only"},
		{"demo --frame 64 --src-ip fd00::1 --dst-ip fd00::2 --frame 70", "least"},
		{"demo --rate 20Mpps", "line rate"},
		{"demo --rate 200%", "line rate"},
		{"lab sideways", "sideways"},
		{"lab down", "needs a name"},
		{"lab exec x", "a namespace and a command"},
	} {
		t.Run(c.args, func(t *testing.T) {
			if strings.HasPrefix(c.args, "demo") {
				nettest.Require(t, nettest.Root, nettest.AFXDP) // the lab is built before some are found
			}
			code, stdout, stderr := invoke(t, strings.Fields(c.args)...)
			if code != exitUsage {
				t.Errorf("exit %d, want %d", code, exitUsage)
			}
			if !strings.Contains(stderr, c.says) {
				t.Errorf("says %q, want %q in it", stderr, c.says)
			}
			if !strings.Contains(stderr, "try: ") && !strings.Contains(stderr, "as in") {
				t.Errorf("%q does not say what to type", stderr)
			}
			if stdout != "" && !strings.HasPrefix(stdout, "lab:") {
				t.Errorf("writes %q to stdout", stdout)
			}
		})
	}
	nettest.CheckNothingLeft(t)
}

// What this host cannot do: exit 3, and what is in the way.
func TestCannotRunHere(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	lab := nettest.Lab(t, veth.Config{Queues: 2})
	a, b := lab.A(), lab.B()
	for _, c := range []struct{ args, says string }{
		{"doctor", "not built yet"},
		{"demo --nic ixgbe", "not built yet"},
		{"demo -o /no/such/place", "/no/such/place cannot be written"},
		{"blast no-such-namespace/lr0", "no-such-namespace"},
		{"run --tx " + a + " --rx " + b + "x", "lr0x"},
		{"run --tx " + a + " --rx " + b + " --tx-queues 2", "it has 2 (0-1)"},
		{"run --tx " + a + " --rx " + b + " --frame 1519", "MTU"},
		{"run --tx " + a + " --rx " + b + " --mode zerocopy -n 1", "zero-copy"},
	} {
		t.Run(c.args, func(t *testing.T) {
			code, _, stderr := invoke(t, strings.Fields(c.args)...)
			if code != exitCannotRun {
				t.Errorf("exit %d, want %d: %s", code, exitCannotRun, stderr)
			}
			if !strings.Contains(stderr, c.says) {
				t.Errorf("says %q, want %q in it", stderr, c.says)
			}
		})
	}
}

// With --json an error is a document too, with the same exit code.
func TestErrorDocument(t *testing.T) {
	code, stdout, stderr := invoke(t, "demo", "--json", "--rate", "5")
	if code != exitUsage || stderr != "" {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
	var doc struct{ Schema, Code, Text, Remedy string }
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
		t.Fatalf("%q: %v", stdout, err)
	}
	if code, stdout, _ := invoke(t, "demo", "--json", "--ndjson"); code != exitUsage || !strings.Contains(stdout, "exclude each other") {
		t.Errorf("--json --ndjson: exit %d, %q", code, stdout)
	}
	for _, args := range []string{"nonsense --json", "demo --json=true --rate 5", "demo --json=maybe", "doctor --json=1"} {
		if code, stdout, stderr := invoke(t, strings.Fields(args)...); code == exitPassed || stderr != "" || !json.Valid([]byte(stdout)) {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
	if _, stdout, stderr := invoke(t, "blast", "--json=false", "--", "--json"); stdout != "" || stderr == "" {
		t.Errorf("--json=false: stdout %q, stderr %q", stdout, stderr)
	}
	if doc.Schema != "linerate.error/1" || doc.Code != "usage" || doc.Text == "" || doc.Remedy == "" {
		t.Errorf("document %+v", doc)
	}
}
