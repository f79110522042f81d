package budget

import (
	"fmt"
	"slices"
)

// group is one checkpoint: the row of the port, or the rows of its queues.
type group struct {
	row      string
	boundary Boundary
	members  []Row
}

// perQueue reports whether g counts queues and not the port.
func (g *group) perQueue() bool { return g.members[0].Queue != nil }

// known reports whether every member has a value.
func (g *group) known() bool {
	return !slices.ContainsFunc(g.members, func(r Row) bool { return r.Frames == nil })
}

// of returns the member that counts queue, or nil.
func (g *group) of(queue *int) *Row {
	for i := range g.members {
		if sameQueue(g.members[i].Queue, queue) {
			return &g.members[i]
		}
	}
	return nil
}

// sum adds the members' counts; modular, so that a difference of sums is exact.
func (g *group) sum() (total uint64) {
	for _, r := range g.members {
		total += *r.Frames
	}
	return total
}

// counter names the counter of g: the member's own, or that of all its queues.
func (g *group) counter() string {
	if len(g.members) == 1 {
		return g.members[0].Counter
	}
	first, last := g.members[0].Counter, g.members[len(g.members)-1].Counter
	if first == last {
		return first
	}
	return first + " .. " + last
}

// movement is a loss, gain or held row and the checkpoint that it follows.
type movement struct {
	Row
	after int   // index into path.groups, -1 in front of the first
	delta int64 // gains are positive
}

// path is one direction of a run.
type path struct {
	direction string
	groups    []*group
	movements []movement
}

// newPath sorts the rows of one direction into checkpoints and movements.
func newPath(rows []Row, direction string, allowance *uint64, result *Result) *path {
	p := &path{direction: direction}
	begin := -1 // last checkpoint of the boundaries before
	boundary := Boundary("")
	var inBoundary []placed
	for _, r := range inOrder(rows, direction) {
		if r.Boundary != boundary {
			boundary, begin, inBoundary = r.Boundary, len(p.groups)-1, nil
		}
		if r.Frames == nil {
			result.Unknown = append(result.Unknown, r.label())
		}
		if r.Kind == Checkpoint {
			inBoundary = append(inBoundary, placed{r.Queue, p.join(r, begin+1)})
			continue
		}
		m := movement{Row: r, after: begin, delta: r.effect(allowance, result)}
		for _, c := range inBoundary {
			// A queue's row follows the last checkpoint of that queue, so that
			// rows may be listed queue by queue as well as stage by stage.
			if r.Queue == nil || c.queue == nil || *c.queue == *r.Queue {
				m.after = c.group
			}
		}
		p.movements = append(p.movements, m)
	}
	return p
}

// placed is where one checkpoint row went.
type placed struct {
	queue *int
	group int
}

// join adds a checkpoint row to the first group of its name from index first on
// that does not hold its queue yet, or begins a new one. A name that comes twice
// for one queue is two checkpoints that must agree.
func (p *path) join(r Row, first int) int {
	for i := first; i < len(p.groups); i++ {
		g := p.groups[i]
		if g.row == r.Row && g.perQueue() && r.Queue != nil && g.of(r.Queue) == nil {
			g.members = append(g.members, r)
			return i
		}
	}
	p.groups = append(p.groups, &group{row: r.Row, boundary: r.Boundary, members: []Row{r}})
	return len(p.groups) - 1
}

// effect is what r adds to the frames on the path. An unknown count adds
// nothing: what it cannot name stays unexplained.
func (r Row) effect(allowance *uint64, result *Result) int64 {
	if r.Frames == nil {
		return 0
	}
	switch n := *r.Frames; r.Kind {
	case Gain:
		return int64(n)
	case Loss:
		return -int64(n)
	case Held:
		held := min(n, *allowance)
		*allowance -= held
		result.HeldOver = addSaturated(result.HeldOver, n-held)
		return -int64(held)
	}
	return 0
}

// label names r for a reader.
func (r Row) label() string {
	if r.Queue == nil {
		return string(r.Boundary) + "/" + r.Row
	}
	return fmt.Sprintf("%s/%s queue %d", r.Boundary, r.Row, *r.Queue)
}

// needed lists the checkpoints without which nothing can be said of the whole.
// Each entry is satisfied by any one of its names.
func needed(has func(row string) bool) [][]string {
	rows := [][]string{
		{RowOffered}, {RowDeviceTx}, {RowDeviceRx}, {RowXDPSeen},
		{RowRedirected, RowAccounted}, {RowReceived},
	}
	// What was redirected must also be seen to arrive; the TX ring has its own
	// count wherever there is a ring.
	if has(RowRedirected) {
		rows = append(rows, []string{RowTaken})
	}
	if has(RowSubmitted) {
		rows = append(rows, []string{RowSubmitted})
	}
	return rows
}

// complete reports whether every checkpoint that the path needs has a value and
// names those that do not stand in the rows at all.
func (p *path) complete(result *Result) bool {
	present, known := map[string]bool{}, map[string]bool{}
	for _, g := range p.groups {
		present[g.row] = true
		known[g.row] = known[g.row] || g.known()
	}
	whole := true
	for _, names := range needed(func(row string) bool { return present[row] }) {
		if slices.ContainsFunc(names, func(n string) bool { return known[n] }) {
			continue
		}
		whole = false
		if !slices.ContainsFunc(names, func(n string) bool { return present[n] }) {
			result.Unknown = append(result.Unknown, missing(names[0]))
		}
	}
	return whole
}

// missing names a checkpoint that has no row.
func missing(row string) string {
	d, _ := Define(row)
	return string(d.Places[0].Boundary) + "/" + row
}
