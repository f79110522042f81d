package budget

import "fmt"

// Foreign counts frames that are not the run's own.
type Foreign struct {
	OtherRun   *uint64 `json:"other_run"`
	Untagged   *uint64 `json:"untagged"`
	Unreadable *uint64 `json:"unreadable"`
}

// Frames is the summary of a run in frames. What is not known is nil. Of the
// frames offered each is in exactly one of unsent, refused and sent; of those
// sent in exactly one of received, lost, too_late and corrupt with its identity.
type Frames struct {
	Offered                *uint64 `json:"offered"`
	Unsent                 *uint64 `json:"unsent"`
	Refused                *uint64 `json:"refused"`
	Sent                   *uint64 `json:"sent"`
	Received               *uint64 `json:"received"`
	Lost                   *uint64 `json:"lost"`
	Duplicate              *uint64 `json:"duplicate"`
	Reordered              *uint64 `json:"reordered"`
	ReorderedBetweenQueues *uint64 `json:"reordered_between_queues"`
	TooLate                *uint64 `json:"too_late"`
	Corrupt                *uint64 `json:"corrupt"`
	Foreign                Foreign `json:"foreign"`
	Unexplained            *uint64 `json:"unexplained"`
}

// Sequence is what the sequence account knows and no row says.
type Sequence struct {
	Reordered        *uint64
	ReorderedBetween *uint64
	// CorruptIdentified counts corrupt frames whose sequence number is whole.
	CorruptIdentified uint64
	// EndSent is the count that the END frames carried, nil without all of them.
	// It stands for sent where the sender's own rows are not at hand.
	EndSent *uint64
	// EndRefused counts END frames among those that the device refused.
	EndRefused uint64
}

// Tally derives the summary from the rows of a run.
func Tally(rows []Row, s Sequence, r Result) Frames {
	f := Frames{
		Offered:                sum(rows, BoundaryOffer, Checkpoint, RowOffered),
		Unsent:                 sum(rows, BoundaryOffer, Loss, RowUnsent, RowStallDebt),
		Refused:                sum(rows, TxKernel, Loss),
		Received:               sum(rows, Verify, Checkpoint, RowReceived),
		Duplicate:              sum(rows, Verify, Loss, RowDuplicate),
		Reordered:              s.Reordered,
		ReorderedBetweenQueues: s.ReorderedBetween,
		TooLate:                sum(rows, Verify, Loss, RowTooLate),
		Corrupt:                sum(rows, Verify, Loss, RowCorrupt),
		Foreign: Foreign{
			OtherRun:   sum(rows, Verify, Loss, RowForeignOtherRun),
			Untagged:   sum(rows, Verify, Loss, RowForeignUntagged),
			Unreadable: sum(rows, Verify, Loss, RowForeignUnreadable),
		},
		Unexplained: r.Unexplained,
	}
	if f.Refused != nil {
		f.Refused = Count(less(*f.Refused, s.EndRefused))
	}
	f.Sent = sent(rows, f, s)
	f.Lost = lost(f, s)
	return f
}

// sent is submitted less the END frames and what the kernel or the device did
// not take. Without a TX ring it is what is left of offered.
func sent(rows []Row, f Frames, s Sequence) *uint64 {
	submitted := sum(rows, BoundaryOffer, Checkpoint, RowSubmitted)
	if submitted == nil {
		if f.Offered == nil {
			return s.EndSent
		}
		if unknown(rows, BoundaryOffer, Loss) || unknown(rows, TxKernel, Loss) {
			return nil
		}
		return Count(less(*f.Offered, orZero(f.Unsent), orZero(f.Refused)))
	}
	if unknown(rows, TxKernel, Loss) || unknown(rows, BoundaryOffer, Gain) {
		return nil
	}
	ends := orZero(sum(rows, BoundaryOffer, Gain, RowEndFrames))
	return Count(less(*submitted, ends, orZero(f.Refused)))
}

// lost is what was sent and is neither received nor otherwise in hand. It is
// never negative: frames out of nothing show as unexplained.
func lost(f Frames, s Sequence) *uint64 {
	if f.Sent == nil || f.Received == nil {
		return nil
	}
	return Count(less(*f.Sent, *f.Received, s.CorruptIdentified, orZero(f.TooLate)))
}

// sum adds the rows of one boundary and kind, of the given names or of all. It
// is nil when there is no such row or one of them is unknown.
func sum(rows []Row, b Boundary, k Kind, names ...string) *uint64 {
	var total *uint64
	for _, r := range rows {
		if r.Boundary != b || r.Kind != k || !named(r.Row, names) {
			continue
		}
		if r.Frames == nil {
			return nil
		}
		total = Count(orZero(total) + *r.Frames)
	}
	return total
}

// unknown reports whether a row of one boundary and kind has no value.
func unknown(rows []Row, b Boundary, k Kind) bool {
	for _, r := range rows {
		if r.Boundary == b && r.Kind == k && r.Frames == nil {
			return true
		}
	}
	return false
}

func named(row string, names []string) bool {
	for _, n := range names {
		if n == row {
			return true
		}
	}
	return len(names) == 0
}

func orZero(n *uint64) uint64 {
	if n == nil {
		return 0
	}
	return *n
}

// less subtracts and stops at 0.
func less(n uint64, amounts ...uint64) uint64 {
	for _, a := range amounts {
		n -= min(n, a)
	}
	return n
}

// IdentityError is a summary whose own numbers contradict each other.
type IdentityError struct {
	Identity string // the equation, with its numbers
}

// Error implements error.
func (e *IdentityError) Error() string { return "frames: " + e.Identity }

// Check tests offered = unsent + refused + sent where all are known. The error
// is an *IdentityError.
func (f Frames) Check() error {
	if f.Offered == nil || f.Sent == nil {
		return nil
	}
	parts := orZero(f.Unsent) + orZero(f.Refused) + *f.Sent
	if parts == *f.Offered {
		return nil
	}
	return &IdentityError{fmt.Sprintf("offered %d is not unsent %d + refused %d + sent %d",
		*f.Offered, orZero(f.Unsent), orZero(f.Refused), *f.Sent)}
}
