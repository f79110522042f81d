package netns

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrClosed is returned by Do after Close.
var ErrClosed = errors.New("namespace thread is closed")

// Error says which operation on which namespace went wrong, and why.
type Error struct {
	Op         string // "enter", "create", "mount sysfs for", …
	Name       string // namespace as the caller named it, "" for the caller's own
	Capability string // the capability that was missing, or ""
	Err        error
}

// Error gives the whole message on one line.
func (e *Error) Error() string {
	name := e.Name
	if name == "" {
		name = "(own)"
	}
	s := fmt.Sprintf("%s network namespace %s: %v", e.Op, name, e.Err)
	if e.Capability != "" {
		s += " (needs " + e.Capability + ")"
	}
	return s
}

// Unwrap gives the cause, as a rule a unix.Errno.
func (e *Error) Unwrap() error { return e.Err }

// newError names the capability only where the kernel refused for want of one.
func newError(op, name, capability string, err error) error {
	e := &Error{Op: op, Name: name, Err: err}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		e.Capability = capability
	}
	return e
}

// NotFoundError is returned for a namespace that does not exist.
type NotFoundError struct {
	Name     string
	Existing []string // what Dir holds, sorted
}

// Error gives the whole message on one line.
func (e *NotFoundError) Error() string {
	if len(e.Existing) == 0 {
		return fmt.Sprintf("network namespace %s does not exist; %s holds none", e.Name, Dir)
	}
	return fmt.Sprintf("network namespace %s does not exist; there are: %s", e.Name, strings.Join(e.Existing, ", "))
}

// Is makes errors.Is(err, fs.ErrNotExist) hold.
func (e *NotFoundError) Is(target error) bool { return target == fs.ErrNotExist }

// NameError is returned for a name that cannot stand for a namespace.
type NameError struct {
	Name, What string
}

// Error gives the whole message on one line.
func (e *NameError) Error() string {
	return fmt.Sprintf("network namespace name %q: %s", e.Name, e.What)
}

// CheckName says whether name can be an entry of Dir: not empty, at most 200
// bytes, no slash, no control character, not "." or "..". The error is a *NameError.
func CheckName(name string) error {
	switch {
	case name == "":
		return &NameError{name, "is empty"}
	case name == "." || name == "..":
		return &NameError{name, "is a directory reference"}
	case len(name) > 200:
		return &NameError{name, "is longer than 200 bytes"}
	}
	for _, c := range []byte(name) {
		if c == '/' || c < 0x20 || c == 0x7f {
			return &NameError{name, fmt.Sprintf("holds the byte 0x%02x", c)}
		}
	}
	return nil
}
