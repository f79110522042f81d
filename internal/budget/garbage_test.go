package budget

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// drawGarbage draws rows that no run would make: a document can hold anything.
func drawGarbage(t *rapid.T) []Row {
	names := []string{"", "gremlins", RowOffered, RowDeviceTx, RowDeviceRx, RowXDPSeen, RowAccounted, RowRxRingFull,
		RowReceived, RowPurged, RowEndFrames, RowDeviceRefused}
	places := append(Boundaries(), "", "elsewhere")
	kinds := []Kind{Checkpoint, Checkpoint, Loss, Gain, Held, "", "other"}
	counts := []*uint64{nil, Count(0), Count(1), Count(7), Count(1 << 63), Count(math.MaxUint64)}
	queues := []*int{nil, Queue(0), Queue(1), Queue(-1)}
	rows := make([]Row, rapid.IntRange(0, 20).Draw(t, "rows"))
	for i := range rows {
		rows[i] = Row{
			Row:       rapid.SampledFrom(names).Draw(t, "row"),
			Boundary:  rapid.SampledFrom(places).Draw(t, "boundary"),
			Kind:      rapid.SampledFrom(kinds).Draw(t, "kind"),
			Queue:     rapid.SampledFrom(queues).Draw(t, "queue"),
			Frames:    rapid.SampledFrom(counts).Draw(t, "frames"),
			Direction: rapid.SampledFrom([]string{"", "a-b"}).Draw(t, "direction"),
		}
	}
	return rows
}

// Nothing panics on what a document says, and no sum turns over to 0.
func TestGarbage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := drawGarbage(t)
		event := Event{"link_down", rapid.SampledFrom([]uint64{0, 5, math.MaxUint64}).Draw(t, "limit")}
		r := Close(rows, event, event)
		open := false
		for _, x := range r.Residuals {
			open = open || x.Frames != 0
		}
		if open != (r.Known != 0) || open != (r.Gross != 0) || r.Known > r.Gross {
			t.Fatalf("open %v, known %d, gross %d: %+v", open, r.Known, r.Gross, r.Residuals)
		}
		Close(Hold(rows, event), event)
		Stretches(rows)
		f := Tally(rows, Sequence{EndRefused: 3}, r)
		_ = f.Check()
		Judge(Judgement{Frames: f, Known: r.Known})
		_ = Check(rows)
	})
}
