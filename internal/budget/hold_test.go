package budget

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// purge is a path that lost n frames in the receiver's device rings.
func purge(t *testing.T, n uint64) []Row {
	rows := veth()
	for i := find(t, rows, RxDriver, RowXDPSeen); i < len(rows); i++ {
		if rows[i].Kind == Checkpoint {
			rows = with(rows, i, *rows[i].Frames-n)
		}
	}
	return rows
}

func TestHeldNeedsAnEvent(t *testing.T) {
	rows := purge(t, 100)
	held := slices.Insert(rows, find(t, rows, RxDriver, RowXDPSeen), row(RxDriver, Held, RowPurged, Queue(0), 100))
	tests := []struct {
		name       string
		events     []Event
		want, over uint64
	}{
		{"no event", nil, 100, 100},
		{"rings hold more", []Event{{"link_down", 256}}, 0, 0},
		{"rings hold less", []Event{{"link_down", 60}}, 40, 40},
		{"two events", []Event{{"link_down", 60}, {"detached", 40}}, 0, 0},
	}
	for _, tt := range tests {
		r := Close(held, tt.events...)
		if r.Unexplained == nil || *r.Unexplained != tt.want || r.HeldOver != tt.over {
			t.Errorf("%s: unexplained %v, want %d; over %d, want %d", tt.name, r.Unexplained, tt.want, r.HeldOver, tt.over)
		}
	}
}

func TestHold(t *testing.T) {
	tests := []struct {
		name   string
		events []Event
		held   uint64
	}{
		{"no event", nil, 0},
		{"all", []Event{{"link_down", 256}}, 100},
		{"up to the rings", []Event{{"link_down", 60}}, 60},
	}
	for _, tt := range tests {
		rows := Hold(purge(t, 100), tt.events...)
		total := uint64(0)
		for _, r := range rows {
			if r.Kind == Held {
				total += *r.Frames
				if r.Boundary != RxDriver || r.Row != RowPurged || r.Counter != "link_down" {
					t.Errorf("%s: %+v", tt.name, r)
				}
			}
		}
		if total != tt.held {
			t.Errorf("%s: held %d, want %d", tt.name, total, tt.held)
		}
		if got := must(t, rows, tt.events...); got != 100-tt.held {
			t.Errorf("%s: unexplained %d, want %d", tt.name, got, 100-tt.held)
		}
		if err := Check(rows); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// Frames lost on the wire are not held, whatever was seen.
func TestHoldLeavesTheWire(t *testing.T) {
	rows := veth()
	for i := find(t, rows, Wire, RowDeviceRx); i < len(rows); i++ {
		if rows[i].Kind == Checkpoint {
			rows = with(rows, i, *rows[i].Frames-1)
		}
	}
	event := Event{"link_down", 256}
	if got := must(t, Hold(rows, event), event); got != 1 {
		t.Errorf("unexplained %d, want 1", got)
	}
}

// Whatever is lost inside the devices, Hold explains it as far as the rings
// reach and never more; doing it twice changes nothing.
func TestHoldProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := drawRows(t)
		i := rapid.SampledFrom(movementsOf(rows)).Draw(t, "row")
		row := rows[i]
		if row.Kind != Loss {
			t.Skip("a gain")
		}
		lost := slices.Delete(slices.Clone(rows), i, i+1)
		event := Event{"link_down", rapid.Uint64Range(0, 60).Draw(t, "limit")}
		want := *row.Frames
		if row.Boundary.holds() {
			want -= min(want, event.Limit)
		}
		held := Hold(lost, event)
		if got := must(t, held, event); got != want {
			t.Fatalf("%s of %d, limit %d: unexplained %d, want %d", row.label(), *row.Frames, event.Limit, got, want)
		}
		if again := Hold(held, event); len(again) != len(held) {
			t.Fatalf("held twice: %d rows, then %d", len(held), len(again))
		}
	})
}

// Several places share the rings of one event.
func TestHoldSharesTheLimit(t *testing.T) {
	rows := set(t, purge(t, 50), TxKernel, RowDeviceRefused, 0) // 4 more, at the sender
	event := Event{"link_down", 30}
	r := Close(Hold(rows, event), event)
	if r.HeldOver != 0 || r.Unexplained == nil || *r.Unexplained != 54-30 {
		t.Errorf("held %d too many, unexplained %v, want 24", r.HeldOver, r.Unexplained)
	}
}
