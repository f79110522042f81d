package netns

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv("NETNS_CHILD") != "" {
		if err := child(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func count(t *testing.T, dir string) int {
	t.Helper()
	e, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(e)
}

// TestNothingLeaks opens and closes many namespaces. A thread that came back to
// the scheduler would still hold the namespace, which the last check sees.
func TestNothingLeaks(t *testing.T) {
	name := named(t)
	warm, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	warm.Close()
	runtime.GC()
	fds, mounts := count(t, "/proc/self/fd"), mountCount(t)
	for range 30 {
		n, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Do(func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		n.Close()
	}
	if after := count(t, "/proc/self/fd"); after > fds {
		t.Errorf("file descriptors: %d before, %d after", fds, after)
	}
	if after := mountCount(t); after != mounts {
		t.Errorf("mounts: %d before, %d after", mounts, after)
	}
	own, _ := os.Readlink("/proc/self/ns/net")
	deadline := time.Now().Add(5 * time.Second) // threads end a moment after their goroutine
	for {
		inside := threadsElsewhere(t, own)
		if inside == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d threads are still inside a test namespace", inside)
		}
		time.Sleep(time.Millisecond)
	}
}

func threadsElsewhere(t *testing.T, own string) (n int) {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range tasks {
		ns, err := os.Readlink("/proc/self/task/" + e.Name() + "/ns/net")
		if err == nil && ns != own {
			n++
		}
	}
	return n
}
