package pcap

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

const (
	// readAhead is the reader's buffer, bytes. At least the 4096 with which the
	// library would put a buffer of its own around it: then offsets are not known.
	readAhead = 1 << 18
	// etherHeader is the least that a frame must hold, bytes.
	etherHeader = 14
	// longest is the longest frame that any engine sends, bytes without FCS; a
	// record that says more is garbage.
	longest = 1 << 16
)

// Error is what is wrong with a capture file, and where.
type Error struct {
	Path   string
	Offset int64 // bytes from the start of the file to the record, or the header
	What   string
	Err    error // nil: What says all
}

// Error names the file, the offset and the cause.
func (e *Error) Error() string {
	text := fmt.Sprintf("read %s at byte %d: %s", e.Path, e.Offset, e.What)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap gives the error below, if there is one.
func (e *Error) Unwrap() error { return e.Err }

// Packet is one frame of a capture.
type Packet struct {
	Ns     int64  // when it was captured, ns since 1970
	Data   []byte // without FCS; valid until the next call of Next
	Offset int64  // of its record in the file, or of blocks without frames right before it
}

// counted counts the bytes read.
type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// Reader reads the frames of one capture, pcap (us and ns, either byte order)
// or pcapng, in the order of the file. It belongs to one goroutine.
type Reader struct {
	path string
	file io.Closer
	in   counted
	br   *bufio.Reader
	next func() ([]byte, gopacket.CaptureInfo, error)
	ng   bool
}

// Open opens a capture and reads its header. Errors are those of os.Open, or
// *Error.
func Open(path string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := NewReader(path, f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r.file = f
	return r, nil
}

// NewReader reads a capture from in; path is for errors.
func NewReader(path string, in io.Reader) (*Reader, error) {
	r := &Reader{path: path, in: counted{r: in}}
	r.br = bufio.NewReaderSize(&r.in, readAhead)
	magic, err := r.br.Peek(4)
	switch {
	case err == io.EOF && len(magic) == 0:
		return nil, r.wrong(0, "the file is empty", nil)
	case err != nil && err != io.EOF:
		return nil, r.wrong(0, "", err)
	case len(magic) < 4:
		return nil, r.wrong(0, "not a capture: shorter than its header", nil)
	}
	switch binary.LittleEndian.Uint32(magic) {
	case 0x0a0d0d0a:
		err = r.openNg()
	case 0xa1b2c3d4, 0xd4c3b2a1, 0xa1b23c4d, 0x4d3cb2a1:
		err = r.openClassic()
	default:
		return nil, r.wrong(0, fmt.Sprintf("neither pcap nor pcapng: the file starts with %x", magic), nil)
	}
	return r, err
}

// openClassic reads the header of a pcap file.
func (r *Reader) openClassic() error {
	p, err := pcapgo.NewReader(r.br)
	if err != nil {
		return r.wrong(0, "header", cutShort(err))
	}
	if link := p.LinkType() & 0xffff; link != layers.LinkTypeEthernet { // above: how the FCS is kept
		return r.wrong(0, notEthernet(link), nil)
	}
	r.next = p.ZeroCopyReadPacketData
	return nil
}

// openNg reads the first section header of a pcapng file.
func (r *Reader) openNg() error {
	p, err := pcapgo.NewNgReader(r.br, pcapgo.NgReaderOptions{WantMixedLinkType: true})
	if err != nil {
		return r.wrong(0, "section header", cutShort(err))
	}
	r.ng, r.next = true, p.ZeroCopyReadPacketData
	return nil
}

// Next gives the next frame; io.EOF is the end of a whole file, and everything
// else that stops it an *Error. Frames that could not be sent as they were are
// errors too: cut when captured, no Ethernet, or shorter than its header.
func (r *Reader) Next() (Packet, error) {
	at := r.offset()
	b, ci, err := r.next()
	switch {
	case err == io.EOF && (r.ng || r.offset() == at): // of pcapng the library says it between blocks only
		return Packet{}, io.EOF
	case err != nil:
		return Packet{}, r.wrong(at, "record", cutShort(err))
	case r.ng && !isEthernet(ci):
		link, _ := ci.AncillaryData[0].(layers.LinkType)
		return Packet{}, r.wrong(at, notEthernet(link), nil)
	case ci.CaptureLength < ci.Length:
		return Packet{}, r.wrong(at, fmt.Sprintf("a frame of %d bytes was cut to %d when it was captured", ci.Length, ci.CaptureLength), nil)
	case len(b) < etherHeader || len(b) > longest:
		return Packet{}, r.wrong(at, fmt.Sprintf("a frame of %d bytes: want %d to %d", len(b), etherHeader, longest), nil)
	}
	p := Packet{Data: b, Offset: at}
	if !ci.Timestamp.IsZero() { // a simple packet block has no time
		p.Ns = ci.Timestamp.UnixNano()
	}
	return p, nil
}

// Close closes the file that Open opened.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// offset is how far the file has been read: what stands in the buffer has not.
func (r *Reader) offset() int64 { return r.in.n - int64(r.br.Buffered()) }

func (r *Reader) wrong(at int64, what string, err error) error {
	return &Error{Path: r.path, Offset: at, What: what, Err: err}
}

func isEthernet(ci gopacket.CaptureInfo) bool {
	if len(ci.AncillaryData) == 0 {
		return false
	}
	link, ok := ci.AncillaryData[0].(layers.LinkType)
	return ok && link == layers.LinkTypeEthernet
}

func notEthernet(link layers.LinkType) string {
	return fmt.Sprintf("link type %d (%s): want 1 (Ethernet)", link, link)
}

// cutShort says what an early end means.
func cutShort(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errors.New("the file ends in the middle of it")
	}
	return err
}
