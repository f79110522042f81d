package bpf

import (
	"encoding/binary"
	"reflect"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	testRing  = 64   // entries of every ring
	testChunk = 2048 // bytes per frame in the UMEM
)

// rawXSK is the least AF_XDP socket: one UMEM, four rings, no wake-up flags.
// Chunks 0 to 63 are for receiving and 64 to 127 for sending.
type rawXSK struct {
	fd                   int
	umem                 []byte
	fill, comp, tx, recv rawRing
}

type rawRing struct {
	mem []byte
	off unix.XDPRingOffset
}

func (r rawRing) word(off uint64) []byte { return r.mem[off:][:4] }

// move adds n to the producer or consumer index at off and returns its old value.
func (r rawRing) move(off uint64, n uint32) uint32 {
	i := binary.NativeEndian.Uint32(r.word(off))
	binary.NativeEndian.PutUint32(r.word(off), i+n)
	return i
}

func (r rawRing) desc(i uint32) []byte { return r.mem[r.off.Desc+uint64(i%testRing)*16:][:16] }

// pending is the number of entries between the indices.
func (r rawRing) pending() uint32 { return r.move(r.off.Producer, 0) - r.move(r.off.Consumer, 0) }

// openXSK binds a socket in copy mode to queue 0 of an interface.
func openXSK(t testing.TB, ifindex int) *rawXSK {
	t.Helper()
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	s := &rawXSK{fd: fd}
	s.umem = mapping(t, -1, 0, 2*testRing*testChunk, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	reg := binary.NativeEndian.AppendUint64(nil, uint64(reflect.ValueOf(s.umem).Pointer()))
	reg = binary.NativeEndian.AppendUint64(reg, uint64(len(s.umem)))
	reg = binary.NativeEndian.AppendUint32(reg, testChunk)
	reg = append(reg, make([]byte, 12)...) // headroom, flags, metadata length
	must(t, unix.SetsockoptString(fd, unix.SOL_XDP, unix.XDP_UMEM_REG, string(reg)))
	for _, opt := range []int{unix.XDP_UMEM_FILL_RING, unix.XDP_UMEM_COMPLETION_RING, unix.XDP_RX_RING, unix.XDP_TX_RING} {
		must(t, unix.SetsockoptInt(fd, unix.SOL_XDP, opt, testRing))
	}
	var off unix.XDPMmapOffsets
	size := uint32(unsafe.Sizeof(off))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_XDP, unix.XDP_MMAP_OFFSETS,
		uintptr(unsafe.Pointer(&off)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		t.Fatalf("read ring offsets: %v", errno)
	}
	ring := func(off unix.XDPRingOffset, page int64) rawRing {
		return rawRing{mapping(t, fd, page, int(off.Desc)+testRing*16, unix.MAP_SHARED|unix.MAP_POPULATE), off}
	}
	s.fill, s.comp = ring(off.Fr, unix.XDP_UMEM_PGOFF_FILL_RING), ring(off.Cr, unix.XDP_UMEM_PGOFF_COMPLETION_RING)
	s.recv, s.tx = ring(off.Rx, unix.XDP_PGOFF_RX_RING), ring(off.Tx, unix.XDP_PGOFF_TX_RING)
	must(t, unix.Bind(fd, &unix.SockaddrXDP{Flags: unix.XDP_COPY, Ifindex: uint32(ifindex)}))
	return s
}

func mapping(t testing.TB, fd int, off int64, n, flags int) []byte {
	t.Helper()
	b, err := unix.Mmap(fd, off, n, unix.PROT_READ|unix.PROT_WRITE, flags)
	must(t, err)
	t.Cleanup(func() { unix.Munmap(b) })
	return b
}

// refill gives n receive chunks to the kernel.
func (s *rawXSK) refill(n uint32) {
	for i := range n {
		at := s.fill.off.Desc + uint64(i)*8
		binary.NativeEndian.PutUint64(s.fill.mem[at:], uint64(i)*testChunk)
	}
	s.fill.move(s.fill.off.Producer, n)
}

// send sends a frame n times and waits until the kernel is done with all.
func (s *rawXSK) send(t testing.TB, frame []byte, n uint32) {
	t.Helper()
	first := s.tx.move(s.tx.off.Producer, 0)
	for i := range n {
		addr := (testRing + i) * testChunk
		copy(s.umem[addr:], frame)
		d := s.tx.desc(first + i)
		binary.NativeEndian.PutUint64(d, uint64(addr))
		binary.NativeEndian.PutUint32(d[8:], uint32(len(frame)))
		binary.NativeEndian.PutUint32(d[12:], 0)
	}
	s.tx.move(s.tx.off.Producer, n)
	eventually(t, "frames sent", func() bool {
		_, _, errno := unix.Syscall6(unix.SYS_SENDTO, uintptr(s.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
		if errno != 0 && errno != unix.EAGAIN {
			t.Fatalf("kick: %v", errno)
		}
		return s.comp.pending() == n
	})
	s.comp.move(s.comp.off.Consumer, n)
}

// receive takes one frame and the 16 bytes before it.
func (s *rawXSK) receive(t testing.TB) (meta, frame []byte) {
	t.Helper()
	eventually(t, "frame received", func() bool { return s.recv.pending() > 0 })
	d := s.recv.desc(s.recv.move(s.recv.off.Consumer, 1))
	addr, n := binary.NativeEndian.Uint64(d), binary.NativeEndian.Uint32(d[8:])
	return s.umem[addr-StampBytes : addr], s.umem[addr:][:n]
}
