// Package report is what a run says: the documents linerate.run/1,
// linerate.set/1, linerate.interval/1 and linerate.error/1, their JSON Schemas,
// and the text that a person reads.
//
// The keys of the documents are a contract: they are added to, never renamed. A
// number that is not known is null, never 0 and never absent; so is a text that
// is not known. Every key is always there.
package report

import (
	"encoding/json"
	"time"

	"linerate/internal/budget"
)

// The names of the schemas.
const (
	RunSchema      = "linerate.run/1"
	IntervalSchema = "linerate.interval/1"
	ErrorSchema    = "linerate.error/1"
	SetSchema      = "linerate.set/1"
)

// Text is a string that is null in JSON when it is empty: not known.
type Text string

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(t))
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(data []byte) error {
	var s *string
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	*t = ""
	if s != nil {
		*t = Text(*s)
	}
	return nil
}

// Ptr returns a pointer to v, for numbers that are known.
func Ptr[T any](v T) *T { return &v }

// Run is the result of one trial.
type Run struct {
	Schema     string    `json:"schema"`
	Version    string    `json:"version"`
	RunID      string    `json:"run_id"`
	Started    time.Time `json:"started"`
	DurationNs *int64    `json:"duration_ns"`
	// Spec is what was asked for: any value that encodes to a JSON object.
	Spec any `json:"spec"`
	// Tx and Rx are the ends; an end that is not in hand is nil.
	Tx       *End           `json:"tx"`
	Rx       *End           `json:"rx"`
	Frames   budget.Frames  `json:"frames"`
	Budget   []budget.Row   `json:"budget"`
	Rate     Rate           `json:"rate"`
	Latency  *Latency       `json:"latency_ns"`
	Streams  []Stream       `json:"streams"`
	CPU      CPU            `json:"cpu"`
	Host     Host           `json:"host"`
	Warnings []Warning      `json:"warnings"`
	Verdict  budget.Verdict `json:"verdict"`
	// Closed is the walk over Budget, for the text; it is not in the document.
	Closed budget.Result `json:"-"`
	// Reasons says why the verdict is not pass, for the text.
	Reasons []budget.Reason `json:"-"`
}

// End is one end of a run as it was read back, not as it was asked for.
type End struct {
	Endpoint string  `json:"endpoint"` // [NETNS/]IFACE
	Engine   string  `json:"engine"`   // "xsk", "live", "xdp", "asavie" ...
	Mode     Text    `json:"mode"`     // "zerocopy", "copy", "generic", "native"
	XDPMode  Text    `json:"xdp_mode"` // "native", "generic", "none"
	Driver   Text    `json:"driver"`
	Queues   []Queue `json:"queues"`
}

// Queue is one queue of one end.
type Queue struct {
	ID     int     `json:"id"`
	CPU    *int    `json:"cpu"` // core the worker was pinned to
	Frames *uint64 `json:"frames"`
	// Predicted is how many frames should have come to a receive queue: from the
	// sending queues on a veth, elsewhere from the device's hash.
	Predicted *uint64 `json:"predicted"`
}

// Rate holds what the run did per second. L2 includes the FCS, L1 adds 20 bytes
// to each frame.
type Rate struct {
	OfferedPPS       *float64 `json:"offered_pps"`
	TxPPS            *float64 `json:"tx_pps"`
	RxPPS            *float64 `json:"rx_pps"`
	TxL1BitsPerSec   *float64 `json:"tx_l1_bits_per_sec"`
	TxL2BitsPerSec   *float64 `json:"tx_l2_bits_per_sec"`
	RxL1BitsPerSec   *float64 `json:"rx_l1_bits_per_sec"`
	LineRateRatio    *float64 `json:"line_rate_ratio"`
	PacingErrorRatio *float64 `json:"pacing_error_ratio"`
	Gap              *Gap     `json:"gap_ns"`
	Stalls           *Stalls  `json:"stalls"`
}

// Gap is the distribution of the time between frames at the receiver's XDP
// program, in nanoseconds.
type Gap struct {
	P50 *int64 `json:"p50"`
	P99 *int64 `json:"p99"`
	Max *int64 `json:"max"`
}

// Stalls counts the times the sending workers were off-CPU for over 200 us.
type Stalls struct {
	Count     uint64 `json:"count"`
	SumNs     int64  `json:"sum_ns"`
	LongestNs int64  `json:"longest_ns"`
}

// Latency is the distribution of stamp to XDP program, in nanoseconds.
type Latency struct {
	Count uint64 `json:"count"`
	Min   *int64 `json:"min"`
	P50   *int64 `json:"p50"`
	P90   *int64 `json:"p90"`
	P99   *int64 `json:"p99"`
	P999  *int64 `json:"p999"`
	Max   *int64 `json:"max"`
	// Clock names the clock of both stamps.
	Clock Text `json:"clock"`
	// BiasNs is the mean time from stamp to kick, which is in every value.
	BiasNs *int64 `json:"bias_ns"`
	// IncludesOwnQueue says that the TX ring was over a quarter full.
	IncludesOwnQueue bool `json:"includes_own_queue"`
	// NoStamp counts frames that came without a stamp of their own.
	NoStamp *uint64 `json:"no_stamp"`
}

// Stream is the account of one stream over all its workers.
type Stream struct {
	ID        int     `json:"id"`
	Sent      *uint64 `json:"sent"`
	Received  *uint64 `json:"received"`
	Lost      *uint64 `json:"lost"`
	Duplicate *uint64 `json:"duplicate"`
	Reordered *uint64 `json:"reordered"`
	Corrupt   *uint64 `json:"corrupt"`
}

// CPU is what the run cost. The cost of an end is null where its softirq ran on
// the other end's core.
type CPU struct {
	TxNsPerFrame    *float64 `json:"tx_ns_per_frame"`
	RxNsPerFrame    *float64 `json:"rx_ns_per_frame"`
	BusyCoreSeconds *float64 `json:"busy_core_seconds"`
	Method          Text     `json:"method"` // "perf", "stat"
}

// Host is the machine that ran the trial.
type Host struct {
	Kernel        Text `json:"kernel"`
	CPU           Text `json:"cpu"`
	Driver        Text `json:"driver"`
	DriverVersion Text `json:"driver_version"`
	Firmware      Text `json:"firmware"`
	PCI           Text `json:"pci"`
}

// Interval is one line of --ndjson.
type Interval struct {
	Schema  string      `json:"schema"`
	RunID   string      `json:"run_id"`
	StartNs int64       `json:"start_ns"` // since the start of the run
	EndNs   int64       `json:"end_ns"`
	Tx      *TxInterval `json:"tx"`
	Rx      *RxInterval `json:"rx"`
}

// TxInterval is what the sender did in one interval.
type TxInterval struct {
	Offered      *uint64  `json:"offered"`
	Sent         *uint64  `json:"sent"`
	Refused      *uint64  `json:"refused"`
	PPS          *float64 `json:"pps"`
	L1BitsPerSec *float64 `json:"l1_bits_per_sec"`
	L2BitsPerSec *float64 `json:"l2_bits_per_sec"`
}

// RxInterval is what the receiver did in one interval. What is lost is not
// known before the end.
type RxInterval struct {
	Received     *uint64  `json:"received"`
	PPS          *float64 `json:"pps"`
	L1BitsPerSec *float64 `json:"l1_bits_per_sec"`
	L2BitsPerSec *float64 `json:"l2_bits_per_sec"`
}

// Failure is the document of a command that could not do its job.
type Failure struct {
	Schema string `json:"schema"`
	RunID  Text   `json:"run_id"` // null when no run had begun
	Code   string `json:"code"`
	Text   string `json:"text"`
	Remedy Text   `json:"remedy"`
}

// Warning is one remark on a run; Code is one of Codes.
type Warning struct {
	Code   Code   `json:"code"`
	Text   string `json:"text"`
	Remedy string `json:"remedy"`
}
