package main

import (
	"encoding/json"
	"testing"

	"linerate/internal/lab/veth"
	"linerate/internal/nettest"
	"linerate/internal/report"
)

// The in-kernel engines from the command line: every frame made and verified
// without a socket, in every shape they take.
func TestLiveDemo(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	for _, args := range [][]string{
		{"--queues", "0,1", "--rate", "max"},
		{"--rate", "max", "--frame", "1518", "--flows", "1000"},
		{"--rate", "max", "--frame", "84", "--src-ip", "2001:2::1", "--dst-ip", "2001:2::2"},
		{"--rate", "max", "--frame", "68", "--vlan", "7"},
		{"--rx-engine", "xsk", "--rate", "200kpps", "--max-rate-error", "100"},
		{"--tx-engine", "xsk"},
	} {
		code, stdout, stderr := invoke(t, append([]string{"demo", "--engine", "live", "--json", "-t", "500ms"}, args...)...)
		var run report.Run
		if err := json.Unmarshal([]byte(stdout), &run); err != nil {
			t.Fatalf("%v: exit %d, %v\n%s", args, code, err, stderr)
		}
		f := run.Frames
		if f.Unexplained == nil || *f.Unexplained != 0 || f.Received == nil || *f.Received == 0 || f.Lost == nil || *f.Received+*f.Lost != *f.Sent {
			t.Errorf("%v: exit %d\n%s", args, code, stdout)
		}
	}
}

// What the in-kernel sender cannot make is refused before anything is sent.
func TestLiveRefuses(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	for _, args := range [][]string{
		{"--frame", "64,128"},
		{"--frame", "64", "--vlan", "7"}, // a short tag
		{"--frame", "64", "--src-ip", "2001:2::1", "--dst-ip", "2001:2::2"},
	} {
		code, stdout, stderr := invoke(t, append([]string{"demo", "--engine", "live", "-t", "300ms"}, args...)...)
		if code != 2 {
			t.Errorf("%v: exit %d, want 2\n%s%s", args, code, stdout, stderr)
		}
	}
}

// Live frames into a peer that takes none are lost without a word of the
// kernel's: the result says where and why.
func TestLiveIntoNothing(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	lab := nettest.Lab(t, veth.Config{})
	code, stdout, stderr := invoke(t, "blast", lab.A(), "--engine", "live", "--json", "-t", "300ms", "--rate", "10kpps",
		"--dst-mac", "02:00:00:00:00:02")
	var run report.Run
	if err := json.Unmarshal([]byte(stdout), &run); err != nil {
		t.Fatalf("exit %d, %v\n%s", code, err, stderr)
	}
	said := false
	for _, w := range run.Warnings {
		said = said || w.Code == report.WarnLiveNotTaken
	}
	if !said || code == 0 {
		t.Errorf("exit %d, warnings %+v", code, run.Warnings)
	}
}
