package xsk

import "golang.org/x/sys/unix"

// Desc is one entry of a TX or RX ring: a buffer in the UMEM.
// Source: struct xdp_desc in include/uapi/linux/if_xdp.h.
type Desc struct {
	// Addr is the offset of the first byte of data in the UMEM. In an
	// unaligned UMEM its upper 16 bits are an offset to add to the lower 48.
	Addr uint64
	// Len is the number of bytes of data, without FCS.
	Len uint32
	// Options holds Opt… bits.
	Options uint32
}

const (
	// OptContinued marks a buffer that the next descriptor continues: the
	// frame ends at the first descriptor without it.
	OptContinued uint32 = unix.XDP_PKT_CONTD
	// OptTxMetadata says that TxMetadata stands directly before Addr.
	OptTxMetadata uint32 = unix.XDP_TX_METADATA
)

// Limits of the kernel: XDP_UMEM_MIN_CHUNK_SIZE in net/xdp/xdp_umem.c,
// XSK_UNALIGNED_BUF_OFFSET_SHIFT in if_xdp.h, TX_BATCH_SIZE in net/xdp/xsk.c.
const (
	minChunk         = 2048
	maxChunk         = 4096
	unalignedShift   = 48
	unalignedMask    = uint64(1)<<unalignedShift - 1
	defaultTxBudget  = 32
	ringNeedsWakeup  = uint32(unix.XDP_RING_NEED_WAKEUP)
	statsLenBasic    = 24 // before Linux 5.9
	maxMetadataLen   = 256
	metadataLenAlign = 8
)

// umemReg is struct xdp_umem_reg; its last word is padding before Linux 6.8.
type umemReg struct {
	Addr          uint64
	Len           uint64
	ChunkSize     uint32
	Headroom      uint32
	Flags         uint32
	TxMetadataLen uint32
}

// ringOffset is struct xdp_ring_offset.
type ringOffset struct {
	Producer, Consumer, Desc, Flags uint64
}

// mmapOffsets is struct xdp_mmap_offsets (with flags: Linux 5.4 and later).
type mmapOffsets struct {
	Rx, Tx, Fill, Comp ringOffset
}

// sockaddrXDP is struct sockaddr_xdp.
type sockaddrXDP struct {
	Family       uint16
	Flags        uint16
	IfIndex      uint32
	Queue        uint32
	SharedUmemFD uint32
}

// statistics is struct xdp_statistics; the last three came with Linux 5.9.
type statistics struct {
	RxDropped            uint64
	RxInvalidDescs       uint64
	TxInvalidDescs       uint64
	RxRingFull           uint64
	RxFillRingEmptyDescs uint64
	TxRingEmptyDescs     uint64
}

// xdpOptions is struct xdp_options.
type xdpOptions struct {
	Flags uint32
}
