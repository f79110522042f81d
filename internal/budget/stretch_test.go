package budget

import (
	"fmt"
	"strings"
	"testing"
)

func brief(s Stretch) string {
	n := func(f *uint64) string {
		if f == nil {
			return "?"
		}
		return fmt.Sprint(*f)
	}
	text := fmt.Sprintf("%s %s: %s %s -> %s %s", s.Direction, s.Boundary, s.From.Row, n(s.From.Frames), s.To.Row, n(s.To.Frames))
	for _, m := range s.Moves {
		text += fmt.Sprintf(", %s %s %s", m.Kind, m.Row, n(m.Frames))
	}
	return text
}

func briefs(rows []Row) string {
	var lines []string
	for _, s := range Stretches(rows) {
		lines = append(lines, brief(s))
	}
	return strings.Join(lines, "\n")
}

func TestStretches(t *testing.T) {
	rows := veth()
	rows = append(rows, row(RxDriver, Loss, RowXDPDrops, Queue(1), 2), row(RxDriver, Checkpoint, RowXDPSeen, Queue(1), 30))
	rows[find(t, rows, TxKernel, RowDescriptorInvalid)].Frames = nil
	want := `a-b offer: offered 1000 -> submitted 1005, loss unsent 5, gain end_frames 10
a-b tx_kernel: submitted 1005 -> device_tx 1002, loss descriptor_invalid ?, loss device_refused 4, gain stack_tx 2
a-b wire: device_tx 1002 -> device_rx 1002
a-b rx_driver: device_rx 1002 -> xdp_seen 1031, loss xdp_drops 3
a-b rx_xdp: xdp_seen 1031 -> redirected 999, loss passed_to_stack 2
a-b rx_socket: redirected 999 -> taken 996, loss rx_ring_full 3
a-b verify: taken 996 -> received 985, loss end_frames 10, loss duplicate 0, loss corrupt 1, loss foreign_untagged 0, loss too_late 0`
	if got := briefs(rows); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestStretchesOfOneEnd(t *testing.T) {
	rows := veth()[9:12]
	rows[2].Frames = nil
	rows[1].Frames = nil
	rows = append(rows, row(RxDriver, Loss, RowXDPDrops, Queue(1), 4)) // one unknown queue makes the sum unknown
	want := "a-b wire:  ? -> device_rx 1002\na-b rx_driver: device_rx 1002 -> xdp_seen ?, loss xdp_drops ?"
	if got := briefs(rows); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := briefs(nil); got != "" {
		t.Errorf("no rows: %s", got)
	}
}

func TestStretchesKeepDirectionsApart(t *testing.T) {
	back := veth()[:1]
	back[0].Direction = "b-a"
	want := "a-b offer:  ? -> offered 1000\nb-a offer:  ? -> offered 1000"
	if got := briefs(append(veth()[:1], back...)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
