package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"linerate/internal/budget"
	"linerate/internal/engine"
	"linerate/internal/frame"
	"linerate/internal/pcap"
	"linerate/internal/trial"
	"linerate/internal/wire"
)

// pcapFlags are the captures that are sent and made.
type pcapFlags struct {
	file, speed    string
	stream         bool
	loops          uint64
	capture, write string
	foreign        string
}

// replayOnly are flags that say what the frames look like: a capture does.
const replayOnly = "frame count flows src-mac dst-mac vlan src-ip dst-ip src-port dst-port payload-check"

func (f *pcapFlags) registerTx(fs *pflag.FlagSet) {
	fs.StringVar(&f.file, "pcap", "", "send the frames of this capture (pcap or pcapng), at its own times unless --rate is given")
	fs.StringVar(&f.speed, "pcap-speed", "1x", "scale the times of the capture: 2x, 0.5x")
	fs.Uint64Var(&f.loops, "loops", 1, "send the capture this often (0: until --duration)")
	fs.BoolVar(&f.stream, "pcap-stream", false, fmt.Sprintf("read the capture while sending, instead of loading it before (%d MiB at most)", pcap.DefaultLimit>>20))
}

func (f *pcapFlags) registerRx(fs *pflag.FlagSet) {
	fs.StringVar(&f.capture, "capture", "first:1000", "with --action capture: first:N, last:N, or bad:N for corrupt, foreign and duplicate frames with the reason")
	fs.StringVar(&f.write, "write", "", "with --action capture: the pcapng file, written at the end")
}

// foreign makes a sink verify what another generator sends.
func (f *trialFlags) foreign(fs *pflag.FlagSet, s *trial.Spec) error {
	switch f.pcap.foreign {
	case "":
		return nil
	case string(frame.Pktgen):
	case "trafgen":
		return &usageError{"xdp-trafficgen puts no sequence number into its UDP frames: they can be counted, not verified",
			"--action count --steer port:1"}
	default:
		return &usageError{fmt.Sprintf("no generator %q", f.pcap.foreign), "--foreign pktgen"}
	}
	if s.Action != trial.Verify {
		return &usageError{fmt.Sprintf("--action %s looks at no sequence number", f.action), "--action verify"}
	}
	s.Foreign = frame.Pktgen
	if !fs.Changed("steer") {
		f.steer = "port:9" // pktgen's own default
	}
	return nil
}

// maxCapture bounds the memory of a capture, bytes.
const maxCapture = 1 << 30

// replayed fills in a capture that is sent.
func (f *trialFlags) replayed(fs *pflag.FlagSet, s *trial.Spec, tx, rx *endpoint) error {
	for name := range strings.FieldsSeq(replayOnly) {
		if fs.Changed(name) {
			return &usageError{fmt.Sprintf("--%s does not go with --pcap: the capture has its frames", name), "--loops N, or -t, to bound a replay"}
		}
	}
	if fs.Changed("rate") && fs.Changed("pcap-speed") {
		return &usageError{"--rate and --pcap-speed exclude each other", "one of them"}
	}
	if name := either(f.txEngine, f.engine); engine.Name(name) != engine.XSK {
		return &usageError{fmt.Sprintf("--engine %s cannot send a capture", name), "--engine xsk"}
	}
	speed, err := parseSpeed(f.pcap.speed)
	if err != nil {
		return err
	}
	r := &trial.Replay{Path: f.pcap.file, Timed: !fs.Changed("rate"), Speed: speed, Loops: f.pcap.loops, Stream: f.pcap.stream}
	if s.Rate, err = wire.ParseRate(f.rate); err != nil {
		return flagError("rate", f.rate, err)
	}
	if !r.Timed && s.Rate.Kind == wire.RateMax && !fs.Changed("max-loss") {
		s.MaxLoss, s.LossAnyByRate = budget.AnyLoss(), true
	}
	if r.Loops > 0 && !fs.Changed("duration") {
		s.Duration = 0 // the capture has an end
	}
	queues, err := parseQueues(either(f.txQueues, either(f.queues, "0")), tx.port.TxQueues)
	if err != nil {
		return err
	}
	if r.Replay, err = pcap.Load(pcap.Config{Path: r.Path, Workers: len(queues), Speed: r.Speed, Loops: r.Loops, Stream: r.Stream, Stop: f.stop}); err != nil {
		return pcapError(r.Path, err)
	}
	s.Replay = r
	if rx == nil {
		return nil
	}
	if !fs.Changed("steer") {
		f.steer = "all" // the frames have no tag to be known by
	}
	switch {
	case !fs.Changed("action"):
		f.action = string(trial.Count)
	case f.action == string(trial.Verify):
		return &usageError{"frames of a capture carry no tag: they can be counted, not verified", "--action count"}
	}
	return nil
}

// pcapError is what is wrong with a capture, in the words of the flag.
func pcapError(path string, err error) error {
	var limit *pcap.LimitError
	var bad *pcap.Error
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &limit):
		return &usageError{err.Error(), "--pcap-stream, which reads it while sending"}
	case errors.As(err, &bad):
		return &usageError{err.Error(), "a pcap or pcapng file of whole Ethernet frames"}
	}
	return fmt.Errorf("--pcap %s cannot be read: %w", path, cause(err))
}

// parseSpeed reads 2x.
func parseSpeed(s string) (float64, error) {
	number, ok := strings.CutSuffix(s, "x")
	v, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(v >= 1e-6 && v <= 1e6) {
		return 0, &usageError{fmt.Sprintf("--pcap-speed %s: want a factor with its x, from 0.000001x to 1000000x", s), "--pcap-speed 2x"}
	}
	return v, nil
}

// captured fills in what a receiver keeps.
func (f *trialFlags) captured(fs *pflag.FlagSet, s *trial.Spec) error {
	if f.action != "capture" {
		if f.pcap.write != "" || fs.Changed("capture") {
			return &usageError{fmt.Sprintf("--action %s keeps no frames", f.action), "--action capture --write FILE"}
		}
		return nil
	}
	if f.pcap.write == "" {
		return &usageError{"--action capture needs a file to write", "--write run.pcapng"}
	}
	if name := either(f.rxEngine, f.engine); engine.Name(name) != engine.XSK {
		return &usageError{fmt.Sprintf("--engine %s cannot capture", name), "--engine xsk"}
	}
	if err := checkFile("--write", f.pcap.write); err != nil {
		return err
	}
	k, err := pcap.ParseKeep(f.pcap.capture)
	if err != nil {
		return &usageError{fmt.Sprintf("--capture %v", err), "--capture first:1000"}
	}
	s.Capture, s.Action = &k, trial.Count
	if k.Mode != pcap.Bad {
		return nil
	}
	if s.Replay != nil {
		return &usageError{"frames of a capture carry no tag: none can be told bad", "--capture first:1000"}
	}
	s.Action = trial.Verify
	return nil
}

// checkCapture refuses a capture that takes too much memory; the ends are known.
func checkCapture(s *trial.Spec) error {
	if s.Capture == nil {
		return nil
	}
	per := s.Capture.Memory(len(s.Rx.Queues), s.SlotLen()) / int64(s.Capture.N)
	if most := maxCapture / per; int64(s.Capture.N) > most {
		return &usageError{fmt.Sprintf("--capture %s takes %d MiB, more than the %d it may: %d queues, frames up to %d bytes",
			s.Capture, per*int64(s.Capture.N)>>20, maxCapture>>20, len(s.Rx.Queues), s.SlotLen()),
			fmt.Sprintf("--capture %s:%d, or fewer --queues", s.Capture.Mode, most)}
	}
	return nil
}

// writeCapture writes what the receiver kept.
func writeCapture(path string, o *trial.Outcome) (err error) {
	c := o.Captured
	if c == nil {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, cause(err))
	}
	w := bufio.NewWriterSize(f, 1<<20)
	err = pcap.WriteKept(w, "linerate "+version, o.Spec.Rx.Endpoint, c.Frames, c.AddNs, trial.Comment)
	if err = firstError(err, w.Flush(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
