package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"linerate/bpf"
	"linerate/internal/frame"
	"linerate/internal/nic"
	"linerate/internal/stream"
	"linerate/internal/trial"
	"linerate/internal/wire"
	"linerate/xsk"
)

// isUsage tells whether an error is about the command line, which no other
// host would accept either.
func isUsage(err error) bool {
	var spec *trial.SpecError
	if errors.As(err, &spec) {
		return !spec.Here
	}
	return errors.As(err, new(*usageError)) ||
		errors.As(err, new(*wire.AboveLineRateError)) || errors.As(err, new(*wire.ParseError)) || errors.As(err, new(*wire.RangeError)) ||
		errors.As(err, new(*frame.LeastError)) || errors.As(err, new(*frame.LimitError)) || errors.As(err, new(*frame.FieldError)) ||
		errors.As(err, new(stream.Errors))
}

// explain adds what to type next to errors of packages that cannot know the
// command line.
func explain(err error, ends ...*endpoint) error {
	var foreign *bpf.ForeignProgramError
	var socket *xsk.Error
	var above *wire.AboveLineRateError
	var least *frame.LeastError
	var field *frame.FieldError
	switch {
	case errors.As(err, &foreign):
		return fmt.Errorf("%w%s\n  try: another interface, or take the program off first if it is yours (ip link set dev IFACE xdp off)", err, holder(foreign.Ifindex, 0, ends))
	case errors.As(err, &socket) && errors.Is(socket.Errno, unix.EBUSY):
		return fmt.Errorf("%w%s\n  try: end that process, or name another queue with --queues", err, holder(socket.IfIndex, socket.Queue, ends))
	case errors.As(err, &socket) && errors.Is(socket.Errno, unix.EOPNOTSUPP):
		return fmt.Errorf("%w\n  try: --mode auto, which takes copy mode where the driver has no zero-copy", err)
	case errors.As(err, &field):
		return fmt.Errorf("%w\n  try: linerate help run", err)
	case errors.Is(err, unix.EPERM) && os.Geteuid() != 0:
		return fmt.Errorf("%w\n  try: the same with sudo", err)
	case errors.As(err, &least):
		return fmt.Errorf("%w\n  try: --frame %d", err, least.Least)
	case errors.As(err, &above):
		return fmt.Errorf("%w\n  try: --rate max, or a lower rate", err)
	}
	return err
}

// holder names the process that has the queue, if it can be found out.
func holder(ifindex, queue int, ends []*endpoint) string {
	for _, ep := range ends {
		if ep == nil || ep.port.Index != ifindex {
			continue
		}
		if who, guess := nic.QueueHolder(ep.port, queue); who != "" {
			if guess {
				return ": perhaps held by " + who
			}
			return ": held by " + who
		}
	}
	return ""
}
