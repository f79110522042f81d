package trial

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"linerate/bpf"
	"linerate/internal/budget"
	"linerate/internal/engine"
	"linerate/internal/nic"
	"linerate/internal/wire"
)

// rows turns the counters of a trial into the budget's rows, in path order.
func (r *running) rows() []budget.Row {
	b := &builder{}
	if r.tx != nil {
		r.offerRows(b)
		r.txKernelRows(b)
	}
	if r.rx != nil {
		r.wireRows(b)
		r.programRows(b)
		if !r.inKernel() {
			r.socketRows(b)
		}
		if r.spec.Action == Verify {
			r.verifyRows(b)
		}
		r.throughRows(b)
	}
	return r.tamper(b.rows)
}

// builder appends rows of one direction.
type builder struct {
	rows []budget.Row
	wire int // where the rows of a device under test go
}

func (b *builder) add(bd budget.Boundary, kind budget.Kind, row string, queue *int, frames *uint64, source, counter, note string) {
	b.rows = append(b.rows, budget.Row{Row: row, Boundary: bd, Kind: kind, Queue: queue, Direction: "a-b",
		Frames: frames, Source: source, Counter: counter, Exact: true, Note: note})
}

// port adds a row for the whole port.
func (b *builder) port(bd budget.Boundary, kind budget.Kind, row string, frames *uint64, source, counter, note string) {
	b.add(bd, kind, row, nil, frames, source, counter, note)
}

// queue adds a row for one queue.
func (b *builder) queue(bd budget.Boundary, kind budget.Kind, row string, q int, frames uint64, source, counter, note string) {
	b.add(bd, kind, row, budget.Queue(q), budget.Count(frames), source, counter, note)
}

// reading adds what a device counter counted during the trial: per queue where
// the driver has that. A reset makes it unknown.
func (b *builder) reading(bd budget.Boundary, kind budget.Kind, row string, now, before nic.Reading) {
	d, reset := now.Sub(before)
	note := d.Note
	switch {
	case reset:
		note = "the counter was reset during the trial"
	case d.Frames == nil && before.Frames != nil:
		d.Source, d.Counter, note = before.Source, before.Counter, "could not be read after the trial"
	}
	for _, q := range slices.Sorted(maps.Keys(d.PerQueue)) {
		b.queue(bd, kind, row, q, d.PerQueue[q], d.Source, strings.Replace(d.Counter, "_N_", fmt.Sprintf("_%d_", q), 1), note)
	}
	if len(d.PerQueue) == 0 {
		b.port(bd, kind, row, d.Frames, d.Source, d.Counter, note)
	}
}

func (r *running) offerRows(b *builder) {
	bd := budget.BoundaryOffer
	for _, q := range r.out.Tx.Queues {
		id := q.Queue.ID
		b.queue(bd, budget.Checkpoint, budget.RowOffered, id, q.Offered, "pace", "permits", "")
		b.queue(bd, budget.Loss, budget.RowUnsent, id, q.Unsent, "pace", "late permits", unsentNote(q))
		b.queue(bd, budget.Gain, budget.RowEndFrames, id, q.EndFrames, "frame", "END frames", "")
		b.queue(bd, budget.Checkpoint, budget.RowSubmitted, id, q.Submitted, string(r.spec.Tx.Engine), "TX ring producer", "")
	}
}

func unsentNote(q engine.TxQueue) string {
	if q.Unsent == 0 {
		return ""
	}
	if q.Stalls.Count > 0 {
		return fmt.Sprintf("due while the worker was off its CPU (%d times), or the ring was full", q.Stalls.Count)
	}
	return "the TX ring was full when these were due"
}

// inKernel tells whether frames end in the XDP program, with no socket behind it.
func (r *running) inKernel() bool { return r.spec.Action == Drop || r.spec.Rx.Engine == engine.XDP }

// liveRows follow a live frame: the program's own count is what it submitted,
// the device's is what it took. By port: the driver picks the queue by CPU.
func (r *running) liveRows(b *builder) {
	read := func(kind budget.Kind, row string, role nic.Role, other func(nic.Counters) nic.Reading) {
		now, before := r.last.tx.Read(role), r.base.tx.Read(role)
		if now.Frames == nil {
			now, before = other(r.last.tx), other(r.base.tx)
		}
		now.PerQueue, before.PerQueue = nil, nil
		b.reading(budget.TxKernel, kind, row, now, before)
	}
	if r.trace == nil {
		read(budget.Loss, budget.RowDeviceRefused, nic.RoleXDPXmitErrors, nic.Counters.DeviceTxDropped)
	} else { // they also count what a device that is down, or no longer there, took none of
		b.port(budget.TxKernel, budget.Loss, budget.RowDeviceRefused, r.droppedAt(bpf.PointXDPDevmapXmit), "tracepoint", "xdp_devmap_xmit", "")
		b.port(budget.TxKernel, budget.Loss, budget.RowRedirectError, r.droppedAt(bpf.PointXDPRedirectErr), "tracepoint", "xdp_redirect_err", "")
	}
	read(budget.Checkpoint, budget.RowDeviceTx, nic.RoleXDPXmit, nic.Counters.DeviceTx)
}

// droppedAt is what a tracepoint saw thrown away at the sender's port.
func (r *running) droppedAt(point bpf.Point) *uint64 {
	var n uint64
	for _, c := range r.traced(r.spec.Tx, point) {
		n += c.Dropped
	}
	return &n
}

func (r *running) txKernelRows(b *builder) {
	if r.spec.Tx.Engine == engine.Live {
		r.liveRows(b)
		return
	}
	bd := budget.TxKernel
	eng := string(r.spec.Tx.Engine)
	for _, q := range r.out.Tx.Queues {
		id := q.Queue.ID
		if q.Held > 0 {
			b.queue(bd, budget.Held, budget.RowPurged, id, q.Held, eng, "TX ring consumer", "still in the TX ring: the kernel did not take them")
		}
		b.queue(bd, budget.Checkpoint, budget.RowCompleted, id, q.Completed, eng, "completion ring", "refused and invalid ones come back too")
		b.queue(bd, budget.Loss, budget.RowDescriptorInvalid, id, q.Invalid, eng, "tx_invalid_descs", "")
		if !r.out.Tx.RefusedUnknown {
			b.queue(bd, budget.Loss, budget.RowDeviceRefused, id, q.Refused, eng, "sendto EBUSY", "")
		}
	}
	if r.out.Tx.RefusedUnknown {
		// This engine keeps EBUSY to itself: the device's own count stands in.
		b.reading(bd, budget.Loss, budget.RowDeviceRefused, r.last.tx.DeviceTxDropped(), r.base.tx.DeviceTxDropped())
	}
	if r.trace != nil {
		b.port(bd, budget.Gain, budget.RowStackTx, r.stackTx(), "tracepoint", "net_dev_xmit", "")
	}
	r.answerRow(b, bd, budget.Gain)
	b.reading(bd, budget.Checkpoint, budget.RowDeviceTx, r.last.tx.DeviceTx(), r.base.tx.DeviceTx())
	if now := r.last.tx.Read(nic.RoleDeviceTxNIC); now.Frames != nil { // the NIC's own count must agree with the driver's
		b.reading(bd, budget.Checkpoint, budget.RowDeviceTx, now, r.base.tx.Read(nic.RoleDeviceTxNIC))
	}
}

// stackTx is what the host's own stack sent on the port.
func (r *running) stackTx() *uint64 {
	var n uint64
	for _, c := range r.traced(r.spec.Tx, bpf.PointNetDevXmit) {
		n += c.Sent
	}
	return &n
}

// wireLosses are the device counters of frames that arrived and were thrown
// away before the driver had them.
var wireLosses = []struct {
	row  string
	role nic.Role
}{
	{budget.RowRxMissed, nic.RoleRxMissed}, {budget.RowRxNoDMA, nic.RoleRxNoDMA},
	{budget.RowRxCRC, nic.RoleRxCRC}, {budget.RowRxLength, nic.RoleRxLength},
}

func (r *running) wireRows(b *builder) {
	b.wire = len(b.rows)
	r.reflectRows(b)
	for _, l := range wireLosses {
		if now := r.last.rx.Read(l.role); now.Frames != nil {
			b.reading(budget.Wire, budget.Loss, l.row, now, r.base.rx.Read(l.role))
		}
	}
	if r.spec.Action == Verify && r.tx != nil {
		b.port(budget.Wire, budget.Gain, budget.RowDuplicate, r.verified(r.out.Rx.Totals.Duplicate), "account", "sequence", "")
	}
	b.reading(budget.Wire, budget.Checkpoint, budget.RowDeviceRx, r.last.rx.DeviceRx(), r.base.rx.DeviceRx())
}

// overBufferRow stands for the frames that a zero-copy driver drops for being
// longer than a receive buffer: no counter has them. None can be where the
// buffer takes the longest frame that the port lets in; else nobody knows.
func (r *running) overBufferRow(b *builder) {
	e := r.spec.Rx
	if r.out.RxGranted.Mode != "zerocopy" || e.Port.Driver != ixgbe {
		return
	}
	longest, takes := wire.BufLen(e.Port.MTU+14+8), ixgbeBuffer(e.Chunk)
	row := budget.Row{Row: budget.RowOverBuffer, Boundary: budget.RxDriver, Kind: budget.Loss, Direction: "a-b",
		Source: "precondition", Counter: "buffers of a UMEM chunk",
		Note: fmt.Sprintf("exact only if no buffer is over %d bytes; the MTU lets in %d", takes, longest)}
	if longest <= takes {
		row.Frames, row.Exact = budget.Count(0), true
	}
	b.rows = append(b.rows, row)
}

// programRows are the XDP program's counters.
func (r *running) programRows(b *builder) {
	r.overBufferRow(b)
	now, before := r.last.program, r.base.program
	seen := sinceQueues(now.Seen, before.Seen)
	row, per, counter := budget.RowRedirected, sinceQueues(now.Redirected, before.Redirected), "redirected"
	if r.inKernel() {
		row, per, counter = budget.RowAccounted, sinceQueues(now.Accounted, before.Accounted), "accounted"
	}
	for _, q := range slices.Sorted(maps.Keys(seen)) {
		id := q
		if q == bpf.OtherQueues {
			if n := seen[q]; n != nil && *n == 0 {
				continue
			}
			id = r.spec.Steer.Queues // queues that came up during the trial
		}
		n, why := passed(now.Passed[q], before.Passed[q])
		b.add(budget.RxDriver, budget.Checkpoint, budget.RowXDPSeen, budget.Queue(id), seen[q], "bpf", "seen", "")
		b.queue(budget.RxXDP, budget.Loss, budget.RowPassedToStack, id, n, "bpf", "passed", why)
		b.add(budget.RxXDP, budget.Checkpoint, row, budget.Queue(id), per[q], "bpf", counter, "")
	}
}

// passed sums the reasons for which a queue's frames went to the stack, and
// names the ones that moved.
func passed(now, before map[string]uint64) (uint64, string) {
	var sum uint64
	var why []string
	for _, reason := range slices.Sorted(maps.Keys(now)) {
		if d := now[reason] - before[reason]; d > 0 {
			sum += d
			why = append(why, fmt.Sprintf("%s %d", reason, d))
		}
	}
	return sum, strings.Join(why, ", ")
}

// socketRows follow a frame from the redirect to the RX ring. The socket's
// own counters and the tracepoint would count the same frame twice: a full
// ring is ENOBUFS there, an empty fill ring ENOMEM, a long frame ENOSPC.
func (r *running) socketRows(b *builder) {
	bd := budget.RxSocket
	eng := string(r.spec.Rx.Engine)
	if r.trace != nil {
		r.redirectRows(b)
	}
	for _, q := range r.out.Rx.Queues {
		id := q.Queue.ID
		b.queue(bd, budget.Loss, budget.RowFillEmpty, id, q.FillEmpty, eng, "rx_fill_ring_empty_descs", "")
		kind := budget.Loss
		if r.out.RxGranted.Mode == "zerocopy" {
			kind = budget.Checkpoint // attempts: the driver offers the frame again
		}
		b.queue(bd, kind, budget.RowRxRingFull, id, q.RingFull, eng, "rx_ring_full", "")
	}
	if now := r.last.rx.Read(nic.RoleXDPRedirect); len(now.PerQueue) > 0 && r.out.RxGranted.XDPMode == engine.Native {
		b.reading(bd, budget.Checkpoint, budget.RowDriverRedirected, now, r.base.rx.Read(nic.RoleXDPRedirect))
	}
	for _, q := range r.out.Rx.Queues {
		b.queue(bd, budget.Checkpoint, budget.RowTaken, q.Queue.ID, q.Taken, eng, "RX ring consumer", "")
	}
}

// redirectRows are the redirects that failed for reasons that no counter of
// the socket names.
func (r *running) redirectRows(b *builder) {
	var other, long uint64
	var why []string
	errs := r.traced(r.spec.Rx, bpf.PointXDPRedirectErr)
	for _, code := range slices.Sorted(maps.Keys(errs)) {
		n := errs[code].Dropped
		switch {
		case n == 0, code == "ENOBUFS", code == "ENOMEM":
		case code == "ENOSPC":
			long = n
		default:
			other += n
			why = append(why, fmt.Sprintf("%s %d", code, n))
		}
	}
	bd := budget.RxSocket
	b.port(bd, budget.Loss, budget.RowRedirectError, &other, "tracepoint", "xdp_redirect_err", strings.Join(why, ", "))
	b.port(bd, budget.Loss, budget.RowRxTooLong, &long, "tracepoint", "xdp_redirect_err ENOSPC", "")
}

// verified is a count of the account, unknown where the receiver took it along:
// an engine's process may be gone.
func (r *running) verified(n uint64) *uint64 {
	if len(r.out.Rx.Queues) == 0 {
		return nil
	}
	return &n
}

func (r *running) verifyRows(b *builder) {
	t := r.out.Rx.Totals
	loss := func(row string, n uint64, counter string) {
		b.port(budget.Verify, budget.Loss, row, r.verified(n), "account", counter, "")
	}
	loss(budget.RowEndFrames, t.EndFrames, "END flag")
	loss(budget.RowDuplicate, t.Duplicate, "sequence")
	loss(budget.RowTooLate, t.TooLate, "sequence window")
	loss(budget.RowCorrupt, t.Corrupt, "tag check, length, checksum")
	if r.spec.Rx.Engine == engine.XDP {
		b.port(budget.Verify, budget.Loss, budget.RowUnjudged, r.verified(r.out.Rx.Unjudged), "bpf", "ring of doubtful frames full", "")
	}
	loss(budget.RowForeignOtherRun, t.OtherRun, "run id")
	loss(budget.RowForeignUntagged, t.Untagged, "magic")
	loss(budget.RowForeignUnreadable, t.Unreadable, "headers")
	b.port(budget.Verify, budget.Checkpoint, budget.RowReceived, r.verified(t.Distinct), "account", "distinct sequences", "")
}

// tamper applies the falsification of the budget's own test.
func (r *running) tamper(rows []budget.Row) []budget.Row {
	t := r.spec.Tamper
	for i := range rows {
		if t.Row == "" || rows[i].Row != t.Row || rows[i].Frames == nil {
			continue
		}
		n := *rows[i].Frames
		if t.Frozen {
			n = 0
		}
		n = uint64(int64(n) + t.Offset)
		rows[i].Frames = &n
		break
	}
	return rows
}
