package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"linerate/internal/engine"
	"linerate/internal/frame"
	"linerate/internal/stream"
	"linerate/internal/trial"
	"linerate/internal/wire"
)

// streamsOnly are flags that say what a streams file says for each stream.
const streamsOnly = "frame rate count flows vlan src-ip dst-ip src-port dst-port pcap payload-check answer"

// streamed fills in a file of streams that is sent.
func (f *trialFlags) streamed(fs *pflag.FlagSet, s *trial.Spec, tx, rx *endpoint) error {
	for name := range strings.FieldsSeq(streamsOnly) {
		if fs.Changed(name) {
			return &usageError{fmt.Sprintf("--%s does not go with --streams: the file says it for each stream", name),
				"linerate streams show " + f.streams}
		}
	}
	if name := either(f.txEngine, f.engine); engine.Name(name) != engine.XSK {
		return &usageError{fmt.Sprintf("--engine %s cannot send a file of streams", name), "--engine xsk"}
	}
	text, err := os.ReadFile(f.streams)
	if err != nil {
		return fmt.Errorf("read %s: %w", f.streams, cause(err))
	}
	file, err := stream.Parse(f.streams, text)
	if err != nil {
		return err
	}
	s.Streams = &trial.Streams{Path: f.streams, Streams: file.Streams}
	s.Rate = wire.Rate{Kind: wire.RateMax}
	if rx == nil && f.stack.dstMAC == "" {
		return &usageError{"--streams needs the address that frames go to where the file names none", "--dst-mac 02:00:00:00:00:02"}
	}
	if _, err := f.stack.macs(&s.Stream.Stack, frame.AddrRange{}, tx, rx); err != nil {
		return err
	}
	if !fs.Changed("duration") && ends(file.Streams) {
		s.Duration = 0
	}
	if rx == nil || s.Streams.Tagged() {
		return nil
	}
	return f.untagged(fs, file.Streams)
}

// ends says that every stream has an end of its own.
func ends(streams []*stream.Stream) bool {
	for _, one := range streams {
		if one.Count == 0 && one.Time == 0 {
			return false
		}
	}
	return true
}

// untagged sets a receiver up for frames that cannot all be known by a tag.
func (f *trialFlags) untagged(fs *pflag.FlagSet, streams []*stream.Stream) error {
	if !fs.Changed("steer") {
		f.steer = "all"
	}
	if !fs.Changed("action") {
		f.action = string(trial.Count)
	}
	if f.action != string(trial.Verify) {
		return nil
	}
	for _, one := range streams {
		if why := one.Untagged(); why != "" {
			return &usageError{fmt.Sprintf("stream %s carries no tag (%s): its frames can be counted, not verified", one.Name, why), "--action count"}
		}
	}
	return nil
}
