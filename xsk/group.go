package xsk

import (
	"errors"
)

// GroupConfig describes sockets on several queues of one interface.
type GroupConfig struct {
	Queues []int
	// Umem is the memory of each member: Frames chunks per queue.
	Umem UmemConfig
	// Shared puts all members on one UMEM of len(Queues) times Frames.
	Shared bool
	// Socket is used for every member; its Queue is set from Queues. Prefill
	// is not taken: see PrefillChunks.
	Socket Config
	// PrefillChunks puts the first so many chunks of each member into its
	// fill ring before bind.
	PrefillChunks int
}

// Member is one queue of a Group and the chunks that are its own.
type Member struct {
	Socket *Socket
	Umem   *Umem
	First  int // its first chunk
	Chunks int // how many
}

// Chunk is the address of the member's own chunk i, modulo Chunks.
func (m *Member) Chunk(i int) uint64 { return m.Umem.Chunk(m.First + int(uint(i)%uint(m.Chunks))) }

// Group is one socket per queue. Its members may be used by one goroutine each.
type Group struct {
	Members []*Member
	umems   []*Umem
}

// OpenGroup opens all queues or none. The thread must be in the interface's
// network namespace.
// Errors: those of NewUmem and Open.
func OpenGroup(cfg GroupConfig) (*Group, error) {
	if len(cfg.Queues) == 0 {
		return nil, &ConfigError{"queues", 0, "at least one"}
	}
	if cfg.PrefillChunks < 0 || cfg.PrefillChunks > cfg.Umem.Frames {
		return nil, &ConfigError{"prefill chunks", cfg.PrefillChunks, "0 to the frames of one queue"}
	}
	g := &Group{}
	for i := range cfg.Queues {
		if err := g.open(&cfg, i); err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	return g, nil
}

func (g *Group) open(cfg *GroupConfig, i int) error {
	m := &Member{Chunks: cfg.Umem.Frames}
	if cfg.Shared {
		m.First = i * cfg.Umem.Frames
	}
	if i == 0 || !cfg.Shared {
		layout := cfg.Umem
		if cfg.Shared {
			layout.Frames *= len(cfg.Queues)
		}
		u, err := NewUmem(layout)
		if err != nil {
			return err
		}
		g.umems = append(g.umems, u)
	}
	m.Umem = g.umems[len(g.umems)-1]
	sc := cfg.Socket
	sc.Queue, sc.Prefill = cfg.Queues[i], nil
	for k := range cfg.PrefillChunks {
		sc.Prefill = append(sc.Prefill, m.Chunk(k))
	}
	var err error
	if m.Socket, err = Open(m.Umem, sc); err != nil {
		return err
	}
	g.Members = append(g.Members, m)
	return nil
}

// Notes gathers what was asked for and not granted, each note once.
func (g *Group) Notes() (notes []string) {
	seen := map[string]bool{}
	add := func(more []string) {
		for _, n := range more {
			if !seen[n] {
				seen[n] = true
				notes = append(notes, n)
			}
		}
	}
	for _, u := range g.umems {
		add(u.Notes())
	}
	for _, m := range g.Members {
		add(m.Socket.Notes())
	}
	return notes
}

// Close closes the sockets, then the memory. A second call does nothing.
func (g *Group) Close() error {
	var errs []error
	for _, m := range g.Members {
		errs = append(errs, m.Socket.Close())
	}
	for _, u := range g.umems {
		errs = append(errs, u.Close())
	}
	return errors.Join(errs...)
}
