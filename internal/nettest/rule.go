package nettest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Fault is what is done to a frame.
type Fault int

// The faults.
const (
	Drop      Fault = iota + 1
	Duplicate       // send it twice, one right after the other
	Swap            // send it after the frame that follows it
	Delay           // hold it for Rule.Hold, or until Rule.Behind more frames have gone
	Corrupt         // damage Rule.Part of it
)

// String is the fault's name in lower case.
func (f Fault) String() string {
	return [...]string{"none", "drop", "duplicate", "swap", "delay", "corrupt"}[f]
}

// Part is which part of a frame Corrupt damages. No checksum is mended.
type Part int

// The parts.
const (
	Payload  Part = iota + 1 // one bit of a byte before the tag
	Tag                      // one bit of the tag, after its magic
	Magic                    // both bytes of the tag's magic become zero: the frame is nobody's
	Checksum                 // the UDP checksum
)

// String is the part's name in lower case.
func (p Part) String() string {
	return [...]string{"none", "payload", "tag", "magic", "checksum"}[p]
}

// Rule does one fault to chosen frames of one direction. Frames are counted
// from 1, in the order in which the box gets them, and only those to the box's
// UDP port; all others pass untouched and uncounted. A frame number that two
// rules name gets the first rule's fault.
type Rule struct {
	Way    Way
	Fault  Fault
	Frames []uint64      // the frames' numbers
	Part   Part          // Corrupt
	Hold   time.Duration // Delay
	Behind int           // Delay, instead of Hold: how many later frames go first
}

// Way is a direction through the box.
type Way int

// The directions.
const (
	AtoB Way = iota
	BtoA
)

// Pick chooses n different numbers out of 1..of, in rising order; the same seed
// chooses the same.
func Pick(seed uint64, n, of int) []uint64 {
	var chosen []uint64
	for _, i := range rand.New(rand.NewPCG(seed, 0x5eed)).Perm(of)[:min(n, of)] {
		chosen = append(chosen, uint64(i)+1)
	}
	slices.Sort(chosen)
	return chosen
}

func (r Rule) check() error {
	switch {
	case r.Way != AtoB && r.Way != BtoA:
		return fmt.Errorf("rule %s: no such way: %d", r.Fault, r.Way)
	case r.Fault < Drop || r.Fault > Corrupt:
		return fmt.Errorf("no such fault: %d", int(r.Fault))
	case r.Fault == Corrupt && (r.Part < Payload || r.Part > Checksum):
		return fmt.Errorf("rule corrupt: no such part: %d", int(r.Part))
	case r.Fault == Delay && (r.Hold > 0) == (r.Behind > 0):
		return fmt.Errorf("rule delay: want either Hold or Behind")
	case slices.Contains(r.Frames, 0):
		return fmt.Errorf("rule %s: frames are counted from 1", r.Fault)
	}
	return nil
}

// plan is the rules of one way by frame number.
func plan(rules []Rule, way Way) map[uint64]Rule {
	m := map[uint64]Rule{}
	for _, r := range rules {
		for _, n := range r.Frames {
			if _, taken := m[n]; !taken && r.Way == way {
				m[n] = r
			}
		}
	}
	return m
}

// damage does what a Corrupt rule says to one frame; the box's seed chooses the
// byte and bit. A frame without the part in question is an error: the test
// asked for something that cannot be.
func damage(b []byte, w where, p Part, rnd *rand.Rand) error {
	from, to := w.payload, w.end
	if w.tag >= 0 {
		to = w.tag
	}
	switch p {
	case Tag:
		from, to = w.tag+2, w.tag+w.tagLen
	case Magic:
		from, to = w.magic, w.magic+2
	case Checksum:
		from, to = w.udp+6, w.udp+8
	}
	if from >= to || p != Payload && p != Checksum && w.tag < 0 {
		return fmt.Errorf("corrupt %s: a frame of %d bytes has none", p, len(b))
	}
	switch p {
	case Magic:
		b[from], b[from+1] = 0, 0
	case Checksum:
		damageChecksum(b[from:to])
	default:
		b[from+rnd.IntN(to-from)] ^= 1 << rnd.IntN(8)
	}
	return nil
}

// damageChecksum never makes it zero, which would mean "no checksum".
func damageChecksum(b []byte) {
	b[1] ^= 0x55
	if b[0] == 0 && b[1] == 0 {
		b[1] = 0xaa
	}
}
