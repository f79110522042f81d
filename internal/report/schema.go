package report

import (
	"embed"
	"strings"
)

// schemas holds the JSON Schemas (draft 2020-12) of the documents.
//
//go:embed schema/*.json
var schemas embed.FS

// SchemaNames lists the documents that have a schema.
func SchemaNames() []string { return []string{RunSchema, IntervalSchema, ErrorSchema, SetSchema} }

// Schema returns the JSON Schema of a document, such as "linerate.run/1"; ok is
// false when there is none.
func Schema(name string) (schema []byte, ok bool) {
	file := "schema/" + strings.ReplaceAll(name, "/", "-") + ".json"
	data, err := schemas.ReadFile(file)
	return data, err == nil
}
