package veth

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"linerate/internal/netns"
)

func TestMarkIsReadBack(t *testing.T) {
	for _, m := range []mark{{maker{1, 2}, false}, {maker{4194304, 1 << 60}, true}} {
		if got, ok := parseMark(m.String()); !ok || got != m {
			t.Errorf("%q: %+v, %v", m, got, ok)
		}
	}
	if got, ok := parseMark("linerate pid=7 start=8 keep=true more=later"); !ok || got != (mark{maker{7, 8}, true}) {
		t.Errorf("a later field: %+v, %v", got, ok)
	}
	for _, bad := range []string{
		"", "other pid=1 start=2 keep=true", "linerate", "linerate pid=1 start=2", "linerate pid=0 start=2 keep=true",
		"linerate pid=-1 start=2 keep=true", "linerate pid=x start=2 keep=true", "linerate pid=1 start=2 keep=perhaps",
	} {
		if m, ok := parseMark(bad); ok {
			t.Errorf("%q was read as %+v", bad, m)
		}
	}
}

func TestMakerFromName(t *testing.T) {
	for name, want := range map[string]maker{"lr-12-345": {12, 345}, "lr-12-345-2": {12, 345}} {
		if got, ok := makerFromName(name); !ok || got != want {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
	for _, bad := range []string{"lr-", "lr-12", "lr-a-b", "lr--1-2", "lr-bench-7"} {
		if got, ok := makerFromName(bad); ok {
			t.Errorf("%s: %+v", bad, got)
		}
	}
}

func TestBaseOf(t *testing.T) {
	for ns, want := range map[string]string{
		"lr-x-a": "lr-x", "lr-x-b": "lr-x", "lr-x-m": "lr-x", "lr-x-a-b": "lr-x-a",
		"lr-x-c": "", "lr-x": "", "lr-a": "", "other-a": "", "lr--a": "", "-a": "",
	} {
		if got, ok := baseOf(ns); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v; want %q", ns, got, ok, want)
		}
	}
}

func TestStale(t *testing.T) {
	for _, c := range []struct {
		i    Info
		want bool
	}{
		{Info{Alive: true, Complete: true}, false},
		{Info{Alive: true}, false},
		{Info{Complete: true}, true},
		{Info{Complete: true, Keep: true}, false},
		{Info{Keep: true}, true},
	} {
		if got := c.i.Stale(); got != c.want {
			t.Errorf("%+v: %v, want %v", c.i, got, c.want)
		}
	}
}

func TestStatusThatCannotBeRead(t *testing.T) {
	for _, bad := range []string{"", "1 no command", "1 (a) S 2 3", "1 (a) " + strings.Repeat("x ", 30)} {
		if got, err := parseStartTime(bad); err == nil {
			t.Errorf("%q: %d", bad, got)
		}
	}
}

// TestKeptLabOutlivesItsMaker: what Clean leaves is removed by name.
func TestKeptLabOutlivesItsMaker(t *testing.T) {
	needAdmin(t)
	name := fmt.Sprintf("lr-kept%d", os.Getpid())
	l := &Lab{cfg: Config{Name: name, Queues: 1, MTU: 1500, Keep: true}}
	if err := l.build(); err != nil {
		t.Fatal(err)
	}
	dead := mark{maker{1 << 30, 1}, true}.String()
	for _, n := range l.ends[:Middle] {
		if err := n.Do(func() error { return prepare(dead) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.publish(); err != nil {
		t.Fatal(err)
	}
	l.Close()
	if removed, err := Clean(); err != nil || slices.Contains(removed, name) {
		t.Errorf("Clean = %v, %v", removed, err)
	}
	labs, err := List()
	want := Info{Name: name, PID: 1 << 30, Start: 1, Keep: true, Complete: true}
	if err != nil || !slices.Contains(labs, want) {
		t.Errorf("List = %+v, %v; want %+v in it", labs, err, want)
	}
	if err := Down(name); err != nil {
		t.Fatal(err)
	}
	if _, ok := netns.Inum(name + "-a"); ok {
		t.Error("still there")
	}
}

// TestFailedUpLeavesNothing: a lab that cannot be named is gone at once.
func TestFailedUpLeavesNothing(t *testing.T) {
	l := up(t, Config{})
	before, err := netns.List()
	if err != nil {
		t.Fatal(err)
	}
	var e *Error
	if _, err := Up(Config{Name: l.Name()}); !errors.As(err, &e) || e.Lab != l.Name() {
		t.Errorf("%v, want *Error about %s", err, l.Name())
	}
	after, err := netns.List()
	if err != nil {
		t.Fatal(err)
	}
	mine := func(n string) bool { return !strings.HasPrefix(n, l.Name()) }
	if b, a := slices.DeleteFunc(before, mine), slices.DeleteFunc(after, mine); !slices.Equal(a, b) {
		t.Errorf("before %v, after %v", b, a)
	}
}
