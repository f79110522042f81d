package budget

import "slices"

// Hold returns rows with a purged row wherever frames vanished inside a device,
// a driver or a socket, up to the limits of events: the frames that the events
// made uncountable. Without events the rows come back as they are. Frames that
// vanished at wire are not held: a device counts what it received before it
// goes down.
func Hold(rows []Row, events ...Event) []Row {
	kinds := ""
	left := uint64(0)
	for _, e := range events {
		left = addSaturated(left, e.Limit)
		if kinds != "" {
			kinds += ", "
		}
		kinds += e.Kind
	}
	held := slices.Clone(rows)
	var spent Result
	for _, direction := range directions(rows) {
		p := newPath(rows, direction, &left, &spent)
		for _, s := range p.segments() {
			for _, o := range s.open {
				if o.frames <= 0 || !s.to.boundary.holds() || left == 0 {
					continue
				}
				n := min(uint64(o.frames), left)
				left -= n
				before := slices.Index(held, s.first(o.queue))
				held = slices.Insert(held, before, Row{
					Row: RowPurged, Boundary: s.to.boundary, Queue: o.queue, Direction: direction,
					Kind: Held, Frames: Count(n), Source: "event", Counter: kinds,
					Note: "stood in device rings when the event emptied them",
				})
			}
		}
	}
	return held
}

// holds reports whether frames can stand in a ring at b.
func (b Boundary) holds() bool {
	return b == TxKernel || b == RxDriver || b == RxXDP || b == RxSocket
}

// first is the row of the checkpoint behind s that a row of queue stands before.
func (s *segment) first(queue *int) Row {
	if member := s.to.of(queue); member != nil {
		return *member
	}
	return s.to.members[0]
}
