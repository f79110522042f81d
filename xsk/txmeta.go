package xsk

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// TxMetadataSize is sizeof(struct xsk_tx_metadata), Linux 6.17.
const TxMetadataSize = 24

// What TxMetadata.Flags may ask for. On ixgbe none of it is offloaded; in copy
// mode the timestamp is software's and the checksum needs UmemConfig.SwCsum.
const (
	MetaTimestamp  uint64 = unix.XDP_TXMD_FLAGS_TIMESTAMP
	MetaChecksum   uint64 = unix.XDP_TXMD_FLAGS_CHECKSUM
	MetaLaunchTime uint64 = unix.XDP_TXMD_FLAGS_LAUNCH_TIME
)

// TxMetadata is struct xsk_tx_metadata on its way to the kernel. It stands in
// the UMEM directly before the frame, in the last bytes before Desc.Addr minus
// UmemConfig.TxMetadataLen; the descriptor carries OptTxMetadata.
type TxMetadata struct {
	Flags      uint64
	CsumStart  uint16 // bytes from the start of the frame
	CsumOffset uint16 // bytes from CsumStart to the checksum
	LaunchTime uint64 // ns
}

// Put writes the metadata to b, which starts UmemConfig.TxMetadataLen before
// the frame; false if it is too short for what the flags ask.
func (m TxMetadata) Put(b []byte) bool {
	if len(b) < 16 || m.Flags&MetaLaunchTime != 0 && len(b) < TxMetadataSize {
		return false
	}
	e := binary.NativeEndian
	e.PutUint64(b, m.Flags)
	e.PutUint16(b[8:], m.CsumStart)
	e.PutUint16(b[10:], m.CsumOffset)
	e.PutUint32(b[12:], 0)
	if len(b) >= TxMetadataSize {
		e.PutUint64(b[16:], m.LaunchTime)
	}
	return true
}

// TxTimestamp reads, from the same bytes and after completion, when the frame
// was sent, in ns of the device's clock (copy mode: TAI).
func TxTimestamp(b []byte) (ns uint64, ok bool) {
	if len(b) < 16 {
		return 0, false
	}
	return binary.NativeEndian.Uint64(b[8:]), true
}
