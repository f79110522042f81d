package budget

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestTableIsSound(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range Definitions() {
		if seen[d.Row] {
			t.Errorf("%s is there twice", d.Row)
		}
		seen[d.Row] = true
		if d.Meaning == "" || len(d.Places) == 0 {
			t.Errorf("%s: no meaning or no place", d.Row)
		}
		for _, p := range d.Places {
			if p.Boundary.rank() < 0 {
				t.Errorf("%s stands at %q, which is no boundary", d.Row, p.Boundary)
			}
			if p.Aside && p.Kind != Checkpoint {
				t.Errorf("%s: a %s cannot stand aside", d.Row, p.Kind)
			}
		}
		if got, ok := Define(d.Row); !ok || got.Meaning != d.Meaning {
			t.Errorf("Define(%q) = %+v, %v", d.Row, got, ok)
		}
	}
	if _, ok := Define("nowhere"); ok {
		t.Error("a row that is not in the table is defined")
	}
}

func TestBoundariesAreACopy(t *testing.T) {
	Boundaries()[0] = "elsewhere"
	if Boundaries()[0] != BoundaryOffer {
		t.Error("the path can be changed from outside")
	}
}

func TestRowJSON(t *testing.T) {
	r := Row{Row: RowDeviceRefused, Boundary: TxKernel, Queue: Queue(0), Direction: "a-b", Kind: Loss,
		Frames: Count(7), Source: "xsk", Counter: "sendto EBUSY", Exact: true}
	out, err := json.Marshal(r)
	want := `{"row":"device_refused","boundary":"tx_kernel","queue":0,"direction":"a-b","kind":"loss","frames":7,` +
		`"source":"xsk","counter":"sendto EBUSY","exact":true,"note":""}`
	if err != nil || string(out) != want {
		t.Errorf("got  %s, %v\nwant %s", out, err, want)
	}
	out, _ = json.Marshal(Row{})
	if !strings.Contains(string(out), `"queue":null`) || !strings.Contains(string(out), `"frames":null`) {
		t.Errorf("unknown is not null: %s", out)
	}
}

func TestCheck(t *testing.T) {
	tests := []struct {
		name string
		row  Row
		want string
	}{
		{"unknown name", row(Wire, Loss, "gremlins", nil, 1), "not in the table"},
		{"unknown boundary", row("ether", Loss, RowRxCRC, nil, 1), "no such boundary"},
		{"wrong boundary", row(Verify, Loss, RowRxCRC, nil, 1), "may not be a loss here"},
		{"wrong kind", row(Wire, Gain, RowRxCRC, nil, 1), "may not be a gain here"},
		{"after the last checkpoint", row(Verify, Loss, RowCorrupt, nil, 1), "no checkpoint follows"},
	}
	for _, tt := range tests {
		err := Check(append(veth(), tt.row))
		var bad *RowError
		if !errors.As(err, &bad) || bad.Row.Row != tt.row.Row || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
