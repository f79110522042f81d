package bpf

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type matchCase struct {
	name  string
	cfg   SteerConfig
	cases []frameCase
}

// Every way to match takes its frames and leaves the others with their reason.
func TestSteerMatches(t *testing.T) {
	for _, c := range append(matchL4(t), matchL2(t)...) {
		s := newSteer(t, c.cfg)
		must(t, s.SetSocket(0, xskFD(t)))
		for _, fc := range c.cases {
			fc.name = c.name + ": " + fc.name
			checkFrame(t, s, fc, nil)
		}
	}
}

func matchL4(t *testing.T) []matchCase {
	tagged, untagged := udp4(t, longTag()), udp4(t, make([]byte, 30))
	return []matchCase{
		{"run", SteerConfig{Run: testRun}, []frameCase{
			{"own", tagged, ReasonRedirected},
			{"own short", udp4(t, padded(17, shortTag())), ReasonRedirected},
			{"other", patched(tagged, 45, 0xee), ReasonOtherRun},
			{"other in the high byte", patched(tagged, 44, 0xbf), ReasonOtherRun},
			{"other short", patched(udp4(t, shortTag()), 44, 0xee), ReasonOtherRun},
		}},
		{"ports", SteerConfig{Match: MatchPorts, Ports: []uint16{7777, 65535}}, []frameCase{
			{"untagged", untagged, ReasonRedirected},
			{"highest", patched(untagged, 36, 0xff, 0xff), ReasonRedirected},
			{"no payload", udp4(t, nil), ReasonRedirected},
			{"IPv6", udp6(t, nil), ReasonRedirected},
			{"neighbour", patched(untagged, 36, 0x1e, 0x60), ReasonNoTag},
			{"TCP", tcp(t, nil), ReasonNotUDP},
			{"first fragment", patched(untagged, 20, 0x20, 0), ReasonFragment},
		}},
		{"ports or tag", SteerConfig{Match: MatchTag | MatchPorts, Ports: []uint16{1}}, []frameCase{
			{"tagged", tagged, ReasonRedirected},
			{"port", patched(untagged, 36, 0, 1), ReasonRedirected},
			{"neither", untagged, ReasonNoTag},
		}},
	}
}

func matchL2(t *testing.T) []matchCase {
	macs := append(make([][6]byte, 15), [6]byte(dstMAC))
	return []matchCase{
		{"VLANs", SteerConfig{Match: MatchVLANs, VLANs: []uint16{7, 4095}}, []frameCase{
			{"outer", udp4(t, nil, 7, 8), ReasonRedirected},
			{"inner", udp4(t, nil, 8, 7), ReasonRedirected},
			{"highest", udp4(t, nil, 4095), ReasonRedirected},
			{"ARP inside", patched(udp4(t, nil, 7), 16, 0x08, 0x06), ReasonRedirected},
			{"other", udp4(t, nil, 8), ReasonShortPayload},
		}},
		{"MACs", SteerConfig{Match: MatchMACs, MACs: macs}, []frameCase{
			{"ours", arp(t), ReasonRedirected},
			{"other", patched(arp(t), 5, 9), ReasonNotIP},
		}},
		{"all", SteerConfig{Match: MatchAll}, []frameCase{
			{"ARP", arp(t), ReasonRedirected},
			{"bare Ethernet", arp(t)[:14], ReasonRedirected},
		}},
	}
}

func TestConfigErrors(t *testing.T) {
	for field, cfg := range map[string]SteerConfig{
		"Match":  {Match: 1 << 9},
		"Queues": {Queues: MaxQueues + 1},
		"Ports":  {Match: MatchPorts},
		"VLANs":  {Match: MatchVLANs, VLANs: []uint16{4096}},
		"MACs":   {Match: MatchMACs, MACs: make([][6]byte, 17)},
	} {
		_, err := LoadSteer(cfg)
		var config *ConfigError
		if !errors.As(err, &config) || config.Field != field {
			t.Errorf("steer %s: %v", field, err)
		}
		_, err = LoadSink(SinkConfig{Match: cfg.Match, VLANs: cfg.VLANs, MACs: cfg.MACs, Queues: cfg.Queues})
		if !errors.As(err, &config) || config.Field != field {
			t.Errorf("sink %s: %v", field, err)
		}
	}
	var config *ConfigError
	if _, err := LoadSteer(SteerConfig{VLANs: []uint16{1}}); !errors.As(err, &config) {
		t.Errorf("a list without its bit: %v", err)
	}
	if _, err := LoadTraceTargets(make([]Target, 65)); !errors.As(err, &config) {
		t.Errorf("65 targets: %v", err)
	}
}

// The knobs take the first matching frames, and nothing else.
func TestLose(t *testing.T) {
	tagged, other := udp4(t, longTag()), arp(t)
	for _, c := range []struct {
		cfg  SteerConfig
		seen uint64
	}{
		{SteerConfig{LoseBeforeSeen: 2}, 5},
		{SteerConfig{LoseAfterSeen: 2}, 7},
		{SteerConfig{LoseBeforeSeen: 1, LoseAfterSeen: 1}, 6},
	} {
		s := newSteer(t, c.cfg)
		must(t, s.SetSocket(0, xskFD(t)))
		var verdicts []uint32
		moved := counted(t, s.Counters, 0, func() {
			for _, f := range [][]byte{other, tagged, other, tagged, tagged, tagged, tagged} {
				v, _ := run(t, s.Program(), f, nil)
				verdicts = append(verdicts, v)
			}
		})
		if d := cmp.Diff([]uint32{xdpPass, xdpDrop, xdpPass, xdpDrop, xdpRedirect, xdpRedirect, xdpRedirect}, verdicts); d != "" {
			t.Errorf("%+v: verdicts (-want +got):\n%s", c.cfg, d)
		}
		want := map[Reason]uint64{ReasonSeen: c.seen, ReasonRedirected: 3, ReasonNotIP: 2}
		if d := cmp.Diff(want, moved); d != "" {
			t.Errorf("%+v: counters (-want +got):\n%s", c.cfg, d)
		}
	}
}
