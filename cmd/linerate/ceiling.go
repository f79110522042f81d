package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"strings"

	"github.com/spf13/pflag"

	"linerate/internal/frame"
	"linerate/internal/wire"
)

// Bounds of what one table shows.
const (
	ceilingColumns  = 8
	ceilingMaxVLANs = 2 // what internal/frame sends
	ceilingPerACK   = 2 // segments per ACK: delayed ACKs, RFC 9293, 3.8.6.3
)

// ceilingFlags are the flags of `linerate ceiling`.
type ceilingFlags struct {
	frame, speed           string
	mtu, vlans             int
	ipv6, timestamps, json bool
}

func ceilingCommand() command {
	return command{
		name: "ceiling", job: "exact arithmetic: pps, L1/L2, goodput for a frame size or MTU", synopsis: "ceiling",
		about: `What a link can carry at most, by arithmetic alone: nothing is sent.`,
		examples: []example{
			{"linerate ceiling --frame 64,1518", ""},
			{"linerate ceiling --mtu 9000 --timestamps --speed 25G", ""},
		},
		flags: func() *pflag.FlagSet { fs, _ := newCeilingFlags(); return fs },
		run:   runCeiling,
	}
}

// newCeilingFlags defines the flags of `linerate ceiling`.
func newCeilingFlags() (*pflag.FlagSet, *ceilingFlags) {
	f := &ceilingFlags{}
	fs := newFlags("ceiling")
	fs.StringVar(&f.frame, "frame", "64,1518", "frame `sizes` in bytes with FCS and tags")
	fs.IntVar(&f.mtu, "mtu", 0, "the longest frame at this MTU in `bytes`, instead of --frame")
	fs.IntVar(&f.vlans, "vlan", 0, "`number` of VLAN tags in each frame, 0 to 2")
	fs.BoolVar(&f.ipv6, "ipv6", false, "IPv6 instead of IPv4")
	fs.BoolVar(&f.timestamps, "timestamps", false, "TCP with timestamps, as Linux sends by default")
	fs.StringVar(&f.speed, "speed", "10G", "link `speed`")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	return fs, f
}

// ceilingDocument is what --json prints. Keys are a contract: add, never rename.
type ceilingDocument struct {
	Schema          string         `json:"schema"`
	SpeedBits       uint64         `json:"speed_bits_per_sec"`
	VLANs           int            `json:"vlan_tags"`
	IPv6            bool           `json:"ipv6"`
	Timestamps      bool           `json:"tcp_timestamps"`
	LeastFrame      int            `json:"least_frame_bytes"`
	LeastFrameShort int            `json:"least_frame_short_tag_bytes"`
	SegmentsPerACK  int            `json:"segments_per_ack"`
	Frames          []ceilingFrame `json:"frames"`
}

// ceilingFrame is the ceiling of one frame length. A goodput is null where the
// headers do not leave room for a single byte.
type ceilingFrame struct {
	Frame       int      `json:"frame_bytes"`
	MTU         int      `json:"mtu_bytes"`
	PPS         float64  `json:"pps"`
	FrameNs     float64  `json:"frame_ns"`
	L1          float64  `json:"l1_bits_per_sec"`
	L2          float64  `json:"l2_bits_per_sec"`
	L2NoFCS     float64  `json:"l2_without_fcs_bits_per_sec"`
	Proc        float64  `json:"proc_net_dev_bytes_per_sec"`
	UDPGoodput  *float64 `json:"udp_goodput_bits_per_sec"`
	TCPGoodput  *float64 `json:"tcp_goodput_bits_per_sec"`
	TCPBothWays *float64 `json:"tcp_goodput_both_ways_bits_per_sec"`
}

// runCeiling prints what a link can carry, by arithmetic alone.
func runCeiling(_ context.Context, stdout, _ io.Writer, args []string) error {
	fs, f := newCeilingFlags()
	if err := parse(stdout, fs, args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return &usageError{Text: fmt.Sprintf("ceiling: unexpected %q", fs.Arg(0)), Remedy: "it takes flags only"}
	}
	ceilings, err := f.ceilings(fs.Changed("frame"), fs.Changed("mtu"))
	if err != nil {
		return err
	}
	doc := newCeilingDocument(ceilings)
	if f.json {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		err = enc.Encode(doc)
	} else {
		_, err = io.WriteString(stdout, doc.text())
	}
	if err != nil {
		return fmt.Errorf("write ceiling: %w", err)
	}
	return nil
}

// ceilings computes one ceiling per frame length asked for.
func (f *ceilingFlags) ceilings(frameGiven, mtuGiven bool) ([]wire.Ceiling, error) {
	if f.vlans < 0 || f.vlans > ceilingMaxVLANs {
		return nil, &usageError{Text: fmt.Sprintf("--vlan %d: out of range", f.vlans),
			Remedy: fmt.Sprintf("it is the number of tags, 0 to %d", ceilingMaxVLANs)}
	}
	speed, err := wire.ParseSpeed(f.speed)
	if err != nil {
		return nil, ceilingUsage("--speed", err)
	}
	lengths, err := f.lengths(frameGiven, mtuGiven)
	if err != nil {
		return nil, err
	}
	var out []wire.Ceiling
	for _, l := range lengths {
		c, err := wire.NewCeiling(speed, l,
			wire.CeilingOptions{VLANs: f.vlans, IPv6: f.ipv6, Timestamps: f.timestamps})
		if err != nil {
			return nil, fmt.Errorf("ceiling: %w", err)
		}
		out = append(out, c)
	}
	return out, nil
}

// lengths returns the distinct frame lengths asked for, in rising order.
func (f *ceilingFlags) lengths(frameGiven, mtuGiven bool) ([]wire.FrameLen, error) {
	if mtuGiven {
		least, most := wire.MinFrame.MTU(f.vlans), wire.MaxFrame.MTU(f.vlans)
		switch {
		case frameGiven:
			return nil, &usageError{Text: "--frame and --mtu", Remedy: "give one of them"}
		case f.mtu < least || f.mtu > most:
			return nil, &usageError{Text: fmt.Sprintf("--mtu %d: out of range", f.mtu),
				Remedy: fmt.Sprintf("from %d to %d bytes", least, most)}
		}
		return []wire.FrameLen{wire.FrameForMTU(f.mtu, f.vlans)}, nil
	}
	sizes, err := wire.ParseSizes(f.frame)
	if err != nil {
		return nil, ceilingUsage("--frame", err)
	}
	weights := sizes.Weights()
	if len(weights) > ceilingColumns {
		return nil, &usageError{Text: fmt.Sprintf("--frame %s: %d sizes", sizes, len(weights)),
			Remedy: fmt.Sprintf("one table shows at most %d", ceilingColumns)}
	}
	lengths := make([]wire.FrameLen, len(weights))
	for i, w := range weights {
		lengths[i] = w.Frame
	}
	return lengths, nil
}

// ceilingUsage turns what wire says of a flag's value into a usage error.
func ceilingUsage(flag string, err error) error {
	var parse *wire.ParseError
	if !errors.As(err, &parse) {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return &usageError{Text: fmt.Sprintf("%s %q: %s", flag, parse.Input, parse.What), Remedy: parse.Remedy}
}

// newCeilingDocument gathers ceilings that differ in their frame length only;
// there is at least one.
func newCeilingDocument(ceilings []wire.Ceiling) ceilingDocument {
	o := ceilings[0].Options
	stack := frame.Stack{Src: netip.IPv4Unspecified(), VLANs: make([]frame.VLAN, o.VLANs)}
	if o.IPv6 {
		stack.Src = netip.IPv6Unspecified()
	}
	long, short := frame.LeastFrame(stack)
	doc := ceilingDocument{
		Schema: "linerate.ceiling/1", SpeedBits: uint64(ceilings[0].Speed),
		VLANs: o.VLANs, IPv6: o.IPv6, Timestamps: o.Timestamps,
		LeastFrame: int(long), LeastFrameShort: int(short), SegmentsPerACK: ceilingPerACK,
	}
	for _, c := range ceilings {
		doc.Frames = append(doc.Frames, ceilingFrame{
			Frame: int(c.Frame), MTU: c.Frame.MTU(o.VLANs), PPS: float64(c.PPS), FrameNs: c.FrameNs,
			L1: float64(c.L1), L2: float64(c.L2), L2NoFCS: float64(c.L2NoFCS), Proc: c.ProcBytesPerSec,
			UDPGoodput:  ifRoom(c.UDPPayload, c.UDPGoodput),
			TCPGoodput:  ifRoom(c.TCPPayload, c.TCPGoodput),
			TCPBothWays: ifRoom(c.TCPPayload, c.TCPBothWays(ceilingPerACK)),
		})
	}
	return doc
}

func ifRoom(payload int, goodput wire.BitsPerSec) *float64 {
	if payload <= 0 {
		return nil
	}
	v := float64(goodput)
	return &v
}

// ceilingRows are the lines of the table, from top to bottom.
var ceilingRows = []struct {
	name, unit string
	value      func(ceilingFrame) string
}{
	{"frame with FCS", "B", func(f ceilingFrame) string { return fmt.Sprint(f.Frame) }},
	{"MTU", "B", func(f ceilingFrame) string { return fmt.Sprint(f.MTU) }},
	{"rate", "frames/s", func(f ceilingFrame) string { return withThousands(f.PPS) }},
	{"time per frame", "ns", func(f ceilingFrame) string { return fmt.Sprintf("%.1f", f.FrameNs) }},
	{"L1", "Gbit/s", func(f ceilingFrame) string { return gigabits(&f.L1) }},
	{"L2 with FCS", "Gbit/s", func(f ceilingFrame) string { return gigabits(&f.L2) }},
	{"L2 without FCS", "Gbit/s", func(f ceilingFrame) string { return gigabits(&f.L2NoFCS) }},
	{"/proc/net/dev", "MB/s", func(f ceilingFrame) string { return fmt.Sprintf("%.4f", f.Proc/1e6) }},
	{"UDP goodput", "Gbit/s", func(f ceilingFrame) string { return gigabits(f.UDPGoodput) }},
	{"TCP goodput", "Gbit/s", func(f ceilingFrame) string { return gigabits(f.TCPGoodput) }},
	{"TCP both ways, each", "Gbit/s", func(f ceilingFrame) string { return gigabits(f.TCPBothWays) }},
}

func gigabits(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.6f", *v/1e9)
}

// withThousands prints two decimals and commas between thousands.
func withThousands(v float64) string {
	hundredths := uint64(math.Round(v * 100))
	return fmt.Sprintf("%s.%02d", wire.FormatCount(hundredths/100), hundredths%100)
}

// text prints the document as a table with one column per frame length.
func (d ceilingDocument) text() string {
	ip, tcp := "IPv4", ""
	if d.IPv6 {
		ip = "IPv6"
	}
	if d.Timestamps {
		tcp = ", TCP timestamps"
	}
	tags := [...]string{"no VLAN tag", "1 VLAN tag", "2 VLAN tags"}[d.VLANs]
	var b strings.Builder
	fmt.Fprintf(&b, "Ceiling of %s in one direction: %s, %s%s\n\n", wire.Speed(d.SpeedBits), ip, tags, tcp)
	for _, row := range ceilingRows {
		fmt.Fprintf(&b, "%-20s %-8s", row.name, row.unit)
		for _, f := range d.Frames {
			fmt.Fprintf(&b, " %14s", row.value(f))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "\nboth ways: each direction also carries the other's ACKs, one per %d segments\n", d.SegmentsPerACK)
	if d.VLANs > 0 {
		b.WriteString("/proc/net/dev: a driver that strips the tag counts 4 B less per tag\n")
	}
	fmt.Fprintf(&b, "least frame that carries the test tag: %d B (short tag: %d B)\n", d.LeastFrame, d.LeastFrameShort)
	return b.String()
}
