package frame

import "bytes"

// patternPeriod is the length after which the payload pattern repeats.
const patternPeriod = 4096

var patternBytes = makePattern()

func makePattern() *[patternPeriod]byte {
	p := new([patternPeriod]byte)
	for j := range p {
		p[j] = byte(j + j>>8)
	}
	return p
}

// fillPattern writes the pattern of payload offset off and on into b.
func fillPattern(b []byte, off int) {
	for len(b) > 0 {
		n := copy(b, patternBytes[off%patternPeriod:])
		b, off = b[n:], off+n
	}
}

// isPattern tells whether b holds the pattern from payload offset 0 on.
func isPattern(b []byte) bool {
	for len(b) > patternPeriod {
		if !bytes.Equal(b[:patternPeriod], patternBytes[:]) {
			return false
		}
		b = b[patternPeriod:]
	}
	return bytes.Equal(b, patternBytes[:len(b)])
}
