package frame

import (
	"fmt"
	"net/netip"
	"strings"

	"linerate/internal/wire"
)

// Stream is one kind of traffic: headers, sizes and flows. PayloadCheck asks
// the receiver to compare the payload byte by byte; it changes no frame.
type Stream struct {
	ID           uint16 // 0..4095
	Stack        Stack
	Sizes        wire.Sizes
	Flows        Flows
	PayloadCheck bool
}

// Validate reports what makes the stream impossible to send, wrapping
// *LeastError (a size cannot carry the tag; names the least that can),
// *LimitError (too many of something) or *FieldError (addresses of both
// families, a bad range).
func (s Stream) Validate() error {
	_, err := s.plan()
	return err
}

func (s Stream) plan() (axes, error) {
	a, err := s.check()
	if err != nil {
		return axes{}, fmt.Errorf("validate stream %d: %w", s.ID, err)
	}
	return a, nil
}

func (s Stream) check() (axes, error) {
	if s.ID >= MaxStreams {
		return axes{}, &LimitError{"stream", uint64(s.ID), MaxStreams - 1, "12 bits in the tag"}
	}
	if err := s.Stack.validate(); err != nil {
		return axes{}, err
	}
	if len(s.Sizes.Cycle()) == 0 {
		return axes{}, &FieldError{"frame sizes", "", "none given"}
	}
	if most := wire.FrameLen(s.Stack.l3() + 0xffff + wire.FCSBytes); s.Sizes.Max() > most {
		return axes{}, &LimitError{"frame size", uint64(s.Sizes.Max()), uint64(most), "16 bits of IP length"}
	}
	least, short := LeastFrame(s.Stack)
	useShort := s.ID < MaxShortStreams && short < least
	if useShort {
		least = short
	}
	if got := s.Sizes.Min(); got < least {
		return axes{}, &LeastError{Frame: got, Least: least, Stack: s.Stack.String(), Short: useShort}
	}
	return newAxes(s.Stack, s.Flows)
}

// NeedsShort tells whether some frames of the stream carry the short tag.
func (s Stream) NeedsShort() bool {
	long, _ := LeastFrame(s.Stack)
	return s.Sizes.Min() < long
}

// FlowCount is the number of distinct flows, 0 if the stream is not valid.
func (s Stream) FlowCount() int {
	a, err := s.plan()
	if err != nil {
		return 0
	}
	return int(a.count)
}

// Describe is one short line for people.
func (s Stream) Describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "stream %d: %v %v -> %v", s.ID, s.Stack,
		netip.AddrPortFrom(s.Stack.Src, s.Stack.SrcPort), netip.AddrPortFrom(s.Stack.Dst, s.Stack.DstPort))
	for _, v := range s.Stack.VLANs {
		fmt.Fprintf(&b, ", vlan %d", v.ID)
	}
	fmt.Fprintf(&b, ", frame %v", s.Sizes)
	if n := s.FlowCount(); n > 1 {
		fmt.Fprintf(&b, ", %d flows", n)
	}
	if s.NeedsShort() {
		b.WriteString(", short tag")
	}
	if s.PayloadCheck {
		b.WriteString(", payload checked")
	}
	return b.String()
}
