package budget

import "math"

// Event is something seen during the run that emptied device rings.
type Event struct {
	Kind string // "link_down", "detached", "channels_changed" ...
	// Limit is the sum of the ring sizes that the event could empty, in frames.
	Limit uint64
}

// Residual is what two consecutive checkpoints leave open.
type Residual struct {
	Direction string
	Boundary  Boundary // of the checkpoint after
	Queue     *int     // nil: over sums
	From, To  string   // row names
	// FromCounter and ToCounter are the counters behind From and To.
	FromCounter, ToCounter string
	// Frames is positive for frames that vanished, negative for frames that
	// nothing announced.
	Frames int64
	// Fault says that a counter at one of its ends is in Result.Faults for it.
	Fault bool
}

// Fault is a checkpoint whose neighbours agree with each other without it.
type Fault struct {
	Direction string
	Boundary  Boundary
	Row       string
	Counter   string
	Queue     *int // nil: the whole port, or the sum of the queues
	// Frames is by how much the counter is too high; negative: too low.
	Frames int64
}

// Result is a closed budget.
type Result struct {
	// Residuals holds every residual, zero ones too, in path order.
	Residuals []Residual
	// Faults holds the counters found to be at fault.
	Faults []Fault
	// Unexplained is the verdict on the sum; nil when it cannot be known.
	Unexplained *uint64
	// Known is what the checkpoints at hand leave unexplained.
	Known uint64
	// Gross is the plain sum of |residual|.
	Gross uint64
	// HeldOver is how many held frames no event covers; they stay unexplained.
	HeldOver uint64
	// Unknown names the rows without a value and the checkpoints that are missing.
	Unknown []string
}

// Close walks the boundaries and adds up what the rows leave open. Held rows
// count up to the limits of events, in the order of rows. Close changes nothing
// in rows and accepts anything; Check says whether rows make sense.
func Close(rows []Row, events ...Event) Result {
	allowance := uint64(0)
	for _, e := range events {
		allowance = addSaturated(allowance, e.Limit)
	}
	var result Result
	complete := len(rows) > 0
	for _, direction := range directions(rows) {
		p := newPath(rows, direction, &allowance, &result)
		p.walk(&result)
		complete = p.complete(&result) && complete
	}
	if complete {
		result.Unexplained = Count(result.Known)
	}
	return result
}

// directions lists the directions of rows in order of appearance.
func directions(rows []Row) []string {
	var found []string
	seen := map[string]bool{}
	for _, r := range rows {
		if !seen[r.Direction] {
			seen[r.Direction] = true
			found = append(found, r.Direction)
		}
	}
	return found
}

// inOrder returns the rows of one direction that take part in the sum, by
// boundary, and otherwise as they are listed.
func inOrder(rows []Row, direction string) []Row {
	ordered := make([]Row, 0, len(rows))
	for _, b := range order {
		for i := range rows {
			r := &rows[i]
			if r.Boundary == b && r.Direction == direction && !r.aside() {
				ordered = append(ordered, *r)
			}
		}
	}
	return ordered
}

func addSaturated(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// magnitude is |n|, exact for the least int64 too.
func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}
