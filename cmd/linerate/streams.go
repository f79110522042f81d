package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"linerate/internal/stream"
)

func streamsCommand() command {
	return command{
		name: "streams", job: "read a streams file: show its first frames, print its schema", synopsis: "streams show FILE | schema",
		about: `What a streams file would send, read back from the very bytes. Nothing is sent.
A file:

` + streamsSample,
		examples: []example{
			{"linerate streams show mix.yaml", "the first frames of every stream"},
			{"linerate streams show mix.yaml --stream web --frames 10 --hex", ""},
			{"linerate streams schema", "for editors that check YAML"},
		},
		words: []string{"show", "schema"},
		files: true,
		flags: func() *pflag.FlagSet { fs, _ := streamsFlagSet(); return fs },
		run:   runStreams,
	}
}

// streamsSample is a file to start from.
const streamsSample = `streams:
  - name: web
    layers:                         # eth vlan mpls ipv4 ipv6 udp tcp icmp icmpv6 arp vxlan raw
      - eth: {dst: "02:00:00:00:00:02"}
      - vlan: {id: {from: 100, to: 109}}
      - ipv4: {src: {from: 198.18.0.1, count: 1000, every: 10}, dscp: 46}
      - udp: {src: {from: 1024, to: 65535, random: true, seed: 7}, dst: [53, 123]}
    frame: [{size: 72, weight: 3}, {size: 1518, weight: 1}]   # 72, [72, 128], {from: 72, to: 1518}, imix
    rate: 10kpps                    # 1Gbps-l1, 1Gbps-l2, 5%, max
    burst: {size: 32, gap: 1ms}
    count: 100000                   # or time: 10s
    start: 100ms
    payload: inc                    # zero, random, {hex: "dead beef"}
  - name: broken
    layers: [eth, ipv4, udp]
    frame: 64
    rate: 100pps
    wrong: [l4-checksum]            # l3-checksum ip-length udp-length runt oversize
`

// showMostFrames bounds --frames: it is for looking.
const showMostFrames = 10_000

// streamsFlags are the flags of `linerate streams`.
type streamsFlags struct {
	frames    int
	only      string
	hex, json bool
}

func streamsFlagSet() (*pflag.FlagSet, *streamsFlags) {
	f := &streamsFlags{}
	flags := newFlags("streams")
	flags.IntVar(&f.frames, "frames", 3, "frames of each stream")
	flags.StringVar(&f.only, "stream", "", "only the stream of this name")
	flags.BoolVar(&f.hex, "hex", false, "print the bytes as well")
	flags.BoolVar(&f.json, "json", false, "print one JSON document")
	return flags, f
}

func runStreams(_ context.Context, stdout, _ io.Writer, args []string) error {
	flags, f := streamsFlagSet()
	if err := parse(stdout, flags, args); err != nil {
		return err
	}
	switch {
	case flags.Arg(0) == "schema" && flags.NArg() == 1:
		return written(stdout.Write(stream.Schema()))
	case flags.Arg(0) == "show" && flags.NArg() == 2:
		return f.show(stdout, flags.Arg(1))
	case flags.Arg(0) == "show":
		return &usageError{"streams show needs one file", "linerate streams show FILE"}
	}
	return &usageError{fmt.Sprintf("streams %q: want show or schema", flags.Arg(0)), "linerate help streams"}
}

func written(_ int, err error) error {
	if err != nil {
		return &unwrittenError{err}
	}
	return nil
}

// streamsDocument is what --json prints. Keys are a contract: add, never rename.
type streamsDocument struct {
	Schema  string           `json:"schema"`
	File    string           `json:"file"`
	Streams []streamDocument `json:"streams"`
}

type streamDocument struct {
	ID       int             `json:"id"`
	Name     string          `json:"name"`
	Stack    string          `json:"stack"`
	Rate     string          `json:"rate"`
	Mean     float64         `json:"mean_frame_bytes"`
	Untagged *string         `json:"untagged_because"` // null where the frames carry the tag
	Frames   []frameDocument `json:"frames"`
}

type frameDocument struct {
	Index  int             `json:"index"`
	Frame  int             `json:"frame_bytes"`
	Layers []layerDocument `json:"layers"`
	Hex    string          `json:"hex"`
}

type layerDocument struct {
	Layer  string            `json:"layer"`
	Fields map[string]string `json:"fields"`
	text   string
}

// show reads the file and prints the first frames of its streams.
func (f *streamsFlags) show(stdout io.Writer, path string) error {
	if f.frames < 1 || f.frames > showMostFrames {
		return &usageError{fmt.Sprintf("--frames %d: want 1 to %d", f.frames, showMostFrames), "--frames 3"}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, cause(err))
	}
	file, err := stream.Parse(path, text)
	if err != nil {
		return err
	}
	doc := streamsDocument{Schema: "linerate.streams/1", File: path}
	for _, s := range file.Streams {
		if f.only == "" || f.only == s.Name {
			doc.Streams = append(doc.Streams, f.decode(s))
		}
	}
	if len(doc.Streams) == 0 {
		return &usageError{fmt.Sprintf("--stream %s: %s has no such stream", f.only, path), "linerate streams show " + path}
	}
	if f.json {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		return written(0, enc.Encode(doc))
	}
	return written(io.WriteString(stdout, f.text(doc)))
}

// decode builds the first frames of a stream and reads them back.
func (f *streamsFlags) decode(s *stream.Stream) streamDocument {
	doc := streamDocument{ID: s.ID, Name: s.Name, Stack: s.Stack(), Rate: s.Rate.String(), Mean: s.MeanFrame()}
	if why := s.Untagged(); why != "" {
		doc.Untagged = &why
	}
	b := stream.NewBuilder(s, stream.Config{})
	buf := make([]byte, b.MaxLen())
	frames := f.frames
	if s.Count > 0 {
		frames = int(min(uint64(frames), s.Count))
	}
	for k := range frames {
		n := b.Build(buf, uint64(k), uint64(k), 0)
		one := frameDocument{Index: k, Frame: int(n.Frame()), Hex: hex.EncodeToString(buf[:n])}
		for _, part := range b.Decode(buf[:n]) {
			layer := layerDocument{Layer: part.Layer, Fields: map[string]string{}, text: part.String()}
			for _, field := range part.Fields {
				layer.Fields[field.Name] = field.Value
			}
			one.Layers = append(one.Layers, layer)
		}
		doc.Frames = append(doc.Frames, one)
	}
	return doc
}

// text prints the document for people.
func (f *streamsFlags) text(doc streamsDocument) string {
	var b strings.Builder
	for i, s := range doc.Streams {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "stream %d %s: %s, mean frame %.4g B, rate %s\n", s.ID, s.Name, s.Stack, s.Mean, s.Rate)
		if s.Untagged != nil {
			fmt.Fprintf(&b, "  no test tag, so its frames are only counted: %s\n", *s.Untagged)
		}
		for _, one := range s.Frames {
			fmt.Fprintf(&b, "  frame %d, %d B\n", one.Index, one.Frame)
			for _, l := range one.Layers {
				fmt.Fprintf(&b, "    %s\n", l.text)
			}
			if f.hex {
				b.WriteString(dump(one.Hex))
			}
		}
	}
	return b.String()
}

// dump breaks a hexadecimal text into lines of 16 bytes with their offset.
func dump(text string) string {
	var b strings.Builder
	for at := 0; at < len(text); at += 32 {
		fmt.Fprintf(&b, "    %04x ", at/2)
		for i := at; i < min(at+32, len(text)); i += 2 {
			b.WriteString(" " + text[i:i+2])
		}
		b.WriteByte('\n')
	}
	return b.String()
}
