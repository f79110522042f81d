package budget

import "testing"

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
