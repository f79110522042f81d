package pace

// Finish ends the offer: permits that were due and not taken are thrown, for
// they were offered all the same. Nothing is granted afterwards.
func (p *Pacer) Finish(nowNs int64) {
	if p.done || p.gap == 0 || nowNs < p.start {
		p.finish()
		return
	}
	reached, _ := p.reached(nowNs)
	owed := min(reached, p.end) - p.index
	if rest := p.limit - p.granted; uint64(max(0, owed)) > rest {
		owed = int64(rest)
	}
	if owed > 0 {
		p.thrown += uint64(owed)
		p.index += owed
	}
	p.finish()
}
