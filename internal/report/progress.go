package report

import (
	"fmt"
	"strings"

	"linerate/internal/wire"
)

// Progress is one interval as one line for a terminal, without a line end.
func Progress(i Interval) string {
	parts := []string{fmt.Sprintf("%6.1f s", float64(i.EndNs)/1e9)}
	pps := func(name string, v *float64) {
		if v == nil {
			parts = append(parts, name+" unknown")
			return
		}
		parts = append(parts, name+" "+wire.FormatPPS(wire.PPS(*v)))
	}
	if i.Tx != nil {
		pps("tx", i.Tx.PPS)
	}
	if i.Rx != nil {
		pps("rx", i.Rx.PPS)
	}
	bits := func(v *float64) {
		if v != nil {
			parts = append(parts, wire.FormatBits(wire.BitsPerSec(*v))+" L1")
		}
	}
	switch {
	case i.Rx != nil:
		bits(i.Rx.L1BitsPerSec)
	case i.Tx != nil:
		bits(i.Tx.L1BitsPerSec)
	}
	if i.Tx != nil && i.Tx.Refused != nil && *i.Tx.Refused > 0 {
		parts = append(parts, "refused "+wire.FormatCount(*i.Tx.Refused))
	}
	return strings.Join(parts, "   ")
}
