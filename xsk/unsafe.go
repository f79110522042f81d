package xsk

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Everything unsafe of this package stands here: structs passed to system
// calls, and typed views of the memory of a ring.

// setOption passes a struct to setsockopt(SOL_XDP).
func setOption[T any](fd, opt int, v *T) unix.Errno {
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_XDP,
		uintptr(opt), uintptr(unsafe.Pointer(v)), unsafe.Sizeof(*v), 0)
	return errno
}

// getOption fills a struct from getsockopt(SOL_XDP); n is what the kernel wrote.
func getOption[T any](fd, opt int, v *T) (n uint32, errno unix.Errno) {
	n = uint32(unsafe.Sizeof(*v))
	_, _, errno = unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_XDP,
		uintptr(opt), uintptr(unsafe.Pointer(v)), uintptr(unsafe.Pointer(&n)), 0)
	return n, errno
}

// bindAddr binds a socket to a queue.
func bindAddr(fd int, addr *sockaddrXDP) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_BIND, uintptr(fd),
		uintptr(unsafe.Pointer(addr)), unsafe.Sizeof(*addr))
	return errno
}

// memoryAddr is where mmap put the UMEM; the Go heap does not move it.
func memoryAddr(mem []byte) uint64 {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
}

// view is size entries of T at off, or nil where mem does not hold them.
func view[T any](mem []byte, off uint64, size uint32) []T {
	var zero T
	need := uint64(size) * uint64(unsafe.Sizeof(zero))
	misaligned := off%uint64(unsafe.Alignof(zero)) != 0
	if misaligned || size == 0 || off > uint64(len(mem)) || need > uint64(len(mem))-off {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&mem[off])), size)
}
