package budget

// The names of the rows. Definitions says what each one means.
const (
	RowOffered           = "offered"
	RowUnsent            = "unsent"
	RowStallDebt         = "stall_debt"
	RowEndFrames         = "end_frames"
	RowSubmitted         = "submitted"
	RowCompleted         = "completed"
	RowDescriptorInvalid = "descriptor_invalid"
	RowDeviceRefused     = "device_refused"
	RowXmitError         = "xmit_error"
	RowStackTx           = "stack_tx"
	RowNeighborTx        = "neighbor_tx"
	RowDeviceTx          = "device_tx"
	RowCable             = "cable"
	RowDUTLost           = "dut_lost"
	RowDUTOwn            = "dut_own"
	RowRxMissed          = "rx_missed"
	RowRxNoDMA           = "rx_no_dma"
	RowRxCRC             = "rx_crc"
	RowRxLength          = "rx_length"
	RowDeviceRx          = "device_rx"
	RowXDPDrops          = "xdp_drops"
	RowOverBuffer        = "over_buffer"
	RowPurged            = "purged"
	RowXDPSeen           = "xdp_seen"
	RowPassedToStack     = "passed_to_stack"
	RowXDPDropped        = "xdp_dropped"
	RowRedirected        = "redirected"
	RowAccounted         = "accounted"
	RowRedirectError     = "redirect_error"
	RowFillEmpty         = "fill_empty"
	RowRxRingFull        = "rx_ring_full"
	RowRxTooLong         = "rx_too_long"
	RowDriverRedirected  = "driver_redirected"
	RowTaken             = "taken"
	RowDuplicate         = "duplicate"
	RowCorrupt           = "corrupt"
	RowForeignOtherRun   = "foreign_other_run"
	RowForeignUntagged   = "foreign_untagged"
	RowForeignUnreadable = "foreign_unreadable"
	RowTooLate           = "too_late"
	RowUnjudged          = "unjudged"
	RowReflectorRx       = "reflector_rx"
	RowReflectorSeen     = "reflector_seen"
	RowReflectorPassed   = "reflector_passed"
	RowReflected         = "reflected"
	RowReflectError      = "reflect_error"
	RowReceived          = "received"
)

// Place is one boundary and kind in which a row may stand.
type Place struct {
	Boundary Boundary
	Kind     Kind
	// Aside marks a row that informs and takes no part in the sum.
	Aside bool
}

// Definition is the meaning of one row name.
type Definition struct {
	// Row is the name.
	Row string
	// Places lists where the row may stand; the usual place is the first.
	Places []Place
	// Meaning is one line for the reader.
	Meaning string
}

// at is one place for each boundary, all of one kind.
func at(kind Kind, boundaries ...Boundary) []Place {
	places := make([]Place, 0, len(boundaries))
	for _, b := range boundaries {
		places = append(places, Place{Boundary: b, Kind: kind})
	}
	return places
}

// Definitions returns every row that a budget may hold, in path order: the
// single source for validation and for the documentation. The slice is the
// caller's own.
func Definitions() []Definition {
	defs := sendDefinitions()
	defs = append(defs, receiveDefinitions()...)
	return append(defs, verifyDefinitions()...)
}

func sendDefinitions() []Definition {
	return []Definition{
		{RowOffered, at(Checkpoint, BoundaryOffer), "frames the pacer granted"},
		{RowUnsent, at(Loss, BoundaryOffer), "due, never written to the TX ring: it was full, or the worker was off its CPU for longer than it may catch up"},
		{RowStallDebt, at(Loss, BoundaryOffer), "granted while the worker was off-CPU and thrown away as debt over 1 ms; part of frames.unsent"},
		{RowEndFrames, append(at(Gain, BoundaryOffer), at(Loss, Verify)...), "END frames that close the sequence spaces: added to the ring after the offered frames, recognised and set aside by the verifier"},
		{RowSubmitted, at(Checkpoint, BoundaryOffer), "frames written to the TX ring"},
		{RowCompleted, at(Checkpoint, TxKernel), "buffers the kernel gave back on the completion ring, invalid and refused ones too"},
		{RowDescriptorInvalid, at(Loss, TxKernel), "descriptors the kernel rejected"},
		{RowDeviceRefused, at(Loss, TxKernel), "frames the device refused: consumed and completed, not sent"},
		{RowXmitError, at(Loss, TxKernel), "frames the driver's ndo_xdp_xmit did not take"},
		{RowStackTx, append(at(Gain, TxKernel), at(Loss, Wire)...), "frames the host's own stack sent on the same port; a loss where a device under test follows, for which they are"},
		{RowNeighborTx, append(at(Gain, TxKernel), at(Loss, Wire)...), "answers to ARP, neighbour discovery and ping for the stream's addresses, and their announcements, outside the offered load; a loss where a device under test follows, for which they are"},
		{RowDeviceTx, at(Checkpoint, TxKernel), "frames handed to the device, by the driver's counter"},
		{RowCable, at(Checkpoint, Wire), "frames the virtual cable carried, by its own count"},
		{RowDUTLost, at(Loss, Wire), "frames that went into the device under test and did not come out of it: their sequence numbers are missing, and no counter behind it names them"},
		{RowDUTOwn, at(Gain, Wire), "frames the device under test sent besides ours, or passed on for others: those at the receiver that are not the run's"},
		{RowRxMissed, at(Loss, Wire, RxDriver), "frames the device had no room for"},
		{RowRxNoDMA, at(Loss, Wire, RxDriver), "frames the device had no receive descriptor for"},
		{RowRxCRC, at(Loss, Wire), "frames the device dropped for a wrong FCS"},
		{RowRxLength, at(Loss, Wire), "frames the device dropped for their length"},
		{RowDeviceRx, at(Checkpoint, Wire), "frames the receiving device saw"},
	}
}

func receiveDefinitions() []Definition {
	ringFull := at(Loss, RxSocket, RxXDP)
	// Zero-copy drivers run the program again on a frame that found the ring
	// full: the counter then holds attempts, and the loss shows at wire.
	ringFull = append(ringFull, Place{RxSocket, Checkpoint, true}, Place{RxXDP, Checkpoint, true})
	return []Definition{
		{RowXDPDrops, at(Loss, RxDriver, RxXDP, RxSocket), "frames the driver dropped around XDP"},
		{RowReflectorRx, at(Checkpoint, Wire), "frames that the reflecting device saw"},
		{RowReflectorSeen, at(Checkpoint, Wire), "frames that the reflecting program saw"},
		{RowReflectorPassed, at(Loss, Wire), "frames that the reflecting program left to its host's stack"},
		{RowReflected, at(Checkpoint, Wire), "frames that the reflecting program sent back"},
		{RowReflectError, at(Loss, Wire), "frames sent back that the reflecting device threw away"},
		{RowOverBuffer, at(Loss, RxDriver), "frames longer than one receive buffer, which the driver drops without a counter"},
		{RowPurged, at(Held, RxDriver, TxKernel, Wire, RxXDP, RxSocket), "frames that stood in device rings when an event emptied them"},
		{RowXDPSeen, at(Checkpoint, RxDriver), "frames the XDP program saw"},
		{RowPassedToStack, at(Loss, RxXDP), "frames that are not the run's, left to the stack"},
		{RowXDPDropped, at(Loss, RxXDP), "frames the XDP program dropped by its action"},
		{RowRedirected, at(Checkpoint, RxXDP), "frames the XDP program redirected to a socket"},
		{RowAccounted, at(Checkpoint, RxXDP), "frames the XDP program accounted for itself, without a socket"},
		{RowRedirectError, at(Loss, RxSocket, RxXDP, TxKernel), "redirects that failed"},
		{RowFillEmpty, at(Loss, RxSocket, RxXDP), "frames that found no buffer in the fill ring"},
		{RowRxRingFull, ringFull, "frames that found the RX ring full; as a checkpoint: attempts, aside from the sum"},
		{RowRxTooLong, at(Loss, RxSocket, RxXDP), "frames longer than a UMEM chunk"},
		{RowDriverRedirected, at(Checkpoint, RxSocket, RxXDP), "redirects the driver counted as done"},
		{RowTaken, at(Checkpoint, RxSocket), "frames taken from the RX ring"},
	}
}

func verifyDefinitions() []Definition {
	duplicate := append(at(Loss, Verify), at(Gain, Wire, TxKernel, RxDriver, RxXDP, RxSocket)...)
	return []Definition{
		{RowDuplicate, duplicate, "frames that came more than once: a gain where they appeared, a loss where the verifier set them aside"},
		{RowCorrupt, at(Loss, Verify), "frames with the run's magic whose check, length, checksum or pattern is wrong"},
		{RowForeignOtherRun, at(Loss, Verify), "frames of another run"},
		{RowForeignUntagged, at(Loss, Verify), "frames without a tag"},
		{RowForeignUnreadable, at(Loss, Verify), "frames that are no readable packet"},
		{RowTooLate, at(Loss, Verify), "frames later than the sequence window: neither lost nor duplicate"},
		{RowUnjudged, at(Loss, Verify), "frames that are not plainly good, and came faster than user space could judge them"},
		{RowReceived, at(Checkpoint, Verify), "distinct good frames"},
	}
}

// byName holds the table by row; it is never written.
var byName = func() map[string]Definition {
	index := map[string]Definition{}
	for _, d := range Definitions() {
		index[d.Row] = d
	}
	return index
}()

// Define returns the definition of a row name. Its places are shared: read only.
func Define(row string) (Definition, bool) {
	d, known := byName[row]
	return d, known
}

// allows returns the place of d that matches, if there is one.
func (d Definition) allows(b Boundary, k Kind) (Place, bool) {
	for _, p := range d.Places {
		if p.Boundary == b && p.Kind == k {
			return p, true
		}
	}
	return Place{}, false
}

// aside reports whether r informs only.
func (r *Row) aside() bool {
	if r.Kind != Checkpoint {
		return false // losses and gains always count
	}
	p, _ := byName[r.Row].allows(r.Boundary, r.Kind)
	return p.Aside
}
