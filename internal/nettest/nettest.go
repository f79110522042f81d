// Package nettest helps tests that need the kernel: earned skips, labs, a check
// that nothing is left behind, and a box that loses or damages frames on
// purpose. Only _test.go files import it.
package nettest

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"linerate/internal/lab/veth"
)

// Main is a TestMain body: it runs the tests and fails the package if
// goroutines are left.
func Main(m *testing.M) { goleak.VerifyTestMain(m) }

// Lab builds a lab that is removed with the test, or skips the test where no
// lab can be built. With neither name nor Keep in cfg nothing can be left.
func Lab(t testing.TB, cfg veth.Config) *veth.Lab {
	t.Helper()
	Require(t, Namespaces)
	l, err := veth.Up(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// noSkip says that a missing capability is a failure here.
func noSkip() bool { return os.Getenv("TEST_NO_SKIP") == "1" }
