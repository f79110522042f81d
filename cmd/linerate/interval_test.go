package main

import (
	"testing"

	"linerate/internal/meter"
	"linerate/internal/trial"
)

// What an interval line says of one end: frames and their rate must be of the
// same frames.
func TestIntervalDocument(t *testing.T) {
	p := trial.Progress{ElapsedNs: 3e9, HasTx: true, HasRx: true, Last: meter.Interval{StartNs: 7e9, EndNs: 8e9,
		Tx: meter.TxCounts{Offered: 5, Submitted: 10, Refused: 50, Bytes: 640},
		Rx: meter.RxCounts{Taken: 20, Bytes: 20 * 64}}} // counted only: none is known to be good
	d := intervalDocument("id", p)
	if d.StartNs != 2e9 || d.EndNs != 3e9 || *d.Tx.Offered != 5 {
		t.Errorf("%+v %+v", d, d.Tx)
	}
	if *d.Tx.Sent != 0 || *d.Tx.PPS != 0 || *d.Tx.Refused != 50 {
		t.Errorf("more refused than submitted: sent %d at %f pps", *d.Tx.Sent, *d.Tx.PPS)
	}
	if *d.Rx.Received != 20 || *d.Rx.PPS != 20 || *d.Rx.L1BitsPerSec != 20*84*8 {
		t.Errorf("received %d at %f pps, %f bit/s", *d.Rx.Received, *d.Rx.PPS, *d.Rx.L1BitsPerSec)
	}
	p.HasTx, p.HasRx = false, false
	if d = intervalDocument("id", p); d.Tx != nil || d.Rx != nil {
		t.Errorf("an end that is not in hand: %+v %+v", d.Tx, d.Rx)
	}
}
