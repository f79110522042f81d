package stream

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write streams.schema.json anew")

type object map[string]any

// schemaDocument lays out the schema from the tables that the parser reads by.
func schemaDocument() object {
	text := func(pattern string) object { return object{"type": "string", "pattern": pattern} }
	whole := func(least, most uint64) object { return object{"type": "integer", "minimum": least, "maximum": most} }
	seed, every := whole(0, ^uint64(0)), whole(1, 1<<40)
	size := whole(uint64(leastRunt), uint64(maxOversize))
	time := text(`^[+]?(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`)
	hexText := text(`^[ \n]*([0-9A-Fa-f][ \n]*[0-9A-Fa-f][ \n]*)+$`)
	wrongs := object{"enum": namesOf(wrongNames)}
	defs := object{}
	stream := closed(object{
		"name":   object{"type": "string", "minLength": 1, "maxLength": 2 * maxName},
		"layers": object{"type": "array", "minItems": 1, "maxItems": maxLayers, "items": layerSchema(hexText, every, seed, defs)},
		"frame": object{"description": "bytes, FCS included", "anyOf": []any{
			object{"const": "imix"}, size, list(size, maxSizes), required(closed(object{"from": size, "to": size, "step": whole(1, uint64(maxOversize))}), "from", "to"),
			list(required(closed(object{"size": size, "weight": whole(1, 10_000)}), "size"), 64)}},
		"rate":  text(`^\s*([Mm][Aa][Xx]|[0-9]+(\.[0-9]+)?\s*([kKmMgG]?[pP][pP][sS]|[kKmMgG]?[bB][pP][sS]-[lL][12]|%))\s*$`),
		"burst": required(closed(object{"size": whole(1, 1<<32), "gap": time}), "size", "gap"),
		"count": whole(1, maxCount), "time": time, "start": time, "tag": object{"type": "boolean"}, "seed": seed,
		"payload": object{"anyOf": []any{object{"enum": []string{"zero", "inc", "random"}},
			object{"type": "object", "additionalProperties": false, "minProperties": 1, "maxProperties": 1,
				"properties": object{"hex": hexText, "random": seed}}}},
		"wrong": object{"anyOf": []any{wrongs, object{"type": "array", "minItems": 1, "uniqueItems": true, "items": wrongs}}},
	})
	stream["not"] = object{"required": []string{"count", "time"}}
	top := required(closed(object{"seed": seed, "streams": list(required(stream, "name", "layers", "frame"), MaxStreams)}), "streams")
	top["$schema"], top["title"] = "https://json-schema.org/draft/2020-12/schema", "linerate streams"
	top["$defs"] = defs
	return top
}

func closed(properties object) object {
	return object{"type": "object", "additionalProperties": false, "properties": properties}
}

func required(o object, names ...string) object { o["required"] = names; return o }

func list(items object, most int) object {
	return object{"type": "array", "minItems": 1, "maxItems": most, "items": items}
}

func layerSchema(hexText, every, seed, defs object) object {
	var names []string
	layers := object{}
	for _, l := range layerSpecs {
		if l.name == "raw" {
			layers[l.name] = hexText
			continue
		}
		names = append(names, l.name)
		fields := object{}
		for _, f := range l.fields {
			name := l.name + "." + f.name
			if f.names == nil {
				name = fmt.Sprintf("%s%d", [...]string{"number", "mac", "ipv", "ipv", "flags"}[f.kind], f.width)
			}
			defs[name] = fieldSchema(f, every, seed)
			fields[f.name] = object{"description": f.about, "$ref": "#/$defs/" + name}
		}
		if l.name == "vlan" {
			fields["tpid"] = object{"enum": []int{0x8100, 0x88a8, 0x9100}}
		}
		one := closed(fields)
		one["type"], one["description"] = []string{"object", "null"}, l.about
		layers[l.name] = one
	}
	one := closed(layers)
	one["minProperties"], one["maxProperties"] = 1, 1
	return object{"anyOf": []any{object{"enum": names}, one}}
}

func fieldSchema(f fieldSpec, every, seed object) object {
	var scalar object
	switch f.kind {
	case macAddr:
		scalar = object{"type": "string", "pattern": "^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$"}
	case ip4Addr:
		scalar = object{"type": "string", "format": "ipv4"}
	case ip6Addr:
		scalar = object{"type": "string", "format": "ipv6"}
	case flagSet:
		word := "(" + strings.Join(namesOf(f.names), "|") + ")"
		scalar = object{"type": "string", "pattern": "^" + word + `(\|` + word + ")*$"}
	default:
		scalar = object{"type": "integer", "minimum": 0, "maximum": most(f.width).lo}
		if f.names != nil {
			scalar = object{"anyOf": []any{scalar, object{"enum": namesOf(f.names)}}}
		}
	}
	step := object{"type": "integer", "minimum": 1, "maximum": uint64(1) << 63}
	values := object{"list": list(scalar, maxList), "every": every, "random": object{"type": "boolean"}, "seed": seed}
	if f.kind != flagSet {
		values["from"], values["to"], values["step"], values["count"] = scalar, scalar, step, step
	}
	varying := closed(values)
	varying["oneOf"] = []any{object{"required": []string{"list"}}, object{"required": []string{"from", "to"}}, object{"required": []string{"from", "count"}}}
	return object{"anyOf": []any{scalar, list(scalar, maxList), varying}}
}

func TestSchemaIsThatOfTheTables(t *testing.T) {
	want, err := json.MarshalIndent(schemaDocument(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("streams.schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(Schema(), want) {
		t.Error("streams.schema.json is not what the tables say: go test ./internal/stream -run Schema -update")
	}
}

// compiled is the schema, ready to judge.
func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("streams.json", value); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("streams.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// judge has the schema look at a YAML text.
func judge(s *jsonschema.Schema, text []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot be read: %v", r)
		}
	}()
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		return err
	}
	doc, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if value, err = jsonschema.UnmarshalJSON(bytes.NewReader(doc)); err != nil {
		return err
	}
	return s.Validate(value)
}

// onlyParse are faults, by a word of their message, that a schema cannot express.
var onlyParse = []string{"stands twice", "a second document", `"010"`, "wrong: [runt]", "wrong: [oversize]", "headers alone",
	"no size lies", "goes upwards", "weights add up", "cannot follow", "first layer is eth", "more than 2 VLAN", "inner stack",
	"decides it", "on end above", "lies under from", "is not random", "contradicts", "more than 2^63", "there is no", "cannot carry it",
	"a YAML alias"}

// The schema and the parser accept and refuse the same examples.
func TestSchemaAndParserAgree(t *testing.T) {
	s := compiled(t)
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := judge(s, text); err != nil {
			t.Errorf("%s: the schema refuses what the parser reads: %v", name, err)
		}
	}
	both := 0
	for _, c := range refusals {
		_, perr := Parse("f", []byte(c.text))
		switch serr := judge(s, []byte(c.text)); {
		case serr != nil:
			both++
		case perr == nil || !containsAny(perr.Error(), onlyParse):
			t.Errorf("the schema accepts what the parser refuses: %v\n%s", perr, c.text)
		}
	}
	t.Logf("%d of %d faults are refused by both", both, len(refusals))
}

func containsAny(s string, words []string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}
