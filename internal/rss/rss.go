// Package rss predicts the receive queue of a frame: the Toeplitz hash of
// receive side scaling over its addresses and ports, and the indirection table
// that turns a hash into a queue. It is pure: what a device has comes from
// package nic.
package rss

import (
	"encoding/binary"
	"net/netip"
)

// Fields says what of a UDP datagram a device hashes.
type Fields struct {
	Addrs bool // source and destination address
	Ports bool // source and destination port
}

// Config is how one device spreads what it receives.
type Config struct {
	Key   []byte   // 40 bytes on most devices
	Table []uint32 // receive queues; its length is a power of two
	// UDP4 and UDP6 are what is hashed of a UDP datagram; nil: not known.
	UDP4, UDP6 *Fields
}

// Hash is the Toeplitz hash of data: for each bit that is set, counted from the
// front, the 32 bits of the key from there on are added without carry. The key
// must be at least 4 bytes longer than data; what it lacks counts as 0.
func Hash(key, data []byte) uint32 {
	var window uint64
	next := 0
	load := func() byte {
		next++
		if next > len(key) {
			return 0
		}
		return key[next-1]
	}
	for range 4 {
		window = window<<8 | uint64(load())
	}
	var hash uint32
	for _, b := range data {
		window = window<<8 | uint64(load()) // the upper 32 of 40 bits are those for the first bit
		for bit := range 8 {
			if b&(0x80>>bit) != 0 {
				hash ^= uint32(window >> (8 - bit))
			}
		}
	}
	return hash
}

// Input is what is hashed of a datagram: source address, destination address,
// source port, destination port, in network order, as far as the fields say.
func Input(src, dst netip.AddrPort, f Fields) []byte {
	var b []byte
	if f.Addrs {
		b = append(b, src.Addr().AsSlice()...)
		b = append(b, dst.Addr().AsSlice()...)
	}
	if f.Ports {
		b = binary.BigEndian.AppendUint16(b, src.Port())
		b = binary.BigEndian.AppendUint16(b, dst.Port())
	}
	return b
}

// Queue is the receive queue of a datagram; ok is false where the configuration
// does not tell.
func (c *Config) Queue(src, dst netip.AddrPort) (queue int, ok bool) {
	f := c.UDP6
	if dst.Addr().Is4() {
		f = c.UDP4
	}
	n := uint32(len(c.Table))
	if f == nil || n == 0 || n&(n-1) != 0 || len(c.Key) == 0 {
		return 0, false
	}
	return int(c.Table[Hash(c.Key, Input(src, dst, *f))&(n-1)]), true
}
