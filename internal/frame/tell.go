package frame

// Tell counts a checked frame as Count does, and says at once whether a good
// one had come before, or is too late to tell. It costs an atomic operation a
// frame where Count gathers up to 32.
func (q *QueueAccount) Tell(c *Checked) (again, late bool) {
	if c.Class != ClassGood {
		q.Count(c)
		return false, false
	}
	v := q.view(c.Tag.Space)
	if v == nil {
		q.Count(c)
		return false, false
	}
	v.flush() // what Count gathered before
	before := v.counts
	q.Count(c)
	v.flush()
	return v.counts.duplicate > before.duplicate, v.counts.late > before.late
}
