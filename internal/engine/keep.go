package engine

import (
	"errors"

	"linerate/bpf"
	"linerate/internal/frame"
)

// Why a frame was kept in a capture: one of these, or a class and a reason.
const (
	WhyWanted    uint16 = 0 // every frame is
	WhyDuplicate uint16 = 1
	WhyTooLate   uint16 = 2
	whyChecked   uint16 = 0x8000 // with the class in bits 8-14 and the reason below
)

// Why gives the class and the reason of a frame that was kept for them.
func Why(why uint16) (frame.Class, frame.Reason) {
	return frame.Class(why >> 8 & 0x7f), frame.Reason(why)
}

// ErrNoCapture is what an engine says that does not have the frames at hand.
var ErrNoCapture = errors.New("this engine cannot capture frames")

// keepAny offers a frame to the ring as it is. Its time is that of the XDP
// program where the frame has no tag, and else that of its batch: nobody looks
// into the tag here, and it is by the tag that a stamp is known to be fresh.
func (l *rxLoop) keepAny(meta, buf []byte) {
	ns, ok := bpf.Stamp(meta, 0) // of a frame without a tag
	if !ok {
		ns = uint64(l.lastNs)
	}
	l.ring.Take(int64(ns), WhyWanted, buf)
}

// countKeeping enters a checked frame in the account, and keeps it if it is bad.
func (l *rxLoop) countKeeping(meta, buf []byte, c *frame.Checked) {
	again, late := l.account.Tell(c)
	why := whyChecked | uint16(c.Class)<<8 | uint16(c.Reason)
	switch {
	case again:
		why = WhyDuplicate
	case late:
		why = WhyTooLate
	case c.Class == frame.ClassGood, c.Class == frame.ClassEnd:
		return
	}
	ns, ok := bpf.Stamp(meta, l.identity(c))
	if !ok {
		ns = uint64(l.lastNs)
	}
	l.ring.Take(int64(ns), why, buf)
}

// identity is what the XDP program's stamp of a frame carries.
func (l *rxLoop) identity(c *frame.Checked) uint64 {
	switch {
	case c.Class != frame.ClassGood || l.foreign:
		return 0
	case c.Short:
		return bpf.ShortIdentity(c.Tag.Worker<<4|uint8(c.Tag.Stream), uint32(c.Tag.Seq))
	}
	return bpf.LongIdentity(c.Tag.Key(), c.Tag.Seq)
}
