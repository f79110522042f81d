package stream

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"linerate/internal/wire"
)

// parser reads one file and gathers what is wrong with it.
type parser struct {
	file string
	errs Errors
}

// Parse reads a streams file; name is what its errors call it. The error is an
// Errors.
func Parse(name string, text []byte) (*File, error) {
	p := &parser{file: name}
	f := p.parse(text)
	if len(p.errs) > 0 {
		slices.SortStableFunc(p.errs, func(a, b *Error) int { return a.Line - b.Line })
		return nil, p.errs[:min(len(p.errs), maxErrors)]
	}
	return f, nil
}

func (p *parser) parse(text []byte) *File {
	switch {
	case len(text) > maxText:
		p.errs = append(p.errs, &Error{File: p.file, What: fmt.Sprintf("longer than %d bytes", maxText)})
		return nil
	case !utf8.Valid(text):
		p.errs = append(p.errs, &Error{File: p.file, What: "not UTF-8 text"})
		return nil
	}
	root, err := readYAML(text)
	if err != nil {
		p.syntax(err)
		return nil
	}
	if root == nil || len(root.Content) == 0 {
		p.errs = append(p.errs, &Error{File: p.file, Line: 1, What: "empty; a streams file has the key streams"})
		return nil
	}
	return p.document(root.Content[0])
}

// readYAML gives the tree of a text. The library answers some damaged texts
// with a panic; that is an error like any other.
func readYAML(text []byte) (root *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			root, err = nil, fmt.Errorf("cannot be read: %v", r)
		}
	}()
	root = &yaml.Node{}
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	if err := d.Decode(root); err != nil {
		if err.Error() == "EOF" {
			return nil, nil
		}
		return nil, err
	}
	var more yaml.Node
	if d.Decode(&more) == nil && len(more.Content) > 0 {
		return nil, fmt.Errorf("line %d: a second document; a file holds one", more.Line)
	}
	return root, nil
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

// syntax reports what the YAML library says, which has a line but no column.
func (p *parser) syntax(err error) {
	e := &Error{File: p.file, What: strings.TrimPrefix(err.Error(), "yaml: ")}
	if m := yamlLine.FindStringSubmatch(e.What); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		e.What = strings.Replace(e.What, m[0], "", 1)
	}
	p.errs = append(p.errs, e)
}

func (p *parser) fail(n *yaml.Node, key, format string, args ...any) {
	p.near(n, key, "", format, args...)
}

func (p *parser) near(n *yaml.Node, key, near, format string, args ...any) {
	p.errs = append(p.errs, &Error{File: p.file, Line: n.Line, Column: n.Column, Key: key,
		What: fmt.Sprintf(format, args...), Near: near})
}

// unknown reports a word that is none of the names.
func (p *parser) unknown(n *yaml.Node, key, what, got string, names []string) {
	near := nearest(got, names)
	text := fmt.Sprintf("no %s %q", what, clip(got))
	if near == "" {
		text += "; there are " + oneOf(names)
	}
	p.near(n, key, near, "%s", text)
}

// mapping calls each with every pair of a mapping; unknown and repeated keys
// are reported. It says whether n is one.
func (p *parser) mapping(n *yaml.Node, key string, names []string, each func(name string, k, v *yaml.Node)) bool {
	if n.Kind != yaml.MappingNode {
		p.fail(n, key, "%s where a mapping of %s is wanted", whatIs(n), oneOf(names))
		return false
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		name := k.Value
		switch {
		case k.Kind != yaml.ScalarNode || k.Tag != "!!str":
			p.fail(k, key, "a key is a word, not %s", whatIs(k))
		case !slices.Contains(names, name):
			p.unknown(k, key, "key", name, names)
		case seen[name] > 0:
			p.fail(k, name, "stands twice, first in line %d", seen[name])
		default:
			seen[name] = k.Line
			each(name, k, v)
		}
	}
	return true
}

// whatIs names what a node is.
func whatIs(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "a YAML alias, which is not read here,"
	case n.Tag == "!!null":
		return "nothing"
	}
	return fmt.Sprintf("%q", clip(n.Value))
}

func clip(s string) string {
	if len(s) <= maxName {
		return s
	}
	return strings.ToValidUTF8(s[:maxName], "") + "..."
}

// word reads a scalar's text.
func (p *parser) word(n *yaml.Node, key, what string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" || n.Value == "" {
		p.fail(n, key, "%s where %s is wanted", whatIs(n), what)
		return "", false
	}
	return n.Value, true
}

// whole reads a whole number from least to most, decimal or 0x.
func (p *parser) whole(n *yaml.Node, key string, least, most uint64) (uint64, bool) {
	v, ok := wholeOf(n)
	switch {
	case !ok:
		p.fail(n, key, "%s where a whole number from %d to %d is wanted", whatIs(n), least, most)
	case v < least || v > most:
		p.fail(n, key, "%s is out of range: from %d to %d", clip(n.Value), least, most)
		return 0, false
	}
	return v, ok
}

// wholeOf reads a scalar that YAML takes for a whole number. A leading 0 would
// mean octal to some and nothing to others.
func wholeOf(n *yaml.Node) (uint64, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" {
		return 0, false
	}
	text, base := n.Value, 10
	if hex, is := strings.CutPrefix(text, "0x"); is {
		text, base = hex, 16
	} else if len(text) > 1 && text[0] == '0' {
		return 0, false
	}
	v, err := strconv.ParseUint(text, base, 64)
	return v, err == nil
}

func (p *parser) truth(n *yaml.Node, key string) (yes, ok bool) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" || n.Value != "true" && n.Value != "false" {
		p.fail(n, key, "%s where true or false is wanted", whatIs(n))
		return false, false
	}
	return n.Value == "true", true
}

// duration reads "100ms"; a bare number has no unit.
func (p *parser) duration(n *yaml.Node, key string) time.Duration {
	text, ok := p.word(n, key, "a time such as 100ms")
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > maxTime {
		p.fail(n, key, "%q is no time: a number above zero with ns, us, ms, s, m or h, up to %v", clip(text), maxTime)
		return 0
	}
	return d
}

func (p *parser) rate(n *yaml.Node, key string) wire.Rate {
	text, ok := p.word(n, key, "a rate such as 10kpps")
	if !ok {
		return wire.Rate{}
	}
	r, err := wire.ParseRate(text)
	if err != nil {
		p.fail(n, key, "%v", err)
	}
	return r
}
