package budget

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// must returns what a complete budget leaves unexplained.
func must(t interface {
	Helper()
	Fatalf(string, ...any)
}, rows []Row, events ...Event) uint64 {
	t.Helper()
	r := Close(rows, events...)
	if r.Unexplained == nil {
		t.Fatalf("unexplained unknown: %v", r.Unknown)
	}
	return *r.Unexplained
}

func TestConsistentPathCloses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := drawRows(t)
		if err := Check(rows); err != nil {
			t.Fatal(err)
		}
		r := Close(rows)
		if r.Unexplained == nil || *r.Unexplained != 0 || r.Gross != 0 || len(r.Faults) != 0 {
			t.Fatalf("unexplained %v, gross %d, faults %+v, unknown %v", r.Unexplained, r.Gross, r.Faults, r.Unknown)
		}
	})
}

// Every row, checkpoint, loss or gain, offset by N either way or frozen short
// of its end by N, leaves exactly N unexplained.
func TestEveryRowOffsetOrFrozen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := drawRows(t)
		n := rapid.Uint64Range(1, 1000).Draw(t, "N")
		for i, r := range rows {
			if got := must(t, with(rows, i, *r.Frames+n)); got != n {
				t.Fatalf("%s %+d: unexplained %d", r.label(), n, got)
			}
			frozen := min(n, *r.Frames)
			if got := must(t, with(rows, i, *r.Frames-frozen)); got != frozen {
				t.Fatalf("%s frozen %d early: unexplained %d", r.label(), frozen, got)
			}
		}
	})
}

// A counter that is off inside the path is named, with by how much.
func TestFaultyCheckpointIsNamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := drawRows(t)
		n := rapid.Uint64Range(1, 1000).Draw(t, "N")
		for i, row := range rows {
			r := Close(with(rows, i, *row.Frames+n))
			inside := row.Kind == Checkpoint && row.Row != RowOffered && row.Row != RowReceived
			if !inside {
				if len(r.Faults) != 0 || r.Gross != n {
					t.Fatalf("%s: faults %+v, gross %d", row.label(), r.Faults, r.Gross)
				}
				continue
			}
			if len(r.Faults) != 1 || r.Gross != 2*n {
				t.Fatalf("%s: faults %+v, gross %d", row.label(), r.Faults, r.Gross)
			}
			for _, x := range r.Residuals {
				if (x.Frames != 0) != x.Fault {
					t.Fatalf("%s: %+v", row.label(), x)
				}
			}
			f := r.Faults[0]
			if f.Row != row.Row || f.Boundary != row.Boundary || f.Direction != row.Direction || f.Frames != int64(n) {
				t.Fatalf("%s off by %d: blamed %+v", row.label(), n, f)
			}
		}
	})
}

// Frames that vanish or appear without a counter, one place after the other.
func TestEveryUncountedMovement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := drawRows(t)
		for i, row := range rows {
			if row.Kind == Checkpoint {
				continue
			}
			n := *row.Frames
			r := Close(slices.Delete(slices.Clone(rows), i, i+1))
			if r.Unexplained == nil || *r.Unexplained != n || len(r.Faults) != 0 {
				t.Fatalf("%s of %d not counted: unexplained %v, faults %+v", row.label(), n, r.Unexplained, r.Faults)
			}
			for _, x := range r.Residuals {
				if x.Frames != 0 && (x.Boundary != row.Boundary || x.Direction != row.Direction) {
					t.Fatalf("%s of %d not counted: open %+v", row.label(), n, x)
				}
			}
		}
	})
}

// Whatever is wrong with any number of rows: nothing cancels to 0, a fault of a
// counter never counts less than half of the plain sum, and never more than it.
func TestNothingCancels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := drawRows(t)
		for range rapid.IntRange(1, 4).Draw(t, "faults") {
			i := rapid.IntRange(0, len(rows)-1).Draw(t, "row")
			rows = with(rows, i, rapid.Uint64Range(0, *rows[i].Frames+5).Draw(t, "count"))
		}
		r := Close(rows)
		if r.Unexplained == nil {
			t.Fatalf("unknown: %v", r.Unknown)
		}
		gross, net := uint64(0), int64(0)
		for _, x := range r.Residuals {
			gross += magnitude(x.Frames)
			net += x.Frames
		}
		u := *r.Unexplained
		if r.Gross != gross || u > gross || 2*u < gross || u < magnitude(net) {
			t.Fatalf("unexplained %d, gross %d of %d, net %d", u, r.Gross, gross, net)
		}
		if (u == 0) != (gross == 0) {
			t.Fatalf("unexplained %d with a plain sum of %d", u, gross)
		}
	})
}

// Two losses that are off by N in opposite ways are 2N, wherever they stand
// apart: not in one residual, and not on both sides of one checkpoint, where
// nothing can tell them from a fault of that checkpoint.
func TestTwoLossesDoNotCancel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := drawRows(t)
		a := rapid.SampledFrom(movementsOf(rows)).Draw(t, "first")
		b := rapid.SampledFrom(movementsOf(rows)).Draw(t, "second")
		n := rapid.Uint64Range(1, 20).Draw(t, "N")
		if a == b || *rows[b].Frames <= n || rows[a].Kind != Loss || rows[b].Kind != Loss {
			t.Skip("no frames to take away")
		}
		r := Close(with(with(rows, a, *rows[a].Frames+n), b, *rows[b].Frames-n))
		open := slices.DeleteFunc(r.Residuals, func(x Residual) bool { return x.Frames == 0 })
		want := 2 * n
		switch {
		case len(open) == 0:
			if rows[a].Boundary != rows[b].Boundary || rows[a].Direction != rows[b].Direction {
				t.Fatalf("%s and %s cancel", rows[a].label(), rows[b].label())
			}
			want = 0 // one residual: the frames are there, under another name
		case len(open) != 2:
			t.Fatalf("open %+v", open)
		case open[0].Direction == open[1].Direction && open[0].To == open[1].From &&
			open[0].ToCounter == open[1].FromCounter && touch(open[0].Queue, open[1].Queue):
			want = n
		}
		if r.Unexplained == nil || *r.Unexplained != want {
			t.Fatalf("%s %+d and %s %+d: unexplained %v, want %d", rows[a].label(), n, rows[b].label(), -int(n), r.Unexplained, want)
		}
	})
}

func movementsOf(rows []Row) (found []int) {
	for i, r := range rows {
		if r.Kind != Checkpoint {
			found = append(found, i)
		}
	}
	return found
}

// touch reports whether residuals of these queues share the counter between
// them: both of one queue, or at least one over sums.
func touch(a, b *int) bool { return a == nil || b == nil || *a == *b }
