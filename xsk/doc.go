// Package xsk drives AF_XDP sockets: a UMEM, the four rings of a queue, and
// the wake-ups between user space and kernel.
//
// One goroutine owns one Socket: its rings (Tx, Comp, Fill, Rx), KickTx,
// WakeRx and KickIfStalled hold no lock. Stats, FD, ZeroCopied and Notes may
// be called from any goroutine. Close may be called once the owner has
// stopped.
//
// Ring indices are touched only through sync/atomic. A producer stores its
// index once per batch and reads the flags word after it: Go's store is a full
// barrier, so the kernel's "set need_wakeup, read producer" and our "store
// producer, read need_wakeup" cannot both miss (Linux include/net/xdp_sock_drv.h
// has the other half).
//
// What the kernel, or whoever else holds the shared memory, writes is not
// trusted: an index outside the ring is counted and ignored, an address
// outside the UMEM gives a nil slice.
//
// Kernel facts cited here were read in net/xdp/xsk.c and xsk_queue.h, and those
// marked "measured" were seen on Linux 6.18 with veth in copy mode.
package xsk
