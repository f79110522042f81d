package stream

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mustParse reads one of the example files.
func mustParse(t testing.TB, name string) *File {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse(name, text)
	if err != nil {
		t.Fatalf("parse %s:\n%v", name, err)
	}
	return f
}

// one is a file with one stream of the given keys, which come in line 2 on.
func one(keys ...string) string {
	return "streams:\n  - name: a\n    " + strings.Join(keys, "\n    ") + "\n"
}

const (
	udp   = "layers: [eth, ipv4, udp]"
	small = "frame: 64"
)

// refusals are files and what is said of them; the file is called f.
var refusals = []struct{ text, want string }{
	{"", "f:1: empty; a streams file has the key streams"},
	{"a: [", "f:1: did not find expected node content"},
	{"- a", "f:1:1: a list where a mapping of seed, streams is wanted"},
	{"seed: 1", "f:1:1: streams: missing"},
	{"streams: []", "f:1:10: streams: a list where a list of streams is wanted"},
	{"stream: []", `f:1:1: no key "stream", did you mean "streams"?`},
	{"streams: [a]", `f:1:11: stream: "a" where a mapping of burst, count, frame, layers, name, payload, rate, seed, start, tag, time, wrong is wanted`},
	{one(udp, small) + "---\na: 1\n", "f:5: a second document; a file holds one"},
	{one(udp), "f:2:5: frame: missing"},
	{one(udp, small, "rat: 1Mpps"), `f:5:5: stream: no key "rat", did you mean "rate"?`},
	{one(udp, small, "frame: 65"), "f:5:5: frame: stands twice, first in line 4"},
	{one(udp, small) + "  - {name: a, layers: [eth], frame: 64}\n", `f:5:12: name: "a" stands twice, first in line 2`},
	{one(udp, small, "seed: 010"), `f:5:11: seed: "010" where a whole number from 0 to 18446744073709551615 is wanted`},
	{one(udp, small, "seed: 18446744073709551616"), `f:5:11: seed: "18446744073709551616" where a whole number from 0 to 18446744073709551615 is wanted`},
	{one(udp, small, "rate: 5"), "f:5:11: rate:"},
	{one(udp, small, "count: 0"), "f:5:12: count: 0 is out of range: from 1 to 1099511627776"},
	{one(udp, small, "time: 5"), `f:5:11: time: "5" where a time such as 100ms is wanted`},
	{one(udp, small, "time: 5 s"), `f:5:11: time: "5 s" is no time:`},
	{one(udp, small, "count: 5", "time: 1s"), "f:6:11: time: contradicts count: give one of them"},
	{one(udp, small, "burst: {size: 5}"), "f:5:12: burst: needs size and gap"},
	{one(udp, small, "tag: maybe"), `f:5:10: tag: "maybe" where true or false is wanted`},
	{one(udp, small, "name: &x b", "count: *x"), "f:5:5: name: stands twice"},
	{one(udp, "frame: &x 64", "count: *x"), "f:5:12: count: a YAML alias, which is not read here, where"},

	{one(udp, "frame: 17"), "f:4:12: frame: 17 is out of range: from 18 to 16384"},
	{one(udp, "frame: 63"), "f:4:12: frame: 63 bytes: the least frame has 64; wrong: [runt] sends it all the same"},
	{one(udp, "frame: 9729"), "f:4:12: frame: 9729 bytes: the longest frame has 9728; wrong: [oversize] sends it all the same"},
	{one(udp, "frame: 40", "wrong: [runt]"), "f:4:12: frame: 40 bytes: the headers alone take 46, FCS included"},
	{one(udp, "frame: []"), "f:4:12: frame: the list is empty"},
	{one(udp, "frame: {from: 100, to: 99}"), "f:4:12: frame: a range has from and to, and goes upwards"},
	{one(udp, "frame: [{size: 64}, {size: 64}]"), "f:4:25: size: 64 stands twice"},
	{one(udp, "frame: [{size: 64, weight: 9999}, {size: 65, weight: 2}]"), "f:4:12: frame: the weights add up to 10001: at most 10000"},

	{one("layers: [ipv4]", small), "f:3:14: ipv4: the first layer is eth"},
	{one("layers: [eth, upd]", small), `f:3:19: layers: no layer "upd", did you mean "udp"?`},
	{one("layers: [eth, ipv6, icmp]", small), "f:3:25: icmp: cannot follow ipv6: only icmpv6, raw, tcp, udp may"},
	{one("layers: [eth, arp, udp]", small), "f:3:24: udp: cannot follow arp: nothing does"},
	{one("layers: [eth, vlan, vlan, vlan]", small), "f:3:31: vlan: more than 2 VLAN tags"},
	{one("layers: [eth, ipv4, udp, vxlan]", small), "f:3:13: vxlan: needs an inner stack: eth follows"},
	{one("layers: [eth, {ipv4: , udp: }]", small), "f:3:19: layers: a layer is one name with its fields; begin each with a dash"},
	{one("layers: [eth: {type: 5}, ipv4]", small), "f:3:14: type: the layer that follows eth decides it"},
	{one("layers: [eth: {scr: 5}]", small), `f:3:20: eth: no key "scr", did you mean "src"?`},
	{one("layers: [eth: {src: 5}]", small), `f:3:25: src: "5": six bytes such as 02:00:00:00:00:01 are wanted`},
	{one("layers: [eth, vlan: {id: 4096}]", small), `f:3:30: id: "4096": the greatest is 4095, id has 12 bits`},
	{one("layers: [eth, vlan: {id: -1}]", small), `f:3:30: id: "-1": a whole number is wanted`},
	{one("layers: [eth, vlan: {id: []}]", small), "f:3:30: id: the list is empty"},
	{one("layers: [eth, vlan: {tpid: 5}]", small), "f:3:32: tpid: 0x0005: want 0x8100, 0x88a8 or 0x9100"},
	{one("layers: [eth, vlan: {id: {from: 4000, count: 97}}]", small), "f:3:43: count: 97 values from 4000 on end above 4095"},
	{one("layers: [eth, vlan: {id: {from: 5, to: 4}}]", small), "f:3:40: to: 4 lies under from, 5"},
	{one("layers: [eth, vlan: {id: {from: 5}}]", small), "f:3:30: id: neither to nor count"},
	{one("layers: [eth, vlan: {id: {to: 5}}]", small), "f:3:30: id: neither from nor list"},
	{one("layers: [eth, vlan: {id: {from: 5, to: 6, count: 2}}]", small), "f:3:47: count: contradicts to: give one of them"},
	{one("layers: [eth, vlan: {id: {list: [5], to: 6}}]", small), "f:3:42: to: contradicts list"},
	{one("layers: [eth, vlan: {id: {from: 5, to: 6, step: 0}}]", small), "f:3:53: step: 0 is out of range"},
	{one("layers: [eth, vlan: {id: {from: 5, to: 6, seed: 1}}]", small), "f:3:47: seed: id is not random"},
	{one("layers: [eth, ipv4: {src: \"::1\"}]", small), `f:3:31: src: "::1": an IPv4 address is wanted`},
	{one("layers: [eth, ipv6: {src: fe80::1%a}]", small), `f:3:31: src: "fe80::1%a": an IPv6 address is wanted`},
	{one("layers: [eth, ipv6: {src: {from: \"::\", to: \"ffff::\"}}]", small), "f:3:44: to: more than 2^63 values"},
	{one("layers: [eth, ipv6: {src: {from: \"ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe\", count: 3}}]", small), "f:3:81: count: 3 values from ffff:"},
	{one("layers: [eth, ipv4, tcp: {flags: sin}]", small), `f:3:38: flags: "sin": one or more of none|fin|syn|rst|psh|ack|urg|ece|cwr is wanted, did you mean "fin"?`},
	{one("layers: [eth, ipv4, tcp: {flags: {from: syn, to: ack}}]", small), "f:3:38: flags: flags have no order: give a list"},
	{one("layers: [eth, ipv4, icmp: {type: echo-replay}]", small), `did you mean "echo-reply"?`},
	{one("layers: [eth, raw]", small), "f:3:19: raw: needs its bytes:"},
	{one("layers: [eth, raw: 12]", small), `f:3:24: raw: "12" where bytes in hexadecimal are wanted, quoted`},
	{one("layers: [eth, raw: \"123\"]", small), `f:3:24: raw: "123": odd length hex string`},
	{one(udp, small, "payload: incr"), `f:5:14: payload: no payload "incr", did you mean "inc"?`},
	{one(udp, small, "payload: {hex: \"00\", random: 1}"), "f:5:14: payload: needs one of hex, random"},

	{one(udp, small, "wrong: [l3-chcksum]"), `f:5:13: wrong: no fault "l3-chcksum", did you mean "l3-checksum"?`},
	{one(udp, small, "wrong: [l3-checksum, l3-checksum]"), "f:5:26: wrong: l3-checksum stands twice"},
	{one("layers: [eth, ipv6, tcp]", "frame: 90", "wrong: [l3-checksum]"), "f:5:12: wrong: l3-checksum: there is no ipv4 layer"},
	{one("layers: [eth, ipv6, tcp]", "frame: 90", "wrong: [udp-length]"), "f:5:12: wrong: udp-length: there is no udp layer"},
	{one("layers: [eth, arp]", small, "wrong: [l4-checksum]"), "f:5:12: wrong: l4-checksum: there is no layer with one"},
	{one("layers: [eth, arp]", small, "wrong: [ip-length]"), "f:5:12: wrong: ip-length: there is no ipv4 or ipv6 layer"},
	{one(udp, small, "wrong: [runt]"), "f:5:12: wrong: runt: no size lies under 64"},
	{one(udp, small, "wrong: [oversize]"), "f:5:12: wrong: oversize: no size lies over 9728"},
	{one("layers: [eth, ipv4, tcp]", small, "tag: true"), "f:5:10: tag: the frames of this stream cannot carry it: only UDP over IPv4 or IPv6"},
	{one("layers: [eth, ipv6, udp]", "frame: 75", "tag: true"), "f:5:10: tag: the frames of this stream cannot carry it: the least frame that could has 76 bytes"},
}

// What is wrong is said with file, line, column, key, and the nearest name.
func TestRefusals(t *testing.T) {
	for _, c := range refusals {
		_, err := Parse("f", []byte(c.text))
		if err == nil {
			t.Errorf("read all the same, want %q:\n%s", c.want, c.text)
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("got  %v\nwant %s\n%s", err, c.want, c.text)
		}
		if !errors.As(err, new(Errors)) {
			t.Errorf("%T is no Errors", err)
		}
	}
}

// All that is wrong comes at once, in the order of the lines.
func TestSeveralErrors(t *testing.T) {
	_, err := Parse("f", []byte("streams:\n - {name: a, frame: 5, layers: [eht]}\n - {name: b, rate: 7}\nseeds: 1\n"))
	var all Errors
	if !errors.As(err, &all) || len(all) != 6 {
		t.Fatalf("want 6 errors: %v", err)
	}
	for i, line := range []int{2, 2, 3, 3, 3, 4} {
		if all[i].Line != line || all[i].Column == 0 {
			t.Errorf("error %d: line %d, want %d: %v", i, all[i].Line, line, all[i])
		}
	}
}

func TestTooMuch(t *testing.T) {
	for what, text := range map[string]string{
		"longer than":        strings.Repeat("#", maxText+1),
		"1001 streams":       "streams:\n" + strings.Repeat("  - {}\n", MaxStreams+1),
		"17 layers":          one("layers: ["+strings.Repeat("mpls, ", 17)+"]", small),
		"65537 values":       one("layers: [eth, vlan: {id: ["+strings.Repeat("1, ", maxList+1)+"]}]", small),
		"UTF-8":              "\xff",
		"exceeded max depth": strings.Repeat("[", 20000),
	} {
		if _, err := Parse("f", []byte(text)); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("want %q, got %v", what, err)
		}
	}
}

func TestExamplesAreRead(t *testing.T) {
	f := mustParse(t, "rates.yaml")
	if len(f.Streams) != 4 || f.Streams[1].Start.String() != "250ms" || f.Streams[1].Burst.Size != 32 ||
		f.Streams[2].Count != 1000 || f.Streams[0].Rate.String() != "1Mpps" || f.Streams[3].Tagged() || !f.Streams[0].Tagged() {
		t.Errorf("%+v", f.Streams)
	}
	if got := f.Streams[2].MeanFrame(); got != (3*64+2*512+9000)/6.0 {
		t.Errorf("mean frame %v", got)
	}
}
