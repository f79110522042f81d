package xsk

import (
	"golang.org/x/sys/unix"
)

// ringMap is one mapped ring before it has a type.
type ringMap struct {
	mem  []byte
	off  ringOffset
	size uint32
}

// mapRing maps a ring of size entries of elem bytes. The offsets are the
// kernel's and are checked by the views made of the memory.
func (s *Socket) mapRing(pgoff int64, off ringOffset, size, elem uint32) (ringMap, error) {
	const sane = 1 << 20 // offsets are a few cache lines in every kernel
	if off.Desc > sane {
		return ringMap{}, newError("ring offsets", &s.cfg, unix.EPROTO)
	}
	length := int(off.Desc) + int(size)*int(elem)
	mem, err := unix.Mmap(s.fd, pgoff, length,
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return ringMap{}, newError("map ring", &s.cfg, asErrno(err))
	}
	s.maps = append(s.maps, mem)
	return ringMap{mem, off, size}, nil
}

func (m ringMap) indices() Indices {
	word := func(off uint64) *uint32 {
		if w := view[uint32](m.mem, off, 1); w != nil {
			return &w[0]
		}
		return nil
	}
	return Indices{word(m.off.Producer), word(m.off.Consumer), word(m.off.Flags)}
}

func (s *Socket) mapRings() error {
	var off mmapOffsets
	n, errno := getOption(s.fd, unix.XDP_MMAP_OFFSETS, &off)
	if errno == 0 && n < 128 {
		errno = unix.EOPNOTSUPP // no flags words: Linux before 5.4
	}
	if errno != 0 {
		return newError("ring offsets", &s.cfg, errno)
	}
	if err := s.mapBufferRings(&off); err != nil {
		return err
	}
	if s.cfg.RxSize > 0 {
		m, err := s.mapRing(unix.XDP_PGOFF_RX_RING, off.Rx, s.cfg.RxSize, 16)
		if err != nil {
			return err
		}
		if s.Rx, err = NewDescConsumer(m.indices(), view[Desc](m.mem, off.Rx.Desc, m.size)); err != nil {
			return err
		}
	}
	if s.cfg.TxSize > 0 {
		m, err := s.mapRing(unix.XDP_PGOFF_TX_RING, off.Tx, s.cfg.TxSize, 16)
		if err != nil {
			return err
		}
		if s.Tx, err = NewDescProducer(m.indices(), view[Desc](m.mem, off.Tx.Desc, m.size)); err != nil {
			return err
		}
	}
	s.shareIndices()
	return nil
}

func (s *Socket) mapBufferRings(off *mmapOffsets) error {
	m, err := s.mapRing(unix.XDP_UMEM_PGOFF_FILL_RING, off.Fill, s.cfg.FillSize, 8)
	if err != nil {
		return err
	}
	if s.Fill, err = NewAddrProducer(m.indices(), view[uint64](m.mem, off.Fill.Desc, m.size)); err != nil {
		return err
	}
	m, err = s.mapRing(unix.XDP_UMEM_PGOFF_COMPLETION_RING, off.Comp, s.cfg.CompSize, 8)
	if err != nil {
		return err
	}
	s.Comp, err = NewAddrConsumer(m.indices(), view[uint64](m.mem, off.Comp.Desc, m.size))
	return err
}

// prefill hands the caller's buffers over before bind.
func (s *Socket) prefill() error {
	n := uint32(len(s.cfg.Prefill))
	idx, got := s.Fill.Reserve(n)
	if got < n {
		return newError("prefill", &s.cfg, unix.ENOBUFS)
	}
	for i, addr := range s.cfg.Prefill {
		s.Fill.Set(idx+uint32(i), addr)
	}
	s.Fill.Submit(n)
	return nil
}

// detachRings cuts the rings off memory that is about to be unmapped.
func (s *Socket) detachRings() {
	s.shared = nil
	if s.Tx != nil {
		s.Tx.detach()
	}
	if s.Comp != nil {
		s.Comp.detach()
	}
	if s.Fill != nil {
		s.Fill.detach()
	}
	if s.Rx != nil {
		s.Rx.detach()
	}
}
