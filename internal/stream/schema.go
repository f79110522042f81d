package stream

import _ "embed"

//go:embed streams.schema.json
var schema []byte

// Schema is the JSON Schema of a streams file, for editors. It refuses nothing
// that Parse reads; what contradicts itself, only Parse sees.
func Schema() []byte { return append([]byte(nil), schema...) }
