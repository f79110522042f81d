package pace

// Finish ends the offer: permits that were due and not taken are thrown, for
// they were offered all the same, and the time since they were is a stall.
// Nothing is granted afterwards.
func (p *Pacer) Finish(nowNs int64) {
	if p.done || p.gap == 0 || nowNs < p.start {
		p.finish()
		return
	}
	p.stalls.add(max(p.last, p.next), nowNs)
	reached, _ := p.reached(nowNs)
	owed := min(reached, p.end) - p.index
	if rest := p.limit - p.granted; uint64(max(0, owed)) > rest {
		owed = int64(rest)
	}
	if owed > 0 {
		p.thrown += uint64(owed)
		p.tail = uint64(owed)
		p.index += owed
	}
	p.finish()
}

// Tail returns how many of Thrown were due at Finish: after the last that was
// granted, so that no gap between frames holds them.
func (p *Pacer) Tail() uint64 { return p.tail }
