package policyfile

import (
	_ "embed"
	"slices"
)

//go:embed schema.json
var schema []byte

// Schema is the JSON Schema (draft 2020-12) of a plain policy file, made from the Go structs and their comments. It
// knows shapes, limits and words; rules between fields are Parse's alone.
func Schema() []byte { return slices.Clone(schema) }
