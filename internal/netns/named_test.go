package netns

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestCreateListDelete(t *testing.T) {
	name := named(t)
	list, err := List()
	if err != nil || !slices.Contains(list, name) || !slices.IsSorted(list) {
		t.Errorf("List = %v, %v; want it sorted and holding %s", list, err, name)
	}
	err = Create(name)
	if !errors.Is(err, unix.EEXIST) {
		t.Errorf("second Create = %v, want EEXIST", err)
	}
	if _, ok := Inum(name); !ok {
		t.Error("a refused Create destroyed the namespace that was there")
	}
	if err := Delete(name); err != nil {
		t.Fatal(err)
	}
	if list, _ := List(); slices.Contains(list, name) {
		t.Errorf("%s is still listed after Delete", name)
	}
	var nf *NotFoundError
	if err := Delete(name); !errors.As(err, &nf) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("second Delete = %v, want NotFoundError", err)
	}
	if _, err := Open(name); !errors.As(err, &nf) || nf.Name != name {
		t.Errorf("Open of a deleted name = %v, want NotFoundError", err)
	}
}

func TestPinNamesTheNamespace(t *testing.T) {
	needAdmin(t)
	n, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	name := "lrt-netns-pin-" + strconv.Itoa(os.Getpid())
	if err := n.Pin(name); err != nil {
		t.Fatal(err)
	}
	defer Delete(name)
	if in, ok := Inum(name); !ok || in != n.Inum() || n.Name() != name {
		t.Errorf("%q leads to %d, %v; the thread says %q, %d", name, in, ok, n.Name(), n.Inum())
	}
}

// TestNamesFromInside: names are the host's, even when they are made and
// deleted by a function that runs inside a namespace.
func TestNamesFromInside(t *testing.T) {
	n := open(t, named(t))
	name := n.Name() + "-inner"
	if err := n.Do(func() error { return Create(name) }); err != nil {
		t.Fatal(err)
	}
	if _, ok := Inum(name); !ok {
		t.Error("made inside, not seen outside")
	}
	if err := n.Do(func() error { return Delete(name) }); err != nil {
		t.Fatal(err)
	}
	if list, _ := List(); slices.Contains(list, name) {
		t.Error("deleted inside, still there outside")
	}
}

func TestDeleteHalfMade(t *testing.T) {
	name := named(t)
	path := filepath.Join(Dir, name)
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	if _, ok := Inum(name); ok {
		t.Error("Inum says a name without a mount is a namespace")
	}
	_, err := Open(name)
	var e *Error
	if !errors.As(err, &e) {
		t.Errorf("Open of a half made name = %v, want *Error", err)
	}
	if err := Delete(name); err != nil {
		t.Errorf("Delete of a half made name: %v", err)
	}
}

// TestDeletedNamespaceDies: threads opened earlier must not hold copies of the
// mount of a namespace that is deleted later.
func TestDeletedNamespaceDies(t *testing.T) {
	dying := named(t)
	holder := open(t, named(t))
	if err := Delete(dying); err != nil {
		t.Fatal(err)
	}
	err := holder.Do(func() error {
		b, err := os.ReadFile("/proc/thread-self/mountinfo")
		if strings.Contains(string(b), dying) {
			t.Errorf("a thread opened before still has %s mounted", dying)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestLaterNamesAreSeen: a thread sees the namespaces named after it entered.
func TestLaterNamesAreSeen(t *testing.T) {
	holder := open(t, named(t))
	later := named(t)
	err := holder.Do(func() error {
		if _, ok := Inum(later); !ok {
			t.Errorf("%s is no namespace seen from a thread opened before", later)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestLockExcludes(t *testing.T) {
	needAdmin(t)
	var inside atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			err := WithLock(func(Held) error {
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d hold the lock", n)
				}
				time.Sleep(time.Millisecond)
				inside.Add(-1)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestCreateTogether(t *testing.T) {
	needAdmin(t)
	name := named(t) // Dir exists and is shared now
	before := mountCount(t)
	var wg sync.WaitGroup
	var won, lost int
	var mu sync.Mutex
	twin := name + "-twin"
	for range 8 {
		wg.Go(func() {
			err := Create(twin)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won++
			case errors.Is(err, unix.EEXIST):
				lost++
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won != 1 || lost != 7 {
		t.Errorf("%d made it, %d were refused; want 1 and 7", won, lost)
	}
	if err := Delete(twin); err != nil {
		t.Fatal(err)
	}
	if after := mountCount(t); after != before {
		t.Errorf("%s mounts: %d before, %d after", Dir, before, after)
	}
}

// mountCount counts the mounts of this process's tests and of Dir itself.
func mountCount(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if f[4] == Dir || strings.HasPrefix(f[4], Dir+"/lrt-netns-") {
			n++
		}
	}
	return n
}

func TestCheckName(t *testing.T) {
	for _, bad := range []string{"", ".", "..", "a/b", "a\nb", "a\x00", strings.Repeat("x", 201)} {
		var e *NameError
		if err := CheckName(bad); !errors.As(err, &e) {
			t.Errorf("CheckName(%q) = %v, want *NameError", bad, err)
		}
		if err := Create(bad); err == nil {
			t.Errorf("Create(%q) succeeded", bad)
		}
	}
	for _, good := range []string{"a", "lr-12-34-a", "x.y", "..x"} {
		if err := CheckName(good); err != nil {
			t.Errorf("CheckName(%q) = %v", good, err)
		}
	}
}

func FuzzCheckName(f *testing.F) {
	f.Add("a")
	f.Add("..")
	f.Fuzz(func(t *testing.T, name string) {
		if CheckName(name) == nil && filepath.Dir(filepath.Join(Dir, name)) != Dir {
			t.Errorf("%q leaves %s", name, Dir)
		}
	})
}

func TestErrorNamesCapability(t *testing.T) {
	err := newError("enter", "x", sysAdmin, unix.EPERM)
	if got := err.Error(); got != "enter network namespace x: operation not permitted (needs CAP_SYS_ADMIN)" {
		t.Error(got)
	}
	if got := newError("enter", "", sysAdmin, unix.EINVAL).Error(); strings.Contains(got, "CAP") {
		t.Errorf("capability named for EINVAL: %s", got)
	}
	if !errors.Is(err, unix.EPERM) {
		t.Error("cause lost")
	}
}
