package bpf

import (
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// SocketsFile is the XSKMAP as a file, for a process that opens sockets of its
// own. The caller closes it.
func (s *Steer) SocketsFile() (*os.File, error) {
	fd, err := unix.FcntlInt(uintptr(s.coll.Maps["sockets"].FD()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("duplicate the map of sockets: %w", err)
	}
	return os.NewFile(uintptr(fd), "xskmap"), nil
}

// SocketMap is an XSKMAP that another process made.
type SocketMap struct{ m *ebpf.Map }

// OpenSocketMap takes over a file descriptor that a parent process passed on.
func OpenSocketMap(fd int) (*SocketMap, error) {
	m, err := ebpf.NewMapFromFD(fd)
	if err != nil {
		return nil, fmt.Errorf("open the map of sockets: %w", err)
	}
	return &SocketMap{m}, nil
}

// SetSocket directs a receive queue's frames to the AF_XDP socket fd.
func (s *SocketMap) SetSocket(queue, fd int) error {
	if err := s.m.Put(uint32(queue), uint32(fd)); err != nil {
		return fmt.Errorf("set socket of queue %d: %w", queue, err)
	}
	return nil
}

// Close closes the map.
func (s *SocketMap) Close() error { return s.m.Close() }
