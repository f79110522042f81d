package bpf

// Reason names what became of a frame in one of our XDP programs. The names
// are those of enum reason in src/verdict.h.
type Reason string

// ReasonSeen counts every frame at entry and ReasonNoMeta frames redirected
// without a stamp; each frame ends in exactly one of the others.
const (
	ReasonSeen         Reason = "seen"           // every frame, at entry
	ReasonRedirected   Reason = "redirected"     // to the AF_XDP socket of its queue
	ReasonDropped      Reason = "dropped"        // ours, counted and dropped by the sink
	ReasonNoMeta       Reason = "no_meta"        // redirected, but no room for a stamp
	ReasonTruncated    Reason = "truncated"      // ends inside a header or before the tag
	ReasonVLANDepth    Reason = "vlan_depth"     // more than two VLAN tags
	ReasonNotIP        Reason = "not_ip"         // EtherType neither IPv4 nor IPv6
	ReasonBadIP        Reason = "bad_ip"         // impossible IP version or header length
	ReasonFragment     Reason = "fragment"       // an IP fragment
	ReasonExtChain     Reason = "ext_chain"      // more than 6 IPv6 extension headers
	ReasonNotUDP       Reason = "not_udp"        // another transport protocol
	ReasonBadUDPLength Reason = "bad_udp_length" // UDP length below 8
	ReasonTooLong      Reason = "too_long"       // UDP length over 16383
	ReasonShortPayload Reason = "short_payload"  // UDP payload too short for any tag
	ReasonNoTag        Reason = "no_tag"         // no magic where a tag would be
	ReasonOtherRun     Reason = "other_run"      // our tag, another run
	ReasonNotMatched   Reason = "not_matched"    // our tag, but other frames were asked for
	ReasonNoQueue      Reason = "no_queue"       // ours, on a receive queue beyond Queues
	ReasonNoSocket     Reason = "no_socket"      // ours, no socket set for its queue
)

// reasons lists the names in the order of enum reason; a test ties the two.
var reasons = [...]Reason{
	steerReasonREASON_SEEN:           ReasonSeen,
	steerReasonREASON_REDIRECTED:     ReasonRedirected,
	steerReasonREASON_DROPPED:        ReasonDropped,
	steerReasonREASON_NO_META:        ReasonNoMeta,
	steerReasonREASON_TRUNCATED:      ReasonTruncated,
	steerReasonREASON_VLAN_DEPTH:     ReasonVLANDepth,
	steerReasonREASON_NOT_IP:         ReasonNotIP,
	steerReasonREASON_BAD_IP:         ReasonBadIP,
	steerReasonREASON_FRAGMENT:       ReasonFragment,
	steerReasonREASON_EXT_CHAIN:      ReasonExtChain,
	steerReasonREASON_NOT_UDP:        ReasonNotUDP,
	steerReasonREASON_BAD_UDP_LENGTH: ReasonBadUDPLength,
	steerReasonREASON_TOO_LONG:       ReasonTooLong,
	steerReasonREASON_SHORT_PAYLOAD:  ReasonShortPayload,
	steerReasonREASON_NO_TAG:         ReasonNoTag,
	steerReasonREASON_OTHER_RUN:      ReasonOtherRun,
	steerReasonREASON_NOT_MATCHED:    ReasonNotMatched,
	steerReasonREASON_NO_QUEUE:       ReasonNoQueue,
	steerReasonREASON_NO_SOCKET:      ReasonNoSocket,
}

// PassReasons lists the reasons that send a frame to the host's stack.
func PassReasons() []Reason {
	return append([]Reason(nil), reasons[steerReasonREASON_TRUNCATED:]...)
}

// OtherQueues is the Queue of the counters that all receive queues beyond the
// configured ones share.
const OtherQueues = -1

// QueueCounters are the frames of one receive queue by reason. Every reason is
// present. Frames[ReasonSeen] = Redirected + Dropped + Passed at rest; while
// traffic runs, frames between entry and verdict make it larger.
type QueueCounters struct {
	Queue  int // receive queue, or OtherQueues
	Frames map[Reason]uint64
}

// Seen is the number of frames the program was run for.
func (q QueueCounters) Seen() uint64 { return q.Frames[ReasonSeen] }

// Redirected is the number of frames handed to an AF_XDP socket.
func (q QueueCounters) Redirected() uint64 { return q.Frames[ReasonRedirected] }

// Dropped is the number of our frames counted and dropped by the sink.
func (q QueueCounters) Dropped() uint64 { return q.Frames[ReasonDropped] }

// Passed is the number of frames left to the host's stack, for whatever reason.
func (q QueueCounters) Passed() uint64 {
	var n uint64
	for _, r := range reasons[steerReasonREASON_TRUNCATED:] {
		n += q.Frames[r]
	}
	return n
}

// newQueueCounters are the counters of one slot of a program with that many queues.
func newQueueCounters(slot, queues int) QueueCounters {
	q := QueueCounters{Queue: slot, Frames: make(map[Reason]uint64, len(reasons))}
	if slot == queues {
		q.Queue = OtherQueues
	}
	return q
}
