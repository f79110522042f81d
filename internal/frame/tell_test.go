package frame

import "testing"

// TestTell: the second one of a number is told at once, also where another
// queue had the first, and the totals are those of Count.
func TestTell(t *testing.T) {
	a := NewAccount()
	one, two := a.Queue(0), a.Queue(1)
	good := func(seq uint64) *Checked { return &Checked{Class: ClassGood, Tag: Tag{Seq: seq}} }
	one.Count(good(5))
	one.Count(good(5)) // gathered, not told
	for i, c := range []struct {
		q     *QueueAccount
		c     *Checked
		again bool
		late  bool
	}{
		{one, good(6), false, false}, {one, good(6), true, false}, {one, good(5), true, false}, {two, good(6), true, false},
		{two, good(7), false, false}, {one, good(7), true, false}, {one, good(4), false, false},
		{one, &Checked{Class: ClassCorrupt, Reason: ReasonL4}, false, false},
		{one, good(65536 + 9), false, false}, {one, good(8), false, true},
	} {
		if again, late := c.q.Tell(c.c); again != c.again || late != c.late {
			t.Errorf("frame %d: again %v, late %v", i, again, late)
		}
		c.q.Publish()
	}
	if got := a.Totals(); got.Distinct != 5 || got.Duplicate != 5 || got.TooLate != 1 || got.Corrupt != 1 {
		t.Errorf("%+v", got)
	}
}
