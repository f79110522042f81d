package budget

import "slices"

// Kind says how a row takes part in the sum.
type Kind string

// The kinds of a row.
const (
	Checkpoint Kind = "checkpoint" // every frame passes it
	Loss       Kind = "loss"       // frames that left the path here, counted
	Gain       Kind = "gain"       // frames that joined the path here, counted
	Held       Kind = "held"       // frames that a seen event made uncountable
)

// Boundary is one stretch of the path between two checkpoints.
type Boundary string

// The boundaries, from the pacer to the verifier.
const (
	BoundaryOffer Boundary = "offer"     // pacer -> TX ring
	TxKernel      Boundary = "tx_kernel" // TX ring -> device
	Wire          Boundary = "wire"      // device -> device
	RxDriver      Boundary = "rx_driver" // device -> XDP program
	RxXDP         Boundary = "rx_xdp"    // XDP program -> redirected or accounted
	RxSocket      Boundary = "rx_socket" // redirected -> taken from the RX ring
	Verify        Boundary = "verify"    // taken or accounted -> distinct good frames
)

// order is the path; it is never written.
var order = [...]Boundary{BoundaryOffer, TxKernel, Wire, RxDriver, RxXDP, RxSocket, Verify}

// Boundaries returns the boundaries in path order. The slice is the caller's own.
func Boundaries() []Boundary { return slices.Clone(order[:]) }

// rank is the place of b in path order, or -1.
func (b Boundary) rank() int { return slices.Index(order[:], b) }

// sends reports whether the queues of b's checkpoints are the sender's.
func (b Boundary) sends() bool { return b == BoundaryOffer || b == TxKernel }

// Row is one counter of a run. The JSON keys are a contract.
type Row struct {
	// Row is the name, one of Definitions.
	Row string `json:"row"`
	// Boundary is where the row takes effect.
	Boundary Boundary `json:"boundary"`
	// Queue is the queue counted; nil counts the whole port.
	Queue *int `json:"queue"`
	// Direction is the way the frames went, such as "a-b".
	Direction string `json:"direction"`
	// Kind is how the row takes part.
	Kind Kind `json:"kind"`
	// Frames is the count; nil is unknown.
	Frames *uint64 `json:"frames"`
	// Source is what was read: "xsk", "stats64", "ethtool", "bpf", "pace" ...
	Source string `json:"source"`
	// Counter is the kernel's or the device's own name of the counter.
	Counter string `json:"counter"`
	// Exact is false where the count holds only under the precondition in Note.
	Exact bool `json:"exact"`
	// Note is free text for the reader.
	Note string `json:"note"`
}

// Count returns n as a Row.Frames value.
func Count(n uint64) *uint64 { return &n }

// Queue returns id as a Row.Queue value.
func Queue(id int) *int { return &id }

// sameQueue reports whether a and b name the same queue, or both the port.
func sameQueue(a, b *int) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
