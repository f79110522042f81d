package xsk

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// UmemConfig lays out a UMEM. It is checked once, by NewUmem.
type UmemConfig struct {
	// Frames is the number of chunks.
	Frames int
	// Chunk is the size of one in bytes: 2048 or 4096; anything between if
	// Unaligned. ixgbe zero-copy wants 4096: with 2048 it programs receive
	// buffers of 1 KB and drops what is longer without counting it.
	Chunk int
	// Headroom is left free by the kernel before each received frame, on top
	// of its own 256 bytes.
	Headroom int
	// Unaligned lets a frame start anywhere, across chunk borders too.
	Unaligned bool
	// Hugepages asks for 2 MiB pages; without any free the UMEM falls back to
	// pages of 4 KiB and says so in Notes.
	Hugepages bool
	// SwCsum lets the kernel compute the checksum a copy-mode TX descriptor
	// asks for (Linux 6.11).
	SwCsum bool
	// TxMetadataLen is the room for TxMetadata before each TX buffer: 0 or a
	// multiple of 8 up to 248 (Linux 6.11).
	TxMetadataLen int
}

func (c *UmemConfig) check() error {
	chunkOK := c.Chunk == minChunk || c.Chunk == maxChunk
	if c.Unaligned {
		chunkOK = c.Chunk >= minChunk && c.Chunk <= maxChunk
	}
	switch {
	case c.Frames <= 0 || uint64(c.Frames) > unalignedMask/maxChunk:
		return &ConfigError{"umem frames", c.Frames, "at least 1"}
	case !chunkOK:
		return &ConfigError{"umem chunk", c.Chunk, "2048 or 4096; any between only if unaligned"}
	case c.Headroom < 0 || c.Headroom >= c.Chunk-unix.XDP_PACKET_HEADROOM:
		return &ConfigError{"umem headroom", c.Headroom, "less than the chunk minus 256"}
	case c.TxMetadataLen < 0 || c.TxMetadataLen >= maxMetadataLen || c.TxMetadataLen%metadataLenAlign != 0:
		return &ConfigError{"umem tx metadata length", c.TxMetadataLen, "a multiple of 8 under 256"}
	}
	return nil
}

func (c *UmemConfig) flags() (flags uint32) {
	if c.Unaligned {
		flags |= unix.XDP_UMEM_UNALIGNED_CHUNK_FLAG
	}
	if c.SwCsum {
		flags |= unix.XDP_UMEM_TX_SW_CSUM
	}
	if c.TxMetadataLen > 0 {
		flags |= unix.XDP_UMEM_TX_METADATA_LEN
	}
	return flags
}

// Umem is the memory that frames are read from and written to. One UMEM may
// serve several queues, each with its own fill and completion ring; which
// socket uses which chunk is for the callers to agree on (see Group).
// Data, Chunk and Base may be called by every goroutine until Close.
type Umem struct {
	mem       []byte
	unaligned bool
	chunk     uint64
	frames    int
	cfg       UmemConfig
	mapped    []byte // mem and the rest of its last page
	notes     []string

	mu      sync.Mutex // held over a bind: sockets of one UMEM open in turn
	sockets []*Socket  // bound; the kernel knows the UMEM through any of them
	closed  bool
}

// NewUmem maps the memory. The kernel learns of it (and pins it) with the
// first Open.
// Errors: *ConfigError, *Error (ENOMEM).
func NewUmem(cfg UmemConfig) (*Umem, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	u := &Umem{cfg: cfg, unaligned: cfg.Unaligned, chunk: uint64(cfg.Chunk), frames: cfg.Frames}
	length := cfg.Frames * cfg.Chunk
	if err := u.mapMemory(length); err != nil {
		return nil, err
	}
	u.mem = u.mapped[:length:length]
	return u, nil
}

func (u *Umem) mapMemory(length int) error {
	const hugePage = 2 << 20
	prot := unix.PROT_READ | unix.PROT_WRITE
	flags := unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_POPULATE
	if u.cfg.Hugepages {
		rounded := (length + hugePage - 1) &^ (hugePage - 1)
		mem, err := unix.Mmap(-1, 0, rounded, prot, flags|unix.MAP_HUGETLB|unix.MAP_HUGE_2MB)
		if err == nil {
			u.mapped = mem
			return nil
		}
		u.notes = append(u.notes, fmt.Sprintf(
			"umem of %d bytes: no 2 MiB pages (%v; see vm.nr_hugepages): 4 KiB pages used", rounded, err))
	}
	mem, err := unix.Mmap(-1, 0, length, prot, flags)
	if err != nil {
		return newError("map umem", nil, asErrno(err))
	}
	u.mapped = mem
	return nil
}

// register makes the UMEM known through a socket that is not yet bound.
// Linux before 5.4 takes 24 bytes, before 6.8 the last word is padding.
func (u *Umem) register(fd int, cfg *Config) error {
	reg := umemReg{
		Addr: memoryAddr(u.mapped), Len: uint64(len(u.mem)),
		ChunkSize: uint32(u.cfg.Chunk), Headroom: uint32(u.cfg.Headroom),
		Flags: u.cfg.flags(), TxMetadataLen: uint32(u.cfg.TxMetadataLen),
	}
	if errno := setOption(fd, unix.XDP_UMEM_REG, &reg); errno != 0 {
		return newError("register umem", cfg, errno)
	}
	return nil
}

// Data is the n bytes at addr, an address as it stands in a descriptor; nil if
// they do not lie in the UMEM. It must not be used after Close.
func (u *Umem) Data(addr uint64, n uint32) []byte {
	if u.unaligned {
		addr = addr&unalignedMask + addr>>unalignedShift
	}
	end := addr + uint64(n)
	if addr > end || end > uint64(len(u.mem)) {
		return nil
	}
	return u.mem[addr:end:end]
}

// Chunk is the address of chunk i; i is taken modulo the number of chunks, so
// that the result always lies in the UMEM.
func (u *Umem) Chunk(i int) uint64 {
	return uint64(uint(i)%uint(u.frames)) * u.chunk
}

// Base is the start of the chunk that addr, from a descriptor, lies in: what
// goes back into the fill ring.
func (u *Umem) Base(addr uint64) uint64 {
	if u.unaligned {
		return addr & unalignedMask
	}
	return addr &^ (u.chunk - 1)
}

// Frames is the number of chunks.
func (u *Umem) Frames() int { return u.frames }

// ChunkSize is the size of a chunk in bytes.
func (u *Umem) ChunkSize() int { return int(u.chunk) }

// Config is what NewUmem was given.
func (u *Umem) Config() UmemConfig { return u.cfg }

// Notes says what was asked for and not granted.
func (u *Umem) Notes() []string { return append([]string(nil), u.notes...) }

// Close unmaps the memory. It refuses (EBUSY) while a socket uses it, since
// slices from Data would fault. A second call does nothing.
func (u *Umem) Close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return nil
	}
	if n := len(u.sockets); n > 0 {
		e := newError("close umem", nil, unix.EBUSY)
		e.Hint = fmt.Sprintf("%d sockets still open", n)
		return e
	}
	u.closed, u.mem = true, nil
	if err := unix.Munmap(u.mapped); err != nil {
		return newError("unmap umem", nil, asErrno(err))
	}
	return nil
}

// ErrUmemClosed is what Open says to a UMEM after its Close.
var ErrUmemClosed = errors.New("umem is closed")

func (u *Umem) addSocket(s *Socket) { u.sockets = append(u.sockets, s) }

func (u *Umem) dropSocket(s *Socket) {
	for i, other := range u.sockets {
		if other == s {
			u.sockets = append(u.sockets[:i], u.sockets[i+1:]...)
			return
		}
	}
}
