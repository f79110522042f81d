package budget

// Point is a checkpoint of a Stretch, over all its queues.
type Point struct {
	Row    string  // "" when there is none
	Frames *uint64 // nil: unknown
}

// Move is a loss, gain or held row of a Stretch, over all its queues.
type Move struct {
	Row     string
	Kind    Kind
	Frames  *uint64 // nil: unknown
	Counter string
}

// Stretch is one boundary of one direction in brief.
type Stretch struct {
	Direction string
	Boundary  Boundary
	From, To  Point
	Moves     []Move
}

// Stretches sums the rows up by direction and boundary, in path order, for a
// reader: From is the last checkpoint of the boundary before (the first of its
// own where the path begins), To the last of its own. A boundary without rows
// has no stretch.
func Stretches(rows []Row) []Stretch {
	var all []Stretch
	allowance := uint64(0)
	for _, direction := range directions(rows) {
		p := newPath(rows, direction, &allowance, &Result{})
		before := Point{}
		for _, b := range order {
			s := Stretch{Direction: direction, Boundary: b, From: before, Moves: p.moves(b)}
			for _, g := range p.groups {
				if g.boundary == b {
					s.pass(g)
				}
			}
			if s.To.Row == "" && len(s.Moves) == 0 {
				continue
			}
			all = append(all, s)
			if s.To.Row != "" {
				before = s.To
			}
		}
	}
	return all
}

// pass moves the end of s to the next checkpoint.
func (s *Stretch) pass(g *group) {
	if s.From.Row == "" && s.To.Row != "" {
		s.From = s.To
	}
	s.To = Point{Row: g.row}
	if g.known() {
		s.To.Frames = Count(g.sum())
	}
}

// moves sums the movements at b up by row.
func (p *path) moves(b Boundary) []Move {
	var moves []Move
next:
	for _, m := range p.movements {
		if m.Boundary != b {
			continue
		}
		for i := range moves {
			if moves[i].Row == m.Row.Row && moves[i].Kind == m.Kind {
				moves[i].add(m.Frames)
				continue next
			}
		}
		moves = append(moves, Move{Row: m.Row.Row, Kind: m.Kind, Frames: m.Frames, Counter: m.Counter})
	}
	return moves
}

// add adds a count; unknown stays unknown.
func (m *Move) add(n *uint64) {
	if m.Frames == nil || n == nil {
		m.Frames = nil
		return
	}
	m.Frames = Count(*m.Frames + *n)
}
