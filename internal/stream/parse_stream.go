package stream

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"linerate/internal/wire"
)

var (
	fileKeys   = []string{"seed", "streams"}
	streamKeys = []string{"name", "layers", "frame", "rate", "burst", "count", "time", "start", "payload", "wrong", "tag", "seed"}
	mixKeys    = []string{"size", "weight"}
	rangeKeys  = []string{"from", "to", "step"}
	burstKeys  = []string{"size", "gap"}
)

func (p *parser) document(n *yaml.Node) *File {
	f := &File{Seed: defaultSeed}
	var list *yaml.Node
	isMapping := p.mapping(n, "", fileKeys, func(name string, _, v *yaml.Node) {
		switch name {
		case "seed":
			f.Seed, _ = p.whole(v, name, 0, ^uint64(0))
		case "streams":
			list = v
		}
	})
	switch {
	case !isMapping:
	case list == nil:
		p.fail(n, "streams", "missing")
	case list.Kind != yaml.SequenceNode || len(list.Content) == 0:
		p.fail(list, "streams", "%s where a list of streams is wanted", whatIs(list))
	case len(list.Content) > MaxStreams:
		p.fail(list, "streams", "%d streams: a file has at most %d", len(list.Content), MaxStreams)
	default:
		p.streams(f, list)
	}
	return f
}

func (p *parser) streams(f *File, list *yaml.Node) {
	names, sizes := map[string]int{}, 0
	for i, n := range list.Content {
		if len(p.errs) >= maxErrors {
			return
		}
		s := &Stream{ID: i, Rate: wire.Rate{Kind: wire.RateMax}, seed: mix64(f.Seed + uint64(i)*0x9e3779b97f4a7c15)}
		at := p.stream(s, n)
		if name := at["name"]; name != nil && s.Name != "" {
			if names[s.Name] > 0 {
				p.fail(name, "name", "%q stands twice, first in line %d", clip(s.Name), names[s.Name])
			}
			names[s.Name] = name.Line
		}
		if sizes += len(s.sizes); sizes > maxAllSizes {
			p.fail(n, "frame", "more than %d sizes in all streams together", maxAllSizes)
			return
		}
		f.Streams = append(f.Streams, s)
	}
}

// stream reads one stream and checks it as a whole, if its parts are right.
func (p *parser) stream(s *Stream, n *yaml.Node) map[string]*yaml.Node {
	at, failed := map[string]*yaml.Node{}, len(p.errs)
	if !p.mapping(n, "stream", streamKeys, func(name string, _, v *yaml.Node) {
		at[name] = v
		p.streamKey(s, name, v)
	}) {
		return at
	}
	for _, must := range []string{"name", "layers", "frame"} {
		if at[must] == nil {
			p.fail(n, must, "missing")
		}
	}
	if len(p.errs) == failed {
		s.seedFields()
		p.check(s, n, at)
	}
	return at
}

func (p *parser) streamKey(s *Stream, name string, v *yaml.Node) {
	switch name {
	case "name":
		s.Name, _ = p.word(v, name, "a name")
		if len(s.Name) > 2*maxName {
			p.fail(v, name, "longer than %d bytes", 2*maxName)
		}
	case "layers":
		s.layers = p.layers(v)
	case "frame":
		s.sizes = p.sizes(v)
	case "rate":
		s.Rate = p.rate(v, name)
	case "burst":
		p.burst(s, v)
	case "count":
		s.Count, _ = p.whole(v, name, 1, maxCount)
	case "time":
		s.Time = p.duration(v, name)
	case "start":
		s.Start = p.duration(v, name)
	case "payload":
		s.payload = p.payload(v)
	case "wrong":
		s.wrong = p.wrongs(v)
	case "tag":
		s.tag = tagNever
		if yes, _ := p.truth(v, name); yes {
			s.tag = tagAlways
		}
	case "seed":
		s.seed, _ = p.whole(v, name, 0, ^uint64(0))
	}
}

// seedFields gives every random thing of the stream a seed of its own.
func (s *Stream) seedFields() {
	next := s.seed
	give := func(seed *uint64, given bool) {
		next = mix64(next + 0x9e3779b97f4a7c15)
		if !given {
			*seed = next
		}
	}
	give(&s.payload.seed, s.payload.seeded)
	for i := range s.layers {
		for j := range s.layers[i].values {
			v := &s.layers[i].values[j]
			give(&v.seed, v.seeded)
		}
	}
}

func (p *parser) burst(s *Stream, n *yaml.Node) {
	var size, gap bool
	p.mapping(n, "burst", burstKeys, func(name string, _, v *yaml.Node) {
		switch name {
		case "size":
			s.Burst.Size, _ = p.whole(v, name, 1, 1<<32)
			size = true
		case "gap":
			s.Burst.Gap = p.duration(v, name)
			gap = true
		}
	})
	if n.Kind == yaml.MappingNode && !(size && gap) {
		p.fail(n, "burst", "needs size and gap")
	}
}

func (p *parser) payload(n *yaml.Node) (out payload) {
	if n.Kind == yaml.MappingNode {
		names := []string{"hex", "random"}
		p.mapping(n, "payload", names, func(name string, _, v *yaml.Node) {
			switch name {
			case "hex":
				out.kind, out.hex = payloadHex, p.hexBytes(v, name)
			case "random":
				out.kind = payloadRandom
				out.seed, out.seeded = p.whole(v, name, 0, ^uint64(0))
			}
		})
		if len(n.Content) != 2 {
			p.fail(n, "payload", "needs one of hex, random")
		}
		return out
	}
	kinds := []nameOf{{"inc", uint64(payloadInc)}, {"zero", uint64(payloadZero)}, {"random", uint64(payloadRandom)}}
	if word, ok := p.word(n, "payload", "zero, inc or random"); ok {
		kind, known := valueOf(kinds, word)
		if !known {
			p.unknown(n, "payload", "payload", word, namesOf(kinds))
		}
		out.kind = payloadKind(kind)
	}
	return out
}

func (p *parser) wrongs(n *yaml.Node) (all wrong) {
	items := n.Content
	if n.Kind != yaml.SequenceNode {
		items = []*yaml.Node{n}
	} else if len(items) == 0 {
		p.fail(n, "wrong", "the list is empty")
	}
	for _, item := range items {
		word, ok := p.word(item, "wrong", "one of "+oneOf(namesOf(wrongNames)))
		if !ok {
			return all
		}
		bit, known := valueOf(wrongNames, word)
		switch {
		case !known:
			p.unknown(item, "wrong", "fault", word, namesOf(wrongNames))
		case all&wrong(bit) != 0:
			p.fail(item, "wrong", "%s stands twice", word)
		}
		all |= wrong(bit)
	}
	return all
}

func (p *parser) size(n *yaml.Node, key string) wire.FrameLen {
	v, _ := p.whole(n, key, uint64(leastRunt), uint64(maxOversize))
	return wire.FrameLen(v)
}

// sizes reads frame and lays out one cycle.
func (p *parser) sizes(n *yaml.Node) (cycle []wire.FrameLen) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Value == "imix":
		s, _ := wire.ParseSizes("imix")
		return s.Cycle()
	case n.Kind == yaml.MappingNode:
		return p.sizeRange(n)
	case n.Kind != yaml.SequenceNode:
		return []wire.FrameLen{p.size(n, "frame")}
	case len(n.Content) == 0:
		p.fail(n, "frame", "the list is empty")
	case len(n.Content) > maxSizes:
		p.fail(n, "frame", "%d sizes: a list has at most %d", len(n.Content), maxSizes)
	case n.Content[0].Kind == yaml.MappingNode:
		return p.mix(n)
	}
	for _, item := range n.Content[:min(len(n.Content), maxSizes)] {
		failed := len(p.errs)
		if cycle = append(cycle, p.size(item, "frame")); len(p.errs) > failed {
			break
		}
	}
	return cycle
}

func (p *parser) sizeRange(n *yaml.Node) (cycle []wire.FrameLen) {
	var from, to, step wire.FrameLen
	step = 1
	p.mapping(n, "frame", rangeKeys, func(name string, _, v *yaml.Node) {
		switch name {
		case "from":
			from = p.size(v, name)
		case "to":
			to = p.size(v, name)
		case "step":
			s, _ := p.whole(v, name, 1, uint64(maxOversize))
			step = wire.FrameLen(s)
		}
	})
	if from == 0 || to < from || step == 0 {
		p.fail(n, "frame", "a range has from and to, and goes upwards")
		return nil
	}
	for f := from; f <= to; f += step {
		cycle = append(cycle, f)
	}
	return cycle
}

// mix reads [{size, weight}, ...].
func (p *parser) mix(n *yaml.Node) []wire.FrameLen {
	const mostSizes, mostWeight = 64, 10_000
	if len(n.Content) > mostSizes {
		p.fail(n, "frame", "%d sizes: a mix has at most %d", len(n.Content), mostSizes)
		return nil
	}
	var sizes []wire.Size
	total := 0
	for _, item := range n.Content {
		one := wire.Size{Weight: 1}
		p.mapping(item, "frame", mixKeys, func(name string, _, v *yaml.Node) {
			switch name {
			case "size":
				one.Frame = p.size(v, name)
			case "weight":
				w, _ := p.whole(v, name, 1, mostWeight)
				one.Weight = int(w)
			}
		})
		if one.Frame == 0 {
			p.fail(item, "size", "missing")
			return nil
		}
		if slices.ContainsFunc(sizes, func(s wire.Size) bool { return s.Frame == one.Frame }) {
			p.fail(item, "size", "%d stands twice", one.Frame)
		}
		sizes = append(sizes, one)
		total += one.Weight
	}
	if total > mostWeight {
		p.fail(n, "frame", "the weights add up to %d: at most %d", total, mostWeight)
		return nil
	}
	return wire.Interleave(sizes)
}
