package nettest

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"linerate/internal/lab/veth"
	"linerate/internal/netns"
)

// CheckNothingLeft notes what this process holds, and at the end of the test,
// after every cleanup registered later, fails it for anything more: goroutines,
// file descriptors (BPF objects and sockets are such), threads in other
// namespaces, mounts, interfaces, named labs. Call it first in a test that does
// not run in parallel with others. Things that end a moment later (threads,
// sockets in release) are waited for.
func CheckNothingLeft(t testing.TB) {
	t.Helper()
	checkNothingLeft(t, 5*time.Second)
}

func checkNothingLeft(t testing.TB, wait time.Duration) {
	t.Helper()
	before, err := holdings()
	if err != nil {
		t.Fatal(err)
	}
	running := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		if err := goleak.Find(running); err != nil {
			t.Error(err)
		}
		var left []string
		for deadline := time.Now().Add(wait); ; time.Sleep(5 * time.Millisecond) {
			after, err := holdings()
			if err != nil {
				t.Error(err)
				return
			}
			if left = more(before, after); len(left) == 0 {
				return
			}
			if time.Now().After(deadline) {
				break
			}
		}
		t.Errorf("left behind: %s", strings.Join(left, ", "))
	})
}

// holdings counts what the process holds, by what it is.
func holdings() (map[string]int, error) {
	h := map[string]int{}
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return nil, err
	}
	for _, f := range []func(map[string]int) error{
		countFiles,
		func(h map[string]int) error { return countThreads(h, own) },
		countMounts, countInterfaces, countLabs,
	} {
		if err := f(h); err != nil {
			return nil, err
		}
	}
	return h, nil
}

func more(before, after map[string]int) (left []string) {
	for what, n := range after {
		if n > before[what] {
			left = append(left, fmt.Sprintf("%d of %s", n-before[what], what))
		}
	}
	slices.Sort(left)
	return left
}

// countFiles names descriptors by kind, not by number: sockets and pipes have
// one of their own each time.
func countFiles(h map[string]int) error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // the directory just read
		}
		if err != nil {
			return err
		}
		kind, _, numbered := strings.Cut(target, ":[")
		switch {
		case target == "anon_inode:[eventpoll]" || target == "anon_inode:[eventfd]":
			continue // the runtime's own, opened when first needed
		case numbered && kind != "anon_inode":
			target = kind
		case strings.HasPrefix(target, "/proc/"):
			continue // being read by somebody
		}
		h["file "+target]++
	}
	return nil
}

func countThreads(h map[string]int, own string) error {
	tasks, err := filepath.Glob("/proc/self/task/*/ns/net")
	if err != nil {
		return err
	}
	for _, path := range tasks {
		if ns, err := os.Readlink(path); err == nil && ns != own {
			h["thread in another namespace"]++
		}
	}
	return nil
}

// countMounts looks at what is ours: other processes mount too.
func countMounts(h map[string]int) error {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) > 4 && ours(strings.TrimPrefix(f[4], netns.Dir+"/")) {
			h["mount "+f[4]]++
		}
	}
	return nil
}

// ours is whether a lab's default name says that this process made it.
func ours(name string) bool {
	return strings.HasPrefix(name, fmt.Sprintf("%s%d-", veth.Prefix, os.Getpid()))
}

func countInterfaces(h map[string]int) error {
	ifs, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, i := range ifs {
		if strings.HasPrefix(i.Name, "lr") || i.Name == veth.MiddleA || i.Name == veth.MiddleB {
			h["interface "+i.Name]++
		}
	}
	return nil
}

func countLabs(h map[string]int) error {
	names, err := netns.List()
	if err != nil {
		return err
	}
	for _, n := range names {
		if ours(n) {
			h["namespace "+n]++
		}
	}
	return nil
}
