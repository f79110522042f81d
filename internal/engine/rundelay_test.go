package engine

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseRunDelay(t *testing.T) {
	if ns, ok := parseRunDelay("180488 203622 2\n"); !ok || ns != 203622 {
		t.Errorf("%d %v", ns, ok)
	}
	for _, bad := range []string{"", "1 2", "1 x 2", "1 -5 2", "1 2 3 4", "1 99999999999999999999 2"} {
		if _, ok := parseRunDelay(bad); ok {
			t.Errorf("%q was taken", bad)
		}
	}
}

func FuzzParseRunDelay(f *testing.F) {
	f.Add("180488 203622 2\n")
	f.Fuzz(func(t *testing.T, s string) {
		if ns, ok := parseRunDelay(s); ok && ns < 0 {
			t.Errorf("%q gives %d", s, ns)
		}
	})
}

// Two threads on one CPU wait for each other; that is the time meant.
func TestRunDelayIsWaiting(t *testing.T) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !set.IsSet(cpu) {
		cpu++
	}
	waited := make(chan *int64)
	for range 2 {
		go func() {
			runtime.LockOSThread() // never unlocked: the affinity ends with the thread
			var one unix.CPUSet
			one.Set(cpu)
			if err := unix.SchedSetaffinity(0, &one); err != nil {
				t.Error(err)
			}
			before := runDelay()
			for range 2000 { // gives the CPU away and waits to have it back
				_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
			}
			waited <- before.since()
		}()
	}
	var sum int64
	for range 2 {
		if ns := <-waited; ns != nil {
			sum += *ns
		}
	}
	if runDelay().known && sum == 0 {
		t.Error("two threads shared a CPU and none has waited")
	}
}
