package stream

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// layers reads the stack of a stream, from the outside in.
func (p *parser) layers(n *yaml.Node) (out []layer) {
	switch {
	case n.Kind != yaml.SequenceNode || len(n.Content) == 0:
		p.fail(n, "layers", "%s where a list of layers is wanted", whatIs(n))
		return nil
	case len(n.Content) > maxLayers:
		p.fail(n, "layers", "%d layers: at most %d", len(n.Content), maxLayers)
		return nil
	}
	failed := len(p.errs)
	for _, item := range n.Content {
		l, ok := p.layer(item)
		if !ok {
			continue
		}
		out = append(out, l)
	}
	if len(p.errs) == failed {
		p.order(n, out)
	}
	if len(p.errs) == failed {
		fillIn(out)
	}
	return out
}

// layer reads one header: "udp", or a mapping with one key.
func (p *parser) layer(n *yaml.Node) (l layer, ok bool) {
	names := make([]string, len(layerSpecs))
	for i, s := range layerSpecs {
		names[i] = s.name
	}
	key, val := n, (*yaml.Node)(nil)
	switch {
	case n.Kind == yaml.MappingNode && len(n.Content) == 2:
		key, val = n.Content[0], n.Content[1]
	case n.Kind == yaml.MappingNode:
		p.fail(n, "layers", "a layer is one name with its fields; begin each with a dash")
		return l, false
	}
	name, ok := p.word(key, "layers", "the name of a layer")
	if !ok {
		return l, false
	}
	l.line, l.column = key.Line, key.Column
	if l.spec, ok = specOf(name); !ok {
		p.unknown(key, "layers", "layer", name, names)
		return l, false
	}
	l.set = make([]bool, len(l.spec.fields))
	l.values = make([]values, len(l.spec.fields))
	for i := range l.values {
		l.values[i] = fixed(u128{})
	}
	switch {
	case name == "raw" && val == nil:
		p.fail(key, name, "needs its bytes: raw: \"dead beef\"")
	case name == "raw":
		l.raw = p.hexBytes(val, name)
	case val != nil && val.Tag != "!!null":
		p.fields(&l, val)
	}
	return l, true
}

func (p *parser) fields(l *layer, n *yaml.Node) {
	var names []string
	for _, f := range l.spec.fields {
		names = append(names, f.name)
	}
	if l.spec.name == "vlan" {
		names = append(names, "tpid")
	}
	p.mapping(n, l.spec.name, names, func(name string, _, v *yaml.Node) {
		if name == "tpid" {
			l.tpid, _ = p.whole(v, name, 1, 0xffff)
			if !slices.Contains([]uint64{0, 0x8100, 0x88a8, 0x9100}, l.tpid) {
				p.fail(v, name, "%#04x: want 0x8100, 0x88a8 or 0x9100", l.tpid)
			}
			return
		}
		i := slices.Index(names, name)
		l.set[i], l.values[i] = true, p.values(v, l.spec.fields[i])
	})
}

// order checks what stands on what.
func (p *parser) order(n *yaml.Node, all []layer) {
	vlans, tunnels := 0, 0
	for i := range all {
		l := &all[i]
		at := &yaml.Node{Line: l.line, Column: l.column}
		switch {
		case i == 0 && l.spec.name != "eth":
			p.fail(at, l.spec.name, "the first layer is eth")
			return
		case i > 0 && !slices.Contains(all[i-1].spec.next, l.spec.name):
			what := "nothing does"
			if next := all[i-1].spec.next; next != nil {
				what = "only " + oneOf(next) + " may"
			}
			p.fail(at, l.spec.name, "cannot follow %s: %s", all[i-1].spec.name, what)
			return
		}
		switch l.spec.name {
		case "eth":
			vlans = 0
		case "vlan":
			vlans++
		case "vxlan":
			tunnels++
		}
		if vlans > maxVLANs {
			p.fail(at, "vlan", "more than %d VLAN tags", maxVLANs)
			return
		}
		if tunnels > 1 {
			p.fail(at, "vxlan", "a tunnel within a tunnel")
			return
		}
		p.named(at, l, i+1 < len(all) && all[i+1].spec.name != "raw")
	}
	if last := all[len(all)-1]; last.spec.name == "vxlan" {
		p.fail(n, "vxlan", "needs an inner stack: eth follows")
	}
}

// named refuses a number of the next header where the next layer decides it.
func (p *parser) named(at *yaml.Node, l *layer, decided bool) {
	for i, f := range l.spec.fields {
		if l.spec.kinds != "" && l.set[i] && decided && f.bit == l.spec.typeAt.bit {
			p.fail(at, f.name, "the layer that follows %s decides it", l.spec.name)
		}
	}
}

// fillIn gives every field that the file leaves out its default.
func fillIn(all []layer) {
	for i := range all {
		l, next := &all[i], "raw"
		if i+1 < len(all) {
			next = all[i+1].spec.name
		}
		for j, f := range l.spec.fields {
			if l.set[j] {
				continue
			}
			n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: f.def}
			v, _ := f.read(n)
			switch {
			case l.spec.kinds != "" && f.bit == l.spec.typeAt.bit:
				v.lo = nextNumber(l.spec.kinds, next, i+1 < len(all), all[min(i+1, len(all)-1)], i+2 < len(all) && all[i+2].spec.name == "vlan")
			case l.spec.name == "udp" && f.name == "dst" && next == "vxlan":
				v.lo = vxlanPort
			}
			l.values[j] = fixed(v)
		}
	}
}

// nextNumber is the EtherType or protocol of what follows.
func nextNumber(kinds, next string, follows bool, l layer, outer bool) (n uint64) {
	switch {
	case kinds == "ip":
		n, _ = valueOf(ipProtocols, next)
	case follows && next == "vlan" && l.tpid != 0:
		n = l.tpid
	case follows && next == "vlan" && outer:
		n = 0x88a8
	default:
		n, _ = valueOf(etherTypes, next)
	}
	return n
}
