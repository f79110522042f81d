package trial

// foreignLost is what is missing of another generator's numbers: it says
// nowhere how many frames it sent, so only what lies between the first number
// seen and the last counts.
func (r *running) foreignLost() {
	if r.spec.Foreign == "" || len(r.out.Rx.Spaces) == 0 {
		return
	}
	var lost uint64
	for _, s := range r.out.Rx.Spaces {
		if s.Distinct == 0 {
			continue
		}
		between := s.HighestSeq - s.LowestSeq + 1
		lost += between - min(between, s.Distinct+s.TooLate)
	}
	r.out.Frames.Lost = &lost
	r.out.warn("foreign_sequence", r.spec.Foreign)
}
