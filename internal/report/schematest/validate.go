// Package schematest checks documents against their JSON Schemas. Tests alone
// import it.
package schematest

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"linerate/internal/report"
)

// Validate checks one document against the schema that it names. The error says
// which one failed and where.
func Validate(document []byte) error {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(document, &head); err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	schema, err := compile(head.Schema)
	if err != nil {
		return err
	}
	// The library's own decoder keeps 64-bit numbers whole.
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return fmt.Errorf("read document %s: %w", head.Schema, err)
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("validate document %s: %w", head.Schema, err)
	}
	return nil
}

// compile builds the validator of a document's schema; formats are asserted.
func compile(name string) (*jsonschema.Schema, error) {
	source, ok := report.Schema(name)
	if !ok {
		return nil, fmt.Errorf("no schema %q", name)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(source))
	if err != nil {
		return nil, fmt.Errorf("read schema %s: %w", name, err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	if err := compiler.AddResource(name, value); err != nil {
		return nil, fmt.Errorf("add schema %s: %w", name, err)
	}
	if name == report.SetSchema { // it refers to that of the run
		if err := addRun(compiler); err != nil {
			return nil, err
		}
	}
	schema, err := compiler.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("compile schema %s: %w", name, err)
	}
	return schema, nil
}

// addRun adds the run's schema under its own identifier.
func addRun(compiler *jsonschema.Compiler) error {
	source, _ := report.Schema(report.RunSchema)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(source))
	if err != nil {
		return fmt.Errorf("read schema %s: %w", report.RunSchema, err)
	}
	if err := compiler.AddResource("urn:linerate:run:1", value); err != nil {
		return fmt.Errorf("add schema %s: %w", report.RunSchema, err)
	}
	return nil
}
