package frame

import "sync/atomic"

// Class is what a received frame turned out to be.
type Class uint8

// Classes. Foreign frames are those of the last three.
const (
	ClassGood       Class = iota // ours, of this run, all checks right
	ClassEnd                     // the same, and an END frame
	ClassCorrupt                 // our tag is there, and something is wrong
	ClassOtherRun                // ours, tag check right, of another run
	ClassUntagged                // a readable frame that carries no tag: ARP, TCP, other UDP
	ClassUnreadable              // headers cut short or contradictory, or an IP fragment
)

var classNames = [...]string{"good", "end", "corrupt", "other_run", "untagged", "unreadable"}

// String is the class's name as in reports.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "class?"
}

// Reason is the first thing found wrong, in the order of the constants.
type Reason uint8

// Reasons. The first five come with ClassCorrupt; ReasonLength also with
// ClassUnreadable.
const (
	ReasonNone     Reason = iota
	ReasonTag             // the tag check is wrong
	ReasonLength          // lengths disagree: IP, UDP, or bytes after the packet that are no padding
	ReasonL3              // IPv4 header checksum, or a broken IP header before an intact tag
	ReasonL4              // UDP checksum wrong or missing
	ReasonPattern         // payload differs from the pattern
	ReasonRun             // another run
	ReasonHeader          // IP version or header length impossible
	ReasonFragment        // an IP fragment
	ReasonNotIP           // ARP, LLDP, a third VLAN tag, ...
	ReasonNotUDP          // TCP, ICMP, IPv4 options, IPv6 extension headers
	ReasonNoTag           // UDP without our magic
)

var reasonNames = [...]string{"", "tag check", "length", "l3 checksum", "l4 checksum", "pattern",
	"other run", "header", "fragment", "not ip", "not udp", "no tag"}

// String is the reason in words, empty for ReasonNone.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "reason?"
}

// Checked is the verdict on one frame. Tag is set for ClassGood, ClassEnd,
// ClassOtherRun and where Identified.
type Checked struct {
	Class      Class
	Reason     Reason
	Identified bool // the tag check is right: corrupt, but its identity is known
	Short      bool // the frame carries the short tag
	Tag        Tag
}

// CheckerConfig is what a Checker expects. With Adopt set, Run is not used.
type CheckerConfig struct {
	Run          Run
	Adopt        *Adoption // take the first run seen; shared by the Checkers of all queues
	PayloadCheck bool      // compare the payload with the pattern, byte by byte
}

// Checker verifies received frames. It belongs to one goroutine.
type Checker struct {
	run          Run
	known        Run // mask of the bits of run that are known
	adopt        *Adoption
	payloadCheck bool

	// What the last good frame's tag check was made of: neighbours share most
	// of it.
	top      uint64 // magic, run, space: 48 bits
	late     uint64 // time and flags
	space    Space
	topCRC   uint16
	lateCRC  uint16
	flow4CRC uint16
	flow6CRC uint16
	flow4    [12]byte // addresses and ports
	flow6    [36]byte
}

// NewChecker makes a Checker.
func NewChecker(c CheckerConfig) *Checker {
	k := &Checker{run: c.Run, known: 0xffff, adopt: c.Adopt, payloadCheck: c.PayloadCheck}
	if c.Adopt != nil {
		k.run, k.known = 0, 0
	}
	k.top = ^uint64(0) // no tag has it
	k.flow4CRC, k.flow6CRC = crcFlow4(&k.flow4, LongTagBytes), crcFlow6(&k.flow6, LongTagBytes)
	return k
}

// Adoption is the run that a sink without a given one has adopted: that of the
// first good frame. An END frame is not enough: the last ENDs of an earlier
// run would take the sink away from the one it waits for. The zero value is
// ready; safe for any number of goroutines.
//
// Of a run that sends only short tags no more than the low 8 bits are known
// until its first END; another run that shares them (1 in 256) is not told
// apart by its short frames, then or later.
type Adoption struct {
	state atomic.Uint32 // known bits << 16 | run
}

// Run is the run adopted, with a mask of the bits known: 0 none yet, 0x00ff
// from a short tag, 0xffff.
func (a *Adoption) Run() (run, known Run) {
	v := a.state.Load()
	return Run(v), Run(v >> 16)
}

// claim compares a frame's run with the one adopted, and adopts it where
// nothing contradicts it.
func (a *Adoption) claim(run, mask Run, first bool) bool {
	for {
		v := a.state.Load()
		have, known := Run(v), Run(v>>16)
		switch {
		case known == 0 && !first, (run^have)&known&mask != 0:
			return false
		case known|mask == known:
			return true
		}
		if a.state.CompareAndSwap(v, uint32(known|mask)<<16|uint32(run&mask|have&known)) {
			return true
		}
	}
}

// sameRun compares the run of a frame, and completes that of a short tag.
// intact frames alone may be adopted.
func (c *Checker) sameRun(t *Tag, short, intact bool) bool {
	mask := Run(0xffff)
	if short {
		mask = 0xff
	}
	if c.known&mask != mask && !c.learn(t, mask, intact) {
		return false
	}
	if (t.Run^c.run)&mask&c.known != 0 {
		return false
	}
	t.Run |= c.run & c.known
	return true
}

// learn asks the Adoption about bits of the run this Checker does not know.
func (c *Checker) learn(t *Tag, mask Run, intact bool) bool {
	if !intact {
		c.run, c.known = c.adopt.Run()
		return c.known != 0
	}
	ok := c.adopt.claim(t.Run, mask, t.Flags&FlagEnd == 0)
	c.run, c.known = c.adopt.Run()
	return ok
}
