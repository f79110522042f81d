package budget

import (
	"slices"
	"strings"
	"testing"
)

func row(b Boundary, k Kind, name string, queue *int, n uint64) Row {
	return Row{Row: name, Boundary: b, Kind: k, Queue: queue, Frames: Count(n), Direction: "a-b",
		Source: "test", Counter: name, Exact: true}
}

// veth is a consistent copy-mode path over one queue at each end.
func veth() []Row {
	q := Queue(0)
	return []Row{
		row(BoundaryOffer, Checkpoint, RowOffered, q, 1000),
		row(BoundaryOffer, Loss, RowUnsent, q, 5),
		row(BoundaryOffer, Gain, RowEndFrames, q, 10),
		row(BoundaryOffer, Checkpoint, RowSubmitted, q, 1005),
		row(TxKernel, Checkpoint, RowCompleted, q, 1005),
		row(TxKernel, Loss, RowDescriptorInvalid, q, 1),
		row(TxKernel, Loss, RowDeviceRefused, q, 4),
		row(TxKernel, Gain, RowStackTx, nil, 2),
		row(TxKernel, Checkpoint, RowDeviceTx, nil, 1002),
		row(Wire, Checkpoint, RowDeviceRx, nil, 1002),
		row(RxDriver, Loss, RowXDPDrops, q, 1),
		row(RxDriver, Checkpoint, RowXDPSeen, q, 1001),
		row(RxXDP, Loss, RowPassedToStack, q, 2),
		row(RxXDP, Checkpoint, RowRedirected, q, 999),
		row(RxSocket, Loss, RowRxRingFull, q, 3),
		row(RxSocket, Checkpoint, RowTaken, q, 996),
		row(Verify, Loss, RowEndFrames, nil, 10),
		row(Verify, Loss, RowDuplicate, nil, 0),
		row(Verify, Loss, RowCorrupt, nil, 1),
		row(Verify, Loss, RowForeignUntagged, nil, 0),
		row(Verify, Loss, RowTooLate, nil, 0),
		row(Verify, Checkpoint, RowReceived, nil, 985),
	}
}

// find is the index of the only row of a name at a boundary.
func find(t *testing.T, rows []Row, b Boundary, name string) int {
	t.Helper()
	i := slices.IndexFunc(rows, func(r Row) bool { return r.Row == name && r.Boundary == b })
	if i < 0 {
		t.Fatalf("no row %s at %s", name, b)
	}
	return i
}

func set(t *testing.T, rows []Row, b Boundary, name string, n uint64) []Row {
	t.Helper()
	return with(rows, find(t, rows, b, name), n)
}

func TestCloseConsistentPath(t *testing.T) {
	r := Close(veth())
	if r.Unexplained == nil || *r.Unexplained != 0 || r.Gross != 0 || len(r.Faults) != 0 {
		t.Fatalf("consistent path: %+v", r)
	}
	if len(r.Residuals) != 8 {
		t.Errorf("%d residuals, want 8", len(r.Residuals))
	}
	if err := Check(veth()); err != nil {
		t.Error(err)
	}
}

type example struct {
	name   string
	change func(*testing.T, []Row) []Row
	want   uint64
	faults int
}

// documented are the examples of the package documentation.
func documented() []example {
	return []example{
		{"a frame lost on the wire", func(t *testing.T, rows []Row) []Row {
			for i := find(t, rows, Wire, RowDeviceRx); i < len(rows); i++ {
				if rows[i].Kind == Checkpoint {
					rows = with(rows, i, *rows[i].Frames-1)
				}
			}
			return rows
		}, 1, 0},
		{"device_rx 7 too high", func(t *testing.T, rows []Row) []Row {
			return set(t, rows, Wire, RowDeviceRx, 1009)
		}, 7, 1},
		{"+3 beside -2 is 5", func(t *testing.T, rows []Row) []Row {
			rows = set(t, rows, TxKernel, RowDeviceRefused, 4-3)
			return set(t, rows, RxDriver, RowXDPDrops, 1+2)
		}, 5, 0},
		{"+3 and -3 apart are 6", func(t *testing.T, rows []Row) []Row {
			rows = set(t, rows, TxKernel, RowDeviceRefused, 4-3)
			return set(t, rows, RxDriver, RowXDPDrops, 1+3)
		}, 6, 0},
		{"+1 and -1 around one checkpoint are its fault", func(t *testing.T, rows []Row) []Row {
			rows = set(t, rows, RxXDP, RowPassedToStack, 2-1)
			return set(t, rows, RxSocket, RowRxRingFull, 3+1)
		}, 1, 1},
		{"first and last counter", func(t *testing.T, rows []Row) []Row {
			rows = set(t, rows, BoundaryOffer, RowOffered, 1001)
			return set(t, rows, Verify, RowReceived, 986)
		}, 2, 0},
		{"+5 -5 +5: one residual belongs to one fault", func(t *testing.T, rows []Row) []Row {
			rows = set(t, rows, RxDriver, RowXDPSeen, 1001-5)
			rows = set(t, rows, RxSocket, RowTaken, 996-5)
			return set(t, rows, Verify, RowReceived, 985-5)
		}, 10, 1},
	}
}

func TestUnexplainedByExample(t *testing.T) {
	for _, tt := range documented() {
		r := Close(tt.change(t, veth()))
		if r.Unexplained == nil || *r.Unexplained != tt.want || len(r.Faults) != tt.faults {
			t.Errorf("%s: unexplained %v, want %d; faults %+v", tt.name, r.Unexplained, tt.want, r.Faults)
		}
	}
}

// twoQueues is a receiver of two queues between two counters of the port.
func twoQueues(seen0, seen1 uint64) []Row {
	return []Row{
		row(BoundaryOffer, Checkpoint, RowOffered, nil, 100),
		row(TxKernel, Checkpoint, RowDeviceTx, nil, 100),
		row(Wire, Checkpoint, RowDeviceRx, Queue(0), 60),
		row(Wire, Checkpoint, RowDeviceRx, Queue(1), 40),
		row(RxDriver, Checkpoint, RowXDPSeen, Queue(0), seen0),
		row(RxDriver, Checkpoint, RowXDPSeen, Queue(1), seen1),
		row(RxXDP, Checkpoint, RowAccounted, nil, 100),
		row(Verify, Checkpoint, RowReceived, nil, 100),
	}
}

func TestQueuesDoNotCancel(t *testing.T) {
	tests := []struct {
		seen0, seen1, want uint64
		faults             []int64
	}{
		{60, 40, 0, nil},
		{59, 41, 2, nil},            // two counters, opposite
		{61, 40, 1, []int64{1}},     // one counter
		{63, 42, 5, []int64{3, 2}},  // two counters, the same way
		{63, 38, 5, []int64{3, -2}}, // two counters, not quite opposite
	}
	for _, tt := range tests {
		r := Close(twoQueues(tt.seen0, tt.seen1))
		var faults []int64
		for _, f := range r.Faults {
			faults = append(faults, f.Frames)
		}
		if r.Unexplained == nil || *r.Unexplained != tt.want || !slices.Equal(faults, tt.faults) {
			t.Errorf("seen %d, %d: unexplained %v, want %d; faults %+v", tt.seen0, tt.seen1, r.Unexplained, tt.want, r.Faults)
		}
	}
}

// What is 0 or unknown for the whole port does not merge the queues into sums.
func TestIdlePortRowKeepsQueuesApart(t *testing.T) {
	for _, idle := range []*uint64{Count(0), nil} {
		rows := twoQueues(59, 41)
		drops := row(RxDriver, Loss, RowXDPDrops, nil, 0)
		drops.Frames = idle
		rows = slices.Insert(rows, 4, drops)
		if got := must(t, rows); got != 2 {
			t.Errorf("unexplained %d, want 2", got)
		}
	}
}

// A checkpoint of the sender's queues is not compared with the receiver's queue
// of the same number.
func TestWireIsOverSums(t *testing.T) {
	rows := []Row{
		row(BoundaryOffer, Checkpoint, RowOffered, nil, 100),
		row(TxKernel, Checkpoint, RowDeviceTx, Queue(0), 30),
		row(TxKernel, Checkpoint, RowDeviceTx, Queue(1), 70),
		row(Wire, Checkpoint, RowDeviceRx, Queue(0), 60),
		row(Wire, Checkpoint, RowDeviceRx, Queue(1), 40),
		row(RxDriver, Checkpoint, RowXDPSeen, nil, 100),
		row(RxXDP, Checkpoint, RowAccounted, nil, 100),
		row(Verify, Checkpoint, RowReceived, nil, 100),
	}
	if got := must(t, rows); got != 0 {
		t.Errorf("unexplained %d, want 0", got)
	}
}

func TestOneEndIsUnknown(t *testing.T) {
	rows := veth()
	tx, rx := rows[:9], rows[9:]
	for name, half := range map[string][]Row{"sender": tx, "receiver": rx, "nothing": nil} {
		r := Close(half)
		if r.Unexplained != nil || r.Known != 0 {
			t.Errorf("%s alone: unexplained %v, known %d", name, r.Unexplained, r.Known)
		}
	}
	r := Close(set(t, tx, TxKernel, RowDeviceTx, 1000))
	if r.Unexplained != nil || r.Known != 2 || !slices.Contains(r.Unknown, "wire/device_rx") {
		t.Errorf("sender alone, 2 missing: %+v", r)
	}
}

func TestUnknownCheckpoint(t *testing.T) {
	needed := []struct {
		b   Boundary
		row string
	}{
		{BoundaryOffer, RowOffered}, {BoundaryOffer, RowSubmitted}, {TxKernel, RowDeviceTx},
		{Wire, RowDeviceRx}, {RxDriver, RowXDPSeen}, {RxXDP, RowRedirected}, {RxSocket, RowTaken},
		{Verify, RowReceived},
	}
	for _, n := range needed {
		rows := veth()
		rows[find(t, rows, n.b, n.row)].Frames = nil
		r := Close(rows)
		if r.Unexplained != nil {
			t.Errorf("%s unknown: unexplained %d", n.row, *r.Unexplained)
		}
		if r.Known != 0 || len(r.Unknown) != 1 || !strings.HasPrefix(r.Unknown[0], string(n.b)+"/"+n.row) {
			t.Errorf("%s unknown: known %d, names %v", n.row, r.Known, r.Unknown)
		}
	}
	rows := veth()
	rows[find(t, rows, TxKernel, RowCompleted)].Frames = nil
	if r := Close(rows); r.Unexplained == nil || *r.Unexplained != 0 {
		t.Errorf("a checkpoint that is not needed: %+v", r)
	}
}

// A loss without a counter leaves its frames unexplained, and no more.
func TestUnknownLoss(t *testing.T) {
	rows := veth()
	rows[find(t, rows, RxSocket, RowRxRingFull)].Frames = nil
	r := Close(rows)
	if r.Unexplained == nil || *r.Unexplained != 3 || len(r.Unknown) != 1 {
		t.Errorf("unexplained %v, unknown %v", r.Unexplained, r.Unknown)
	}
}

// In zero-copy the driver counts attempts: the row informs and is not summed.
func TestAttemptsStandAside(t *testing.T) {
	rows := veth()
	i := find(t, rows, RxSocket, RowRxRingFull)
	rows = set(t, rows, RxSocket, RowTaken, 999)
	rows = set(t, rows, Verify, RowReceived, 988)
	rows[i].Kind, rows[i].Frames = Checkpoint, Count(123456)
	if got := must(t, rows); got != 0 {
		t.Errorf("unexplained %d, want 0", got)
	}
	if err := Check(rows); err != nil {
		t.Error(err)
	}
}

// Two counters of one name are two checkpoints that must agree.
func TestTwoCountersMustAgree(t *testing.T) {
	for _, second := range []*int{nil, Queue(0)} {
		rows := veth()
		i := find(t, rows, TxKernel, RowDeviceTx)
		rows[i].Queue = Queue(0)
		nic := row(TxKernel, Checkpoint, RowDeviceTx, second, 1002)
		nic.Counter = "tx_pkts_nic"
		rows = slices.Insert(rows, i+1, nic)
		if got := must(t, rows); got != 0 {
			t.Errorf("they agree: unexplained %d", got)
		}
		r := Close(with(rows, i+1, 1000))
		if *r.Unexplained != 2 || len(r.Faults) != 1 || r.Faults[0].Counter != "tx_pkts_nic" {
			t.Errorf("they differ: unexplained %d, faults %+v", *r.Unexplained, r.Faults)
		}
	}
}

func TestCloseLeavesRowsAlone(t *testing.T) {
	rows, same := veth(), veth()
	Close(rows, Event{"link_down", 100})
	Hold(rows, Event{"link_down", 100})
	for i := range rows {
		if *rows[i].Frames != *same[i].Frames || rows[i].Row != same[i].Row {
			t.Fatalf("row %d changed: %+v", i, rows[i])
		}
	}
}

// Over sums too, one residual belongs to one fault.
func TestSumsBelongToOneFault(t *testing.T) {
	rows := set(t, twoQueues(65, 40), Verify, RowReceived, 105)
	r := Close(rows)
	if r.Unexplained == nil || *r.Unexplained != 10 || len(r.Faults) != 1 || r.Faults[0].Row != RowXDPSeen {
		t.Errorf("unexplained %v, want 10; faults %+v", r.Unexplained, r.Faults)
	}
}
