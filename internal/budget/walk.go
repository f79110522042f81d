package budget

// open is one residual while faults are looked for.
type open struct {
	queue  *int
	frames int64
	taken  bool // part of a fault
}

// segment is the stretch between two consecutive known checkpoints.
type segment struct {
	from, to *group
	open     []open
}

// walk computes the residuals of the path and adds them to result.
func (p *path) walk(result *Result) {
	segments := p.segments()
	for i := 1; i < len(segments); i++ {
		p.judge(segments[i-1], segments[i], result)
	}
	for _, s := range segments {
		for _, o := range s.open {
			result.Residuals = append(result.Residuals, p.residual(s, o))
			result.Gross = addSaturated(result.Gross, magnitude(o.frames))
			if !o.taken {
				result.Known = addSaturated(result.Known, magnitude(o.frames))
			}
		}
	}
}

func (p *path) residual(s *segment, o open) Residual {
	r := Residual{
		Direction: p.direction, Boundary: s.to.boundary, Queue: o.queue,
		From: s.from.row, To: s.to.row,
		FromCounter: s.from.counter(), ToCounter: s.to.counter(),
		Frames: o.frames, Fault: o.taken && o.frames != 0,
	}
	if o.queue != nil {
		r.FromCounter, r.ToCounter = s.from.of(o.queue).Counter, s.to.of(o.queue).Counter
	}
	return r
}

// segments joins each known checkpoint with the next. An unknown one is stepped
// over: what happened on both sides of it then counts together.
func (p *path) segments() []*segment {
	var segments []*segment
	last := -1
	for i, g := range p.groups {
		if !g.known() {
			continue
		}
		if last >= 0 {
			segments = append(segments, newSegment(p.groups[last], g, p.between(last, i)))
		}
		last = i
	}
	return segments
}

// between returns the movements after group from and before group to.
func (p *path) between(from, to int) (found []movement) {
	for _, m := range p.movements {
		if m.after >= from && m.after < to {
			found = append(found, m)
		}
	}
	return found
}

func newSegment(from, to *group, movements []movement) *segment {
	s := &segment{from: from, to: to}
	if !separable(from, to, movements) {
		left := from.sum() - to.sum()
		for _, m := range movements {
			left += uint64(m.delta)
		}
		s.open = []open{{frames: int64(left)}}
		return s
	}
	for _, member := range from.members {
		left := *member.Frames - *to.of(member.Queue).Frames
		for _, m := range movements {
			if m.delta != 0 && *m.Queue == *member.Queue {
				left += uint64(m.delta)
			}
		}
		s.open = append(s.open, open{queue: member.Queue, frames: int64(left)})
	}
	return s
}

// separable reports whether a segment can be taken queue by queue.
func separable(from, to *group, movements []movement) bool {
	if !from.perQueue() || !to.perQueue() || len(from.members) != len(to.members) {
		return false
	}
	if from.boundary.sends() != to.boundary.sends() {
		return false
	}
	for _, member := range from.members {
		if to.of(member.Queue) == nil {
			return false
		}
	}
	for _, m := range movements {
		// What moves nothing, being 0 or unknown, is no reason to give up the
		// queues.
		if m.delta != 0 && (m.Queue == nil || from.of(m.Queue) == nil) {
			return false
		}
	}
	return true
}

// judge looks for a fault of the checkpoint between two segments: residuals
// that are equal and opposite, so that its neighbours agree without it.
func (p *path) judge(before, after *segment, result *Result) {
	if before.open[0].queue == nil || after.open[0].queue == nil {
		p.judgeSums(before, after, result)
		return
	}
	for i := range before.open {
		for k := range after.open {
			in, out := &before.open[i], &after.open[k]
			if sameQueue(in.queue, out.queue) && opposite(in, out) {
				in.taken, out.taken = true, true
				p.blame(before.to, in.queue, out.frames, result)
				result.Known = addSaturated(result.Known, magnitude(in.frames))
			}
		}
	}
}

func opposite(in, out *open) bool {
	return !in.taken && !out.taken && in.frames != 0 && in.frames == -out.frames
}

// judgeSums is judge where at least one side is a sum over queues.
func (p *path) judgeSums(before, after *segment, result *Result) {
	in, inSize, inFree := total(before.open)
	out, outSize, outFree := total(after.open)
	if !inFree || !outFree || inSize == 0 || outSize == 0 || in != -out {
		return
	}
	switch {
	case before.open[0].queue != nil:
		for _, o := range before.open {
			p.blame(before.to, o.queue, -o.frames, result)
		}
	case after.open[0].queue != nil:
		for _, o := range after.open {
			p.blame(before.to, o.queue, o.frames, result)
		}
	default:
		p.blame(before.to, nil, out, result)
	}
	take(before.open)
	take(after.open)
	result.Known = addSaturated(result.Known, max(inSize, outSize))
}

// total adds up one side: its net, its size and whether none of it is taken.
func total(side []open) (net int64, size uint64, free bool) {
	free = true
	for _, o := range side {
		net += o.frames
		size = addSaturated(size, magnitude(o.frames))
		free = free && !o.taken
	}
	return net, size, free
}

func take(side []open) {
	for i := range side {
		side[i].taken = true
	}
}

// blame records that the counter of g is off by frames.
func (p *path) blame(g *group, queue *int, frames int64, result *Result) {
	if frames == 0 {
		return
	}
	f := Fault{Direction: p.direction, Boundary: g.boundary, Row: g.row,
		Counter: g.counter(), Queue: queue, Frames: frames}
	if member := g.of(queue); member != nil {
		f.Counter = member.Counter
	}
	result.Faults = append(result.Faults, f)
}
