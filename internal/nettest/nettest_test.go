package nettest

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"linerate/internal/lab/veth"
	"linerate/internal/netns"
)

func TestMain(m *testing.M) { Main(m) }

// fakeT records what a helper does to its test. Its embedded nil TB makes any
// other call a panic.
type fakeT struct {
	testing.TB
	errors, fatals, skips []string
	cleanups              []func()
}

func (f *fakeT) Helper()                   {}
func (f *fakeT) Cleanup(c func())          { f.cleanups = append(f.cleanups, c) }
func (f *fakeT) Error(args ...any)         { f.errors = append(f.errors, fmt.Sprint(args...)) }
func (f *fakeT) Errorf(s string, a ...any) { f.errors = append(f.errors, fmt.Sprintf(s, a...)) }
func (f *fakeT) Fatal(args ...any) {
	f.fatals = append(f.fatals, fmt.Sprint(args...))
	runtime.Goexit()
}
func (f *fakeT) Skip(args ...any) {
	f.skips = append(f.skips, fmt.Sprint(args...))
	runtime.Goexit()
}

// run calls f as a test of its own, with its cleanups.
func run(f func(t *fakeT)) *fakeT {
	ft := &fakeT{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, c := range slices.Backward(ft.cleanups) {
				c()
			}
		}()
		f(ft)
	}()
	<-done
	return ft
}

func TestRequireEarnsItsSkip(t *testing.T) {
	const nonsense Need = "a flying pig"
	t.Setenv("TEST_NO_SKIP", "")
	ft := run(func(t *fakeT) { Require(t, nonsense); t.Error("went on") })
	if len(ft.skips) != 1 || !strings.Contains(ft.skips[0], string(nonsense)) || len(ft.errors)+len(ft.fatals) > 0 {
		t.Errorf("%+v", ft)
	}
	t.Setenv("TEST_NO_SKIP", "1")
	ft = run(func(t *fakeT) { Require(t, nonsense); t.Error("went on") })
	if len(ft.fatals) != 1 || !strings.Contains(ft.fatals[0], string(nonsense)) || len(ft.errors)+len(ft.skips) > 0 {
		t.Errorf("%+v", ft)
	}
}

// TestEveryNeedIsProbed: a probe that says yes must leave nothing behind, one
// that says no must say why.
func TestEveryNeedIsProbed(t *testing.T) {
	CheckNothingLeft(t)
	for _, n := range []Need{Root, Namespaces, RawSockets, BPF, Tracing, VethXDP, AFXDP, ThreadedNAPI} {
		err := probe(n)()
		t.Logf("%s: %v", n, err)
		if err != nil && strings.Contains(err.Error(), "no probe") {
			t.Errorf("%s: %v", n, err)
		}
		if again := Check(n); (again == nil) != (err == nil) {
			t.Errorf("%s: probed %v, remembered %v", n, err, again)
		}
	}
}

func TestLabGoesWithItsTest(t *testing.T) {
	Require(t, Namespaces)
	var name string
	ft := run(func(t *fakeT) { name = Lab(t, veth.Config{}).Namespace(veth.A) })
	if len(ft.errors)+len(ft.fatals) > 0 {
		t.Errorf("%+v", ft)
	}
	if list, _ := netns.List(); name == "" || slices.Contains(list, name) {
		t.Errorf("namespace %q is still there", name)
	}
}

// remnants leaves one thing of each kind, by what the check calls it.
func remnants() map[string]func() (undo func(), err error) {
	return map[string]func() (undo func(), err error){
		"file socket": func() (func(), error) {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			return func() { unix.Close(fd) }, err
		},
		"thread in another namespace": func() (func(), error) {
			n, err := netns.New()
			return func() { n.Close() }, err
		},
		"namespace lr-": func() (func(), error) {
			name := fmt.Sprintf("%s%d-left", veth.Prefix, os.Getpid())
			err := netns.Create(name)
			return func() { _ = netns.Delete(name) }, err
		},
		"bpf-prog": func() (func(), error) {
			p, err := pass()
			return func() { p.Close() }, err
		},
		"found unexpected goroutines": func() (func(), error) {
			stop := make(chan struct{})
			go func() { <-stop }()
			return func() { close(stop) }, nil
		},
	}
}

func TestCheckNothingLeftSees(t *testing.T) {
	Require(t, Namespaces)
	for want, leave := range remnants() {
		var undo func()
		ft := run(func(ft *fakeT) {
			checkNothingLeft(ft, 50*time.Millisecond)
			var err error
			if undo, err = leave(); err != nil {
				t.Errorf("%s: %v", want, err)
			}
		})
		undo()
		if !strings.Contains(strings.Join(ft.errors, "\n"), want) {
			t.Errorf("left a %s; it said %q", want, ft.errors)
		}
	}
	if ft := run(func(ft *fakeT) { CheckNothingLeft(ft) }); len(ft.errors) > 0 {
		t.Errorf("nothing left; it said %q", ft.errors)
	}
}

func TestMore(t *testing.T) {
	got := more(map[string]int{"a": 1, "gone": 4}, map[string]int{"a": 3, "b": 1})
	if want := []string{"1 of b", "2 of a"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
