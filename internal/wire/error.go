package wire

import "fmt"

// ParseError says why a size, rate or speed could not be read.
type ParseError struct {
	Input  string // what was given
	What   string // what is wrong with it
	Remedy string // what may be given, with the list of units
}

// Error names the input, the fault and the remedy.
func (e *ParseError) Error() string {
	return fmt.Sprintf("parse %q: %s; %s", clip(e.Input), e.What, e.Remedy)
}

// clip keeps a hostile input from filling the terminal.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}

// AboveLineRateError says that a rate was asked for which the link cannot carry.
type AboveLineRateError struct {
	Asked PPS   // what the rate comes to, frames per second
	Line  PPS   // line rate of the link at this frame length, frames per second
	Speed Speed // of the link
}

// Error names the asked rate, line rate and the link speed.
func (e *AboveLineRateError) Error() string {
	return fmt.Sprintf("rate %s: above line rate of %s, which is %s at this frame length",
		FormatPPS(e.Asked), e.Speed, FormatPPS(e.Line))
}

// RangeError says that a value is outside what the arithmetic is defined for.
type RangeError struct {
	What  string  // the quantity, with its unit
	Value float64 // what was given
}

// Error names the quantity and its value.
func (e *RangeError) Error() string {
	return fmt.Sprintf("%s of %v: out of range", e.What, e.Value)
}
