package stream

import (
	"encoding/binary"
	"fmt"
	"strings"

	"linerate/internal/frame"
)

// Part is one layer of a frame as read back from its bytes.
type Part struct {
	Layer  string
	Fields []Field
}

// Field is one field and its value, as a file would give it.
type Field struct{ Name, Value string }

// String is the layer on one line.
func (p Part) String() string {
	var b strings.Builder
	b.WriteString(p.Layer)
	for _, f := range p.Fields {
		fmt.Fprintf(&b, " %s %s", f.Name, f.Value)
	}
	return b.String()
}

// Decode reads a frame that Build wrote, layer by layer, from its bytes: what
// is shown is what would be sent.
func (b *Builder) Decode(buf []byte) []Part {
	var parts []Part
	at := 0
	for i := range b.stream.layers {
		l := &b.stream.layers[i]
		head := buf[at : at+l.size()]
		part := Part{Layer: l.spec.name}
		for _, f := range l.spec.fields {
			part.Fields = append(part.Fields, Field{f.name, f.text(getBits(head, f.bit, f.width))})
		}
		switch l.spec.name {
		case "raw":
			part.Fields = append(part.Fields, Field{"bytes", decimal(uint64(len(head)))}, Field{"hex", shortHex(head)})
		case "mpls":
			part.Fields = append(part.Fields, Field{"bottom", decimal(uint64(head[2] & 1))})
		}
		for _, n := range b.lengths {
			if n.at >= at && n.at < at+len(head) {
				part.Fields = append(part.Fields, Field{"length", decimal(uint64(binary.BigEndian.Uint16(buf[n.at:])))})
			}
		}
		for _, c := range b.sums {
			if c.at >= at && c.at < at+len(head) {
				part.Fields = append(part.Fields, Field{"checksum", hexText(uint64(binary.BigEndian.Uint16(buf[c.at:]))) + c.mark()})
			}
		}
		parts = append(parts, part)
		at += len(head)
	}
	if at < len(buf) {
		parts = append(parts, Part{"payload", []Field{{"bytes", decimal(uint64(len(buf) - at))}, {"hex", shortHex(buf[at:])}}})
	}
	return append(parts, b.verdict(buf))
}

func (c *sum) mark() string {
	if c.bad {
		return " (wrong on purpose)"
	}
	return ""
}

// verdict is what a receiver of linerate would say.
func (b *Builder) verdict(buf []byte) Part {
	var out frame.Checked
	frame.NewChecker(frame.CheckerConfig{Run: b.tag.Run}).Check(buf, &out)
	p := Part{"receiver", []Field{{"says", out.Class.String()}}}
	if out.Class == frame.ClassGood || out.Identified {
		p.Fields = append(p.Fields, Field{"seq", decimal(out.Tag.Seq)})
	}
	if out.Class == frame.ClassCorrupt {
		p.Fields = append(p.Fields, Field{"reason", out.Reason.String()})
	}
	return p
}

// shortHex is the beginning of some bytes.
func shortHex(b []byte) string {
	const most = 16
	if len(b) > most {
		return fmt.Sprintf("%x...", b[:most])
	}
	return fmt.Sprintf("%x", b)
}
