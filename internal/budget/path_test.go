package budget

import (
	"slices"

	"pgregory.net/rapid"
)

// builder makes the rows of a path on which every frame is accounted for.
type builder struct {
	t    *rapid.T
	flow []uint64 // frames under way, per queue of the present side
	rows []Row
	dir  string
}

func (b *builder) flip(label string) bool { return rapid.Bool().Draw(b.t, label) }

func (b *builder) add(at Boundary, k Kind, name string, counts []uint64, whole bool) {
	one := func(queue *int, n uint64) {
		b.rows = append(b.rows, Row{Row: name, Boundary: at, Kind: k, Queue: queue, Frames: Count(n),
			Direction: b.dir, Source: "test", Counter: name, Exact: true})
	}
	if whole {
		total := uint64(0)
		for _, n := range counts {
			total += n
		}
		one(nil, total)
		return
	}
	for q, n := range counts {
		one(Queue(q), n)
	}
}

// checkpoint counts the frames under way, per queue or for the port.
func (b *builder) checkpoint(at Boundary, name string) {
	b.add(at, Checkpoint, name, b.flow, b.flip(name+" whole"))
}

// lose takes some frames away and counts them.
func (b *builder) lose(at Boundary, names ...string) {
	for _, name := range names {
		counts := make([]uint64, len(b.flow))
		for q := range counts {
			counts[q] = rapid.Uint64Range(0, min(b.flow[q], 50)).Draw(b.t, name)
			b.flow[q] -= counts[q]
		}
		b.add(at, Loss, name, counts, b.flip(name+" whole"))
	}
}

// gain adds some frames and counts them.
func (b *builder) gain(at Boundary, name string) {
	counts := make([]uint64, len(b.flow))
	for q := range counts {
		counts[q] = rapid.Uint64Range(0, 20).Draw(b.t, name)
		b.flow[q] += counts[q]
	}
	b.add(at, Gain, name, counts, b.flip(name+" whole"))
}

// spread deals the frames under way to the queues of the receiver.
func (b *builder) spread(queues int) {
	total := uint64(0)
	for _, n := range b.flow {
		total += n
	}
	b.flow = make([]uint64, queues)
	for q := range queues - 1 {
		b.flow[q] = rapid.Uint64Range(0, total).Draw(b.t, "share")
		total -= b.flow[q]
	}
	b.flow[queues-1] = total
}

// drawPath draws a consistent path in one direction.
func drawPath(t *rapid.T, dir string) []Row {
	b := &builder{t: t, dir: dir}
	b.send()
	b.receive()
	if b.flip("queue by queue") {
		b.byQueue()
	}
	return b.rows
}

// send goes from the pacer to the receiving device's queues.
func (b *builder) send() {
	b.flow = rapid.SliceOfN(rapid.Uint64Range(0, 1e6), 1, 4).Draw(b.t, "offered")
	b.checkpoint(BoundaryOffer, RowOffered)
	b.lose(BoundaryOffer, RowUnsent, RowStallDebt)
	b.gain(BoundaryOffer, RowEndFrames)
	b.checkpoint(BoundaryOffer, RowSubmitted)
	if b.flip("completed") {
		b.checkpoint(TxKernel, RowCompleted)
	}
	b.lose(TxKernel, RowDescriptorInvalid, RowDeviceRefused)
	b.gain(TxKernel, RowStackTx)
	b.checkpoint(TxKernel, RowDeviceTx)
	if b.flip("second device_tx") {
		b.add(TxKernel, Checkpoint, RowDeviceTx, b.flow, true)
		b.rows[len(b.rows)-1].Counter = "device_tx of the port"
	}
	b.spread(rapid.IntRange(1, 4).Draw(b.t, "rx queues"))
}

// receive goes on to the verifier.
func (b *builder) receive() {
	b.lose(Wire, RowRxCRC, RowRxMissed)
	b.gain(Wire, RowDuplicate)
	b.checkpoint(Wire, RowDeviceRx)
	b.lose(RxDriver, RowXDPDrops)
	b.checkpoint(RxDriver, RowXDPSeen)
	b.lose(RxXDP, RowPassedToStack, RowXDPDropped)
	if b.flip("socket") {
		b.checkpoint(RxXDP, RowRedirected)
		b.lose(RxSocket, RowRedirectError, RowFillEmpty, RowRxRingFull)
		if b.flip("driver_redirected") {
			b.checkpoint(RxSocket, RowDriverRedirected)
		}
		b.checkpoint(RxSocket, RowTaken)
	} else {
		b.checkpoint(RxXDP, RowAccounted)
	}
	b.lose(Verify, RowEndFrames, RowDuplicate, RowCorrupt, RowForeignUntagged, RowTooLate)
	b.checkpoint(Verify, RowReceived)
}

// byQueue lists the boundaries that have nothing but rows of queues queue by
// queue instead of stage by stage.
func (b *builder) byQueue() {
	var rows []Row
	for _, at := range Boundaries() {
		var here []Row
		for _, r := range b.rows {
			if r.Boundary == at {
				here = append(here, r)
			}
		}
		if !slices.ContainsFunc(here, func(r Row) bool { return r.Queue == nil }) {
			slices.SortStableFunc(here, func(a, b Row) int { return *a.Queue - *b.Queue })
		}
		rows = append(rows, here...)
	}
	b.rows = rows
}

// drawRows draws the rows of a run in one direction or in both.
func drawRows(t *rapid.T) []Row {
	rows := drawPath(t, "a-b")
	if rapid.Bool().Draw(t, "bidir") {
		rows = append(rows, drawPath(t, "b-a")...)
	}
	return rows
}

// with returns rows with the count of row i set to n.
func with(rows []Row, i int, n uint64) []Row {
	changed := slices.Clone(rows)
	changed[i].Frames = Count(n)
	return changed
}
