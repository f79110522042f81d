package veth

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"linerate/internal/netns"
)

// crashChild builds and removes labs until it is killed.
func crashChild() {
	base := os.Getenv("LAB_CRASH_CHILD")
	fmt.Println("go")
	for i := 0; ; i++ {
		l, err := Up(Config{Name: fmt.Sprintf("%s-%d", base, i), Queues: 2, Keep: i%2 == 0 && i < 4, Middle: i%4 == 1})
		if err != nil {
			fmt.Println("up:", err)
			os.Exit(1)
		}
		if i%3 == 0 {
			if err := l.Down(); err != nil {
				fmt.Println("down:", err)
				os.Exit(1)
			}
		} else {
			l.Close() // leave it standing for Clean
		}
	}
}

// start runs a child until it has begun to build.
func startChild(t *testing.T, base string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^$")
	cmd.Env = append(os.Environ(), "LAB_CRASH_CHILD="+base)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "go\n" {
		t.Errorf("child says %q", line)
	}
	return cmd
}

// leftovers are the names of one child's namespaces that still exist.
func leftovers(t *testing.T, base string) (left []string) {
	t.Helper()
	names, err := netns.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if strings.HasPrefix(n, base) {
			left = append(left, n)
		}
	}
	return left
}

// TestKilledAnywhere kills a process that builds and removes labs, at random
// points, and then cleans: complete labs that were to be kept may stay, and
// nothing else.
func TestKilledAnywhere(t *testing.T) {
	needAdmin(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 20 {
		base := fmt.Sprintf("lr-crash%d-%d", os.Getpid(), round)
		cmd := startChild(t, base)
		time.Sleep(time.Duration(rnd.IntN(40_000)) * time.Microsecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if ws := cmd.ProcessState.Sys().(interface{ Signaled() bool }); !ws.Signaled() {
			t.Fatalf("round %d: the child ended by itself: %v", round, cmd.ProcessState)
		}
		if _, err := Clean(); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		labs, err := List()
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range labs {
			if strings.HasPrefix(i.Name, base) && i.Keep && i.Complete {
				if err := Down(i.Name); err != nil {
					t.Error(err)
				}
			}
		}
		if left := leftovers(t, base); len(left) > 0 {
			t.Errorf("round %d: left over: %v", round, left)
		}
	}
}

// TestCleanTogether: two cleaners share the work without getting in each
// other's way, and neither touches a lab whose maker lives.
func TestCleanTogether(t *testing.T) {
	mine := up(t, Config{})
	base := fmt.Sprintf("lr-twins%d", os.Getpid())
	cmd := startChild(t, base)
	for len(leftovers(t, base)) < 12 && cmd.ProcessState == nil {
		time.Sleep(time.Millisecond)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	seen := cleanTwice(t)
	for n, times := range seen {
		if times != 1 {
			t.Errorf("%s was removed %d times", n, times)
		}
	}
	if seen[mine.Name()] != 0 || !port(t, mine, A).Carrier {
		t.Error("the lab of a living maker was touched")
	}
	kept := 0
	for _, n := range leftovers(t, base) {
		if base, ok := baseOf(n); ok && strings.HasSuffix(n, "-a") {
			kept++
			if err := Down(base); err != nil {
				t.Error(err)
			}
		}
	}
	if kept != 1 { // number 2; number 0 was to be kept too, but its maker removed it
		t.Errorf("%d labs that were to be kept stand, want 1", kept)
	}
}

// cleanTwice cleans twice at once and counts what was removed.
func cleanTwice(t *testing.T) map[string]int {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]int{}
	for range 2 {
		wg.Go(func() {
			removed, err := Clean()
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, n := range removed {
				seen[n]++
			}
		})
	}
	wg.Wait()
	return seen
}

// TestCleanHalfMade makes each kind of remnant that a killed process can leave.
func TestCleanHalfMade(t *testing.T) {
	needAdmin(t)
	base := fmt.Sprintf("lr-half%d", os.Getpid())
	kinds := map[string]func(name string) error{
		"name without namespace":         func(n string) error { return os.WriteFile(netns.Dir+"/"+n+"-a", nil, 0) },
		"one namespace without its pair": halfNamed,
		"mount gone under the name": func(n string) error {
			if err := netns.Create(n + "-b"); err != nil {
				return err
			}
			return unix.Unmount(netns.Dir+"/"+n+"-b", unix.MNT_DETACH)
		},
	}
	i := 0
	for what, f := range kinds {
		name := fmt.Sprintf("%s-%d", base, i)
		i++
		if err := f(name); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		labs, err := List()
		if err != nil || !slices.ContainsFunc(labs, func(i Info) bool { return i.Name == name && !i.Complete && i.Stale() }) {
			t.Errorf("%s: not listed as half made: %+v, %v", what, labs, err)
		}
		if removed, err := Clean(); err != nil || !slices.Contains(removed, name) {
			t.Errorf("%s: Clean = %v, %v", what, removed, err)
		}
		if left := leftovers(t, base); len(left) > 0 {
			t.Errorf("%s: left over: %v", what, left)
		}
	}
}

// halfNamed names end A of a lab whose maker, a dead process, got no further.
func halfNamed(name string) error {
	l := &Lab{cfg: Config{Queues: 1, MTU: 1500, Keep: true}}
	defer l.Close()
	if err := l.build(); err != nil {
		return err
	}
	dead := mark{maker{1 << 30, 1}, true}.String()
	if err := l.ends[A].Do(func() error { return prepare(dead) }); err != nil {
		return err
	}
	return l.ends[A].Pin(name + "-a")
}

func TestForeignNamespaceIsLeftAlone(t *testing.T) {
	needAdmin(t)
	name := fmt.Sprintf("lr-foreign%d", os.Getpid())
	if err := netns.Create(name + "-a"); err != nil {
		t.Fatal(err)
	}
	defer netns.Delete(name + "-a")
	if removed, err := Clean(); err != nil || slices.Contains(removed, name) {
		t.Errorf("Clean = %v, %v: removed a namespace that no lab made", removed, err)
	}
	if err := Down(name); err == nil {
		t.Error("Down removed a namespace that no lab made")
	}
}
