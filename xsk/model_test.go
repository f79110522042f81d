package xsk

import "testing"

// model is a ring as plain 64-bit counts: nothing wraps, nothing is cached.
type model struct {
	size, reserved, submitted, taken uint64
}

// FuzzProducer runs a sequence of operations (one byte: which, how many) on a
// TX ring and on the model. The kernel's share includes lies about its index.
func FuzzProducer(f *testing.F) {
	f.Add(uint32(0), uint8(3), []byte{0x10, 0x51, 0x93, 0x22})
	f.Add(uint32(nearWrap), uint8(2), []byte("\x3f\x7f\xbf\xff\x3f\x7f\xbf\x04\x41\x82\xc3"))
	f.Fuzz(func(t *testing.T, start uint32, logSize uint8, ops []byte) {
		mem := newShm[Desc](1<<(logSize%8), start)
		p, err := NewDescProducer(mem.indices(), mem.ring)
		if err != nil {
			t.Fatal(err)
		}
		m := model{size: uint64(len(mem.ring))}
		for _, op := range ops {
			m.stepProducer(t, mem, p, start, op>>6, uint64(op&63))
		}
		if p.Produced() != m.submitted || p.Consumed() != m.taken {
			t.Fatalf("counts %d %d, want %d %d", p.Produced(), p.Consumed(), m.submitted, m.taken)
		}
	})
}

func (m *model) stepProducer(t *testing.T, mem *shm[Desc], p *DescProducer, start uint32, what byte, n uint64) {
	switch what {
	case 0:
		idx, got := p.Reserve(uint32(n))
		want := min(n, m.size-(m.reserved-m.taken))
		if uint64(got) != want || idx != start+uint32(m.reserved) {
			t.Fatalf("reserve %d gave %d at %d, want %d at %d", n, got, idx, want, start+uint32(m.reserved))
		}
		for i := range got {
			p.Set(idx+i, Desc{Addr: m.reserved + uint64(i)})
		}
		m.reserved += want
	case 1:
		p.Submit(uint32(n))
		m.submitted += min(n, m.reserved-m.submitted)
	case 2:
		for range min(n, m.submitted-m.taken) {
			if d := mem.take(); d.Addr != m.taken {
				t.Fatalf("kernel took %d, want %d", d.Addr, m.taken)
			}
			m.taken++
		}
	case 3:
		m.lieToProducer(t, mem, p, uint32(n))
	}
}

// lieToProducer shows an index that cannot be, looks, and takes it back.
func (m *model) lieToProducer(t *testing.T, mem *shm[Desc], p *DescProducer, n uint32) {
	true1 := mem.cons
	p.Pending() // the last true value is accepted
	faults := p.Faults()
	mem.cons = mem.prod + 1 + n*0x03FFFFFF
	if mem.cons-true1 <= mem.prod-true1 {
		mem.cons = true1
		return // happens to be possible
	}
	free := m.size - (m.reserved - m.taken)
	if pending := p.Pending(); uint64(pending) != m.submitted-m.taken || p.Faults() != faults+1 {
		t.Fatalf("lie %#x: pending %d, faults %d", mem.cons, pending, p.Faults())
	}
	if _, got := p.Reserve(1 << 31); uint64(got) != free {
		t.Fatalf("lie %#x: %d free, want %d", mem.cons, got, free)
	} else {
		p.Cancel(got)
	}
	mem.cons = true1
}

// FuzzConsumer is the same for the completion ring.
func FuzzConsumer(f *testing.F) {
	f.Add(uint32(0), uint8(3), []byte{0x10, 0x51, 0x93, 0x22})
	f.Add(uint32(nearWrap), uint8(2), []byte("\x3f\x7f\xbf\xff\x3f\x7f\xbf\x04\x41\x82\xc3"))
	f.Fuzz(func(t *testing.T, start uint32, logSize uint8, ops []byte) {
		mem := newShm[uint64](1<<(logSize%8), start)
		c, err := NewAddrConsumer(mem.indices(), mem.ring)
		if err != nil {
			t.Fatal(err)
		}
		// submitted: put by the kernel; reserved: peeked; taken: released.
		m := model{size: uint64(len(mem.ring))}
		for _, op := range ops {
			m.stepConsumer(t, mem, c, start, op>>6, uint64(op&63))
		}
		if c.Produced() != m.submitted || c.Consumed() != m.taken {
			t.Fatalf("counts %d %d, want %d %d", c.Produced(), c.Consumed(), m.submitted, m.taken)
		}
	})
}

func (m *model) stepConsumer(t *testing.T, mem *shm[uint64], c *AddrConsumer, start uint32, what byte, n uint64) {
	switch what {
	case 0:
		for range min(n, m.size-(m.submitted-m.taken)) {
			mem.put(m.submitted)
			m.submitted++
		}
	case 1:
		idx, got := c.Peek(uint32(n))
		if idx != start+uint32(m.reserved) || uint64(got) > min(n, m.submitted-m.reserved) {
			t.Fatalf("peek %d gave %d at %d; %d are there", n, got, idx, m.submitted-m.reserved)
		}
		if got == 0 && n > 0 && m.submitted > m.reserved {
			t.Fatalf("peek %d gave none of %d", n, m.submitted-m.reserved)
		}
		for i := range got {
			if v := c.Get(idx + i); v != m.reserved+uint64(i) {
				t.Fatalf("entry %d is %d", m.reserved+uint64(i), v)
			}
		}
		m.reserved += uint64(got)
	case 2:
		c.Release(uint32(n))
		m.taken += min(n, m.reserved-m.taken)
	case 3:
		m.lieToConsumer(t, mem, c, uint32(n))
	}
}

func (m *model) lieToConsumer(t *testing.T, mem *shm[uint64], c *AddrConsumer, n uint32) {
	true1 := mem.prod
	c.Available()
	faults := c.Faults()
	mem.prod = mem.cons + uint32(m.size) + 1 + n*0x03FFFFFF
	if mem.prod-true1 <= uint32(m.size)-(true1-mem.cons) {
		mem.prod = true1
		return
	}
	if avail := c.Available(); uint64(avail) != m.submitted-m.reserved || c.Faults() != faults+1 {
		t.Fatalf("lie %#x: %d available, faults %d", mem.prod, avail, c.Faults())
	}
	mem.prod = true1
}
