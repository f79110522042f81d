package xsk

// DescProducer is the TX ring. Owner: one goroutine.
type DescProducer struct {
	producer
	ring []Desc
}

// NewDescProducer builds a TX ring over any memory; len(ring) must be a power
// of two.
func NewDescProducer(ix Indices, ring []Desc) (*DescProducer, error) {
	if err := checkRing(ix, len(ring)); err != nil {
		return nil, err
	}
	return &DescProducer{newProducer(ix, len(ring)), ring}, nil
}

// Set writes a reserved entry.
func (p *DescProducer) Set(idx uint32, d Desc) { p.ring[idx&p.mask] = d }

func (p *DescProducer) detach() {
	p.producer.detach()
	p.ring = make([]Desc, 1)
}

// DescConsumer is the RX ring. Owner: one goroutine.
type DescConsumer struct {
	consumer
	ring []Desc
}

// NewDescConsumer builds an RX ring over any memory; len(ring) must be a power
// of two.
func NewDescConsumer(ix Indices, ring []Desc) (*DescConsumer, error) {
	if err := checkRing(ix, len(ring)); err != nil {
		return nil, err
	}
	return &DescConsumer{newConsumer(ix, len(ring)), ring}, nil
}

// Get reads a peeked entry. Its address is the kernel's word: give it to
// Umem.Data, which checks it.
func (c *DescConsumer) Get(idx uint32) Desc { return c.ring[idx&c.mask] }

func (c *DescConsumer) detach() {
	c.consumer.detach()
	c.ring = make([]Desc, 1)
}

// AddrProducer is the fill ring. Owner: one goroutine.
type AddrProducer struct {
	producer
	ring []uint64
}

// NewAddrProducer builds a fill ring over any memory; len(ring) must be a
// power of two.
func NewAddrProducer(ix Indices, ring []uint64) (*AddrProducer, error) {
	if err := checkRing(ix, len(ring)); err != nil {
		return nil, err
	}
	return &AddrProducer{newProducer(ix, len(ring)), ring}, nil
}

// Set writes a reserved entry.
func (p *AddrProducer) Set(idx uint32, addr uint64) { p.ring[idx&p.mask] = addr }

func (p *AddrProducer) detach() {
	p.producer.detach()
	p.ring = make([]uint64, 1)
}

// AddrConsumer is the completion ring. Owner: one goroutine.
type AddrConsumer struct {
	consumer
	ring []uint64
}

// NewAddrConsumer builds a completion ring over any memory; len(ring) must be
// a power of two.
func NewAddrConsumer(ix Indices, ring []uint64) (*AddrConsumer, error) {
	if err := checkRing(ix, len(ring)); err != nil {
		return nil, err
	}
	return &AddrConsumer{newConsumer(ix, len(ring)), ring}, nil
}

// Get reads a peeked entry: the address given to the TX ring.
func (c *AddrConsumer) Get(idx uint32) uint64 { return c.ring[idx&c.mask] }

func (c *AddrConsumer) detach() {
	c.consumer.detach()
	c.ring = make([]uint64, 1)
}
