package pcap

import (
	"fmt"
	"io"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// Writer writes a pcapng file of one interface, times in ns. It belongs to one
// goroutine.
type Writer struct {
	w *pcapgo.NgWriter
}

// NewWriter writes the header: who wrote the file, and the interface.
func NewWriter(w io.Writer, application, iface string) (*Writer, error) {
	ng, err := pcapgo.NewNgWriterInterface(w,
		pcapgo.NgInterface{Name: iface, LinkType: layers.LinkTypeEthernet, TimestampResolution: 9},
		pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: application}})
	if err != nil {
		return nil, fmt.Errorf("write the header of a capture: %w", err)
	}
	return &Writer{w: ng}, nil
}

// Write writes one frame without FCS, with the time in ns since 1970 and a
// comment, none if it is empty. length is that of the frame: more than that of
// data where it was cut.
func (w *Writer) Write(ns int64, data []byte, length int, comment string) error {
	var o pcapgo.NgPacketOptions
	if comment != "" {
		o.Comments = []string{comment}
	}
	ci := gopacket.CaptureInfo{Timestamp: time.Unix(0, ns), CaptureLength: len(data), Length: length}
	if err := w.w.WritePacketWithOptions(ci, data, o); err != nil {
		return fmt.Errorf("write a frame of a capture: %w", err)
	}
	return nil
}

// Flush writes what is still in the buffer.
func (w *Writer) Flush() error { return w.w.Flush() }
