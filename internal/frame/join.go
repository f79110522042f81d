package frame

import (
	"cmp"
	"slices"
)

// SpaceOf unpacks what Space.Key packed.
func SpaceOf(key uint16) Space { return spaceOf(key) }

// AddSpace adds one space's account to the sums.
func (t *Totals) AddSpace(s SpaceTotals) {
	t.Distinct += s.Distinct
	t.Duplicate += s.Duplicate
	t.Reordered += s.Reordered
	t.ReorderedBetween += s.ReorderedBetween
	t.TooLate += s.TooLate
	t.CorruptIdentified += s.Corrupt
	t.Implausible += s.Implausible
	t.Corrupt += s.Corrupt + s.Implausible
	t.EndFrames += s.EndFrames
}

// JoinSpaces joins several parts of an account, as different queues or judges
// kept it, ordered by stream and worker.
func JoinSpaces(parts ...[]SpaceTotals) []SpaceTotals {
	var all []SpaceTotals
	at := map[Space]int{}
	for _, s := range slices.Concat(parts...) {
		i, ok := at[s.Space]
		if !ok {
			at[s.Space] = len(all)
			all = append(all, s)
			continue
		}
		all[i].join(s)
	}
	for i := range all {
		s := &all[i]
		s.EndSeen = s.EndSeen && (s.Distinct == 0 || s.HighestSeq < s.EndSent)
	}
	slices.SortFunc(all, func(x, y SpaceTotals) int {
		return cmp.Or(cmp.Compare(x.Stream, y.Stream), cmp.Compare(x.Worker, y.Worker))
	})
	return all
}

func (s *SpaceTotals) join(o SpaceTotals) {
	switch {
	case s.Distinct == 0:
		s.LowestSeq = o.LowestSeq
	case o.Distinct > 0:
		s.LowestSeq = min(s.LowestSeq, o.LowestSeq)
	}
	s.HighestSeq = max(s.HighestSeq, o.HighestSeq)
	s.Distinct += o.Distinct
	s.Duplicate += o.Duplicate
	s.Reordered += o.Reordered
	s.ReorderedBetween += o.ReorderedBetween
	s.TooLate += o.TooLate
	s.Corrupt += o.Corrupt
	s.Implausible += o.Implausible
	s.EndFrames += o.EndFrames
	if o.EndSeen {
		s.EndSeen, s.EndSent = true, o.EndSent
	}
}

// StreamsOf sums spaces, ordered by stream, into streams.
func StreamsOf(spaces []SpaceTotals) []StreamTotals {
	var all []StreamTotals
	for _, s := range spaces {
		if len(all) == 0 || all[len(all)-1].Stream != s.Stream {
			all = append(all, StreamTotals{Stream: s.Stream, EndSeen: true})
		}
		t := &all[len(all)-1]
		t.Distinct += s.Distinct
		t.Duplicate += s.Duplicate
		t.Reordered += s.Reordered
		t.ReorderedBetween += s.ReorderedBetween
		t.TooLate += s.TooLate
		t.Corrupt += s.Corrupt
		t.Implausible += s.Implausible
		t.EndFrames += s.EndFrames
		t.EndSent += s.EndSent
		t.EndSeen = t.EndSeen && s.EndSeen
	}
	return all
}
