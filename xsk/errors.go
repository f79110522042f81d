package xsk

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Error is a refusal by the kernel. errors.Is reaches the errno.
type Error struct {
	Op      string     // what was asked: "bind", "register umem", …
	IfIndex int        // 0 where no interface is involved
	Queue   int        // meaningless where IfIndex is 0
	Errno   unix.Errno // what the kernel said
	Hint    string     // cause or remedy, where one is known
}

// Error says operation, object, cause and, in brackets, the remedy.
func (e *Error) Error() string {
	s := e.Op
	if e.IfIndex != 0 {
		s += fmt.Sprintf(" ifindex %d queue %d", e.IfIndex, e.Queue)
	}
	s += ": " + e.Errno.Error()
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Unwrap gives the errno.
func (e *Error) Unwrap() error { return e.Errno }

// ConfigError is a value that no kernel would take; nothing was asked yet.
type ConfigError struct {
	Field string
	Value any
	Want  string
}

// Error names the field, the value and what would be right.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("config %s = %v: want %s", e.Field, e.Value, e.Want)
}

// hints maps an errno of one operation to its usual cause.
func hint(op string, errno unix.Errno) string {
	switch {
	case errno == unix.EPERM:
		return "needs CAP_NET_RAW; busy poll needs CAP_NET_ADMIN"
	case op == "socket" && errno == unix.EAFNOSUPPORT:
		return "kernel built without CONFIG_XDP_SOCKETS"
	case op == "register umem" && errno == unix.ENOBUFS:
		return "over RLIMIT_MEMLOCK: raise it or grant CAP_IPC_LOCK"
	case op == "register umem" && errno == unix.EINVAL:
		return "chunk, headroom or metadata length not supported; TX metadata needs Linux 6.11"
	case op == "set tx budget" && errno == unix.EACCES:
		return "budget must lie between 32 and the TX ring size"
	case op == "bind":
		return bindHint(errno)
	}
	return ""
}

func bindHint(errno unix.Errno) string {
	switch errno {
	case unix.EBUSY:
		return "another socket holds the queue"
	case unix.ENODEV:
		return "no such interface in this network namespace"
	case unix.EINVAL:
		return "no such queue, or flags the kernel does not know"
	case unix.EOPNOTSUPP:
		return "driver has no zero-copy AF_XDP"
	case unix.ENETDOWN:
		return "interface is down"
	}
	return ""
}

func newError(op string, cfg *Config, errno unix.Errno) *Error {
	e := &Error{Op: op, Errno: errno, Hint: hint(op, errno)}
	if cfg != nil {
		e.IfIndex, e.Queue = cfg.IfIndex, cfg.Queue
	}
	return e
}

// asErrno reduces an error of x/sys to its errno.
func asErrno(err error) unix.Errno {
	if errno, ok := err.(unix.Errno); ok {
		return errno
	}
	return unix.EIO
}
