package bpf

import "encoding/binary"

// StampBytes is the room a stamp takes directly before the frame.
const StampBytes = 16

// stampMagic is STAMP_MAGIC in src/steer.c.
const stampMagic = 0x4c525354414d5031

// shortIdentity is TAG_SHORT_IDENTITY in src/parse.h.
const shortIdentity = 1 << 63

// LongIdentity is the identity of a frame with a long tag: its worker-and-stream
// word and the 40 bits of its sequence number.
func LongIdentity(workerStream uint16, seq uint64) uint64 {
	return uint64(workerStream)<<40 | seq&(1<<40-1)
}

// ShortIdentity is the identity of a frame with a short tag: its
// worker-and-stream byte and its sequence number.
func ShortIdentity(workerStream uint8, seq uint32) uint64 {
	return shortIdentity | uint64(workerStream)<<32 | uint64(seq)
}

// Stamp reads the receive time, CLOCK_MONOTONIC in ns, that the steer program
// put into the last 16 bytes of meta, the bytes directly before a frame. It is
// false for a frame of another identity: an AF_XDP descriptor does not say
// whether there is metadata, and a recycled buffer can hold an older stamp.
// A frame without a tag has identity 0.
func Stamp(meta []byte, identity uint64) (ns uint64, ok bool) {
	if len(meta) < StampBytes {
		return 0, false
	}
	meta = meta[len(meta)-StampBytes:]
	check := binary.NativeEndian.Uint64(meta[8:])
	return binary.NativeEndian.Uint64(meta), check == stampMagic^identity
}
