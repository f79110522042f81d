package stream

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// values reads what a field holds: a value, a list, or a mapping.
func (p *parser) values(n *yaml.Node, spec fieldSpec) values {
	switch n.Kind {
	case yaml.SequenceNode:
		return p.list(n, spec.name, spec)
	case yaml.MappingNode:
		return p.varying(n, spec)
	}
	v, _ := p.value(n, spec.name, spec)
	return fixed(v)
}

func (p *parser) list(n *yaml.Node, key string, spec fieldSpec) values {
	v := fixed(u128{})
	switch {
	case n.Kind != yaml.SequenceNode:
		p.fail(n, key, "%s where a list is wanted", whatIs(n))
	case len(n.Content) == 0:
		p.fail(n, key, "the list is empty")
	case len(n.Content) > maxList:
		p.fail(n, key, "%d values: a list has at most %d", len(n.Content), maxList)
	default:
		for _, item := range n.Content {
			one, ok := p.value(item, key, spec)
			if !ok {
				break
			}
			v.list = append(v.list, one)
		}
		v.n = uint64(len(n.Content))
	}
	return v
}

var valueKeys = []string{"list", "from", "to", "step", "count", "every", "random", "seed"}

// varying reads {from, to | count, step, every, random, seed} or {list, ...}.
func (p *parser) varying(n *yaml.Node, spec fieldSpec) values {
	v, at := fixed(u128{}), map[string]*yaml.Node{}
	v.step = 1
	var to u128
	var count uint64
	failed := len(p.errs)
	p.mapping(n, spec.name, valueKeys, func(name string, k, val *yaml.Node) {
		at[name] = k
		switch name {
		case "list":
			l := p.list(val, name, spec)
			v.list, v.n = l.list, l.n
		case "from":
			v.first, _ = p.value(val, name, spec)
		case "to":
			to, _ = p.value(val, name, spec)
		case "step":
			v.step, _ = p.whole(val, name, 1, 1<<63)
		case "count":
			count, _ = p.whole(val, name, 1, 1<<63)
		case "every":
			v.every, _ = p.whole(val, name, 1, 1<<40)
		case "random":
			v.random, _ = p.truth(val, name)
		case "seed":
			v.seed, v.seeded = p.whole(val, name, 0, ^uint64(0))
		}
	})
	if len(p.errs) > failed {
		return fixed(u128{})
	}
	if at["seed"] != nil && !v.random {
		p.fail(at["seed"], "seed", "%s is not random", spec.name)
	}
	if v.list != nil {
		for _, other := range []string{"from", "to", "step", "count"} {
			if at[other] != nil {
				p.fail(at[other], other, "contradicts list")
			}
		}
		return v
	}
	p.span(n, spec, &v, at, to, count)
	return v
}

// span completes a range.
func (p *parser) span(n *yaml.Node, spec fieldSpec, v *values, at map[string]*yaml.Node, to u128, count uint64) {
	switch {
	case spec.kind == flagSet:
		p.fail(n, spec.name, "flags have no order: give a list")
	case at["from"] == nil:
		p.fail(n, spec.name, "neither from nor list")
	case at["to"] != nil && at["count"] != nil:
		p.fail(at["count"], "count", "contradicts to: give one of them")
	case at["to"] == nil && at["count"] == nil:
		p.fail(n, spec.name, "neither to nor count")
	case at["count"] != nil:
		last, ok := v.first.plus(count-1, v.step)
		if !ok || most(spec.width).less(last) {
			p.fail(at["count"], "count", "%d values from %s on end above %s", count, spec.text(v.first), spec.text(most(spec.width)))
		}
		v.n = count
	case to.less(v.first):
		p.fail(at["to"], "to", "%s lies under from, %s", spec.text(to), spec.text(v.first))
	default:
		d := to.minus(v.first)
		if d.hi != 0 || d.lo/v.step >= 1<<63 {
			p.fail(at["to"], "to", "more than 2^63 values")
			return
		}
		v.n = d.lo/v.step + 1
	}
}

// value reads one value of a field.
func (p *parser) value(n *yaml.Node, key string, spec fieldSpec) (u128, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" && n.Tag != "!!int" {
		p.fail(n, key, "%s where %s is wanted", whatIs(n), spec.wants())
		return u128{}, false
	}
	v, what := spec.read(n)
	if what != "" {
		near := ""
		if spec.names != nil {
			near = nearest(n.Value, namesOf(spec.names))
		}
		p.near(n, key, near, "%s: %s", whatIs(n), what)
		return u128{}, false
	}
	return v, true
}

// read reads one value; what is the fault, or empty.
func (s fieldSpec) read(n *yaml.Node) (v u128, what string) {
	switch s.kind {
	case macAddr:
		return parseMAC(n.Value)
	case ip4Addr, ip6Addr:
		a, err := netip.ParseAddr(n.Value)
		if err != nil || a.Zone() != "" || a.Is4() != (s.kind == ip4Addr) {
			return v, s.wants() + " is wanted"
		}
		return ofAddr(a), ""
	case flagSet:
		return s.readFlags(n.Value)
	}
	if v, ok := valueOf(s.names, n.Value); ok {
		return u128{lo: v}, ""
	}
	number, ok := wholeOf(n)
	if !ok {
		return v, s.wants() + " is wanted"
	}
	if most(s.width).lo < number {
		return v, fmt.Sprintf("the greatest is %d, %s has %d bits", most(s.width).lo, s.name, s.width)
	}
	return u128{lo: number}, ""
}

func (s fieldSpec) readFlags(text string) (v u128, what string) {
	for one := range strings.SplitSeq(text, "|") {
		bit, ok := valueOf(s.names, one)
		if !ok {
			return u128{}, s.wants() + " is wanted"
		}
		v.lo |= bit
	}
	return v, ""
}

func (s fieldSpec) wants() string {
	switch {
	case s.kind == macAddr:
		return "an address such as 02:00:00:00:00:01"
	case s.kind == ip4Addr:
		return "an IPv4 address"
	case s.kind == ip6Addr:
		return "an IPv6 address"
	case s.kind == flagSet:
		return "one or more of " + strings.Join(namesOf(s.names), "|")
	case s.names != nil:
		return "a whole number or one of " + oneOf(namesOf(s.names))
	}
	return "a whole number"
}

func parseMAC(s string) (v u128, what string) {
	const wants = "six bytes such as 02:00:00:00:00:01 are wanted"
	if len(s) != 17 {
		return v, wants
	}
	for i := range 6 {
		b, err := strconv.ParseUint(s[3*i:3*i+2], 16, 8)
		if err != nil || i < 5 && s[3*i+2] != ':' {
			return v, wants
		}
		v.lo = v.lo<<8 | b
	}
	return v, ""
}

// hexBytes reads bytes in hexadecimal; blanks do not count.
func (p *parser) hexBytes(n *yaml.Node, key string) []byte {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
		p.fail(n, key, "%s where bytes in hexadecimal are wanted, quoted", whatIs(n))
		return nil
	}
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "\n", "").Replace(n.Value))
	switch {
	case err != nil:
		p.fail(n, key, "%q: %s", clip(n.Value), strings.TrimPrefix(err.Error(), "encoding/hex: "))
	case len(b) == 0 || len(b) > maxRaw:
		p.fail(n, key, "%d bytes: from 1 to %d", len(b), maxRaw)
	}
	return b
}

func macText(v uint64) string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", byte(v>>40), byte(v>>32), byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

func hexText(v uint64) string { return fmt.Sprintf("%#04x", v) }

func decimal(v uint64) string { return strconv.FormatUint(v, 10) }

func flagsText(names []nameOf, v uint64) string {
	var on []string
	for _, n := range names {
		if n.value&v != 0 {
			on = append(on, n.name)
		}
	}
	if on == nil {
		return "none"
	}
	return strings.Join(on, "|")
}
