package budget

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestTally(t *testing.T) {
	rows := veth()
	f := Tally(rows, Sequence{Reordered: Count(3), CorruptIdentified: 1}, Close(rows))
	// 1000 offered; 5 unsent, 1 invalid and 4 refused; of 990 sent one was
	// dropped by the driver, 3 found the ring full and one is corrupt.
	want := `{"offered":1000,"unsent":5,"refused":5,"sent":990,"received":985,"lost":4,"duplicate":0,` +
		`"reordered":3,"reordered_between_queues":null,"too_late":0,"corrupt":1,` +
		`"foreign":{"other_run":null,"untagged":0,"unreadable":null},"unexplained":0}`
	got, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if err := f.Check(); err != nil {
		t.Error(err)
	}
}

func known(n *uint64) int64 {
	if n == nil {
		return -1
	}
	return int64(*n)
}

func TestTallySentAndLost(t *testing.T) {
	tests := []struct {
		name            string
		change          func(*testing.T, []Row) []Row
		s               Sequence
		sent, lost, ref int64
	}{
		{"plain", func(_ *testing.T, r []Row) []Row { return r }, Sequence{CorruptIdentified: 1}, 990, 4, 5},
		{"corrupt without identity is lost", func(_ *testing.T, r []Row) []Row { return r }, Sequence{}, 990, 5, 5},
		{"too late is not lost", func(t *testing.T, r []Row) []Row {
			return set(t, set(t, r, Verify, RowTooLate, 2), Verify, RowReceived, 983)
		}, Sequence{CorruptIdentified: 1}, 990, 4, 5},
		{"never negative", func(t *testing.T, r []Row) []Row {
			return set(t, r, Verify, RowReceived, 5000)
		}, Sequence{}, 990, 0, 5},
		{"an END frame was refused", func(_ *testing.T, r []Row) []Row { return r }, Sequence{EndRefused: 2, CorruptIdentified: 1}, 992, 6, 3},
		{"refused unknown", func(t *testing.T, r []Row) []Row {
			r[find(t, r, TxKernel, RowDeviceRefused)].Frames = nil
			return r
		}, Sequence{}, -1, -1, -1},
		{"no TX ring", func(t *testing.T, r []Row) []Row {
			return append(r[:3:3], r[4:]...)
		}, Sequence{CorruptIdentified: 1}, 990, 4, 5},
		{"sender alone", func(_ *testing.T, r []Row) []Row { return r[:9] }, Sequence{}, 990, -1, 5},
		{"receiver alone", func(_ *testing.T, r []Row) []Row { return r[9:] }, Sequence{}, -1, -1, -1},
		{"receiver with END", func(_ *testing.T, r []Row) []Row { return r[9:] }, Sequence{EndSent: Count(986)}, 986, 1, -1},
	}
	for _, tt := range tests {
		rows := tt.change(t, veth())
		f := Tally(rows, tt.s, Close(rows))
		if known(f.Sent) != tt.sent || known(f.Lost) != tt.lost || known(f.Refused) != tt.ref {
			t.Errorf("%s: sent %d, lost %d, refused %d; want %d, %d, %d", tt.name,
				known(f.Sent), known(f.Lost), known(f.Refused), tt.sent, tt.lost, tt.ref)
		}
	}
}

func TestStallDebtIsUnsent(t *testing.T) {
	rows := veth()
	debt := row(BoundaryOffer, Loss, RowStallDebt, Queue(0), 7)
	rows = append(rows[:2:2], append([]Row{debt}, rows[2:]...)...)
	rows = set(t, rows, BoundaryOffer, RowOffered, 1007)
	f := Tally(rows, Sequence{}, Close(rows))
	if known(f.Unsent) != 12 || known(f.Unexplained) != 0 || f.Check() != nil {
		t.Errorf("unsent %d, unexplained %d, %v", known(f.Unsent), known(f.Unexplained), f.Check())
	}
}

func TestFramesCheck(t *testing.T) {
	f := Frames{Offered: Count(10), Unsent: Count(2), Refused: Count(1), Sent: Count(6)}
	var broken *IdentityError
	if err := f.Check(); !errors.As(err, &broken) || !strings.Contains(err.Error(), "offered 10 is not unsent 2 + refused 1 + sent 6") {
		t.Errorf("error %v", err)
	}
	f.Sent = Count(7)
	if err := f.Check(); err != nil {
		t.Error(err)
	}
	if err := (Frames{Offered: Count(1)}).Check(); err != nil {
		t.Errorf("nothing to compare with: %v", err)
	}
}
