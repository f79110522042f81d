package frame

import (
	"fmt"

	"linerate/internal/wire"
)

// LeastError says that a frame size cannot carry the test tag.
type LeastError struct {
	Frame wire.FrameLen // the size asked for
	Least wire.FrameLen // the least that works for this stack and stream
	Stack string        // "ipv6/udp", "vlan/ipv4/udp"
	Short bool          // Least is that of the short tag
}

// Error names the size, the least and the stack.
func (e *LeastError) Error() string {
	return fmt.Sprintf("frame size %d: the least for %s with its %s tag is %d bytes, FCS included",
		e.Frame, e.Stack, tagName(e.Short), e.Least)
}

func tagName(short bool) string {
	if short {
		return "short"
	}
	return "long"
}

// LimitError says that a count is outside what the tag or the tables hold.
type LimitError struct {
	Field string // "workers", "flows", "stream"
	Value uint64
	Max   uint64
	Why   string // what sets the limit
}

// Error names the field, its value and the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%s %d: the greatest is %d (%s)", e.Field, e.Value, e.Max, e.Why)
}

// FieldError says that a field of a stream makes no sense.
type FieldError struct {
	Field string // "source address", "destination ports"
	Value string
	What  string // what is wrong with it
}

// Error names the field, its value and what is wrong.
func (e *FieldError) Error() string { return fmt.Sprintf("%s %s: %s", e.Field, e.Value, e.What) }
