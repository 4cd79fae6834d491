package scenario

import (
	_ "embed"
	"slices"
)

//go:embed schema.json
var schema []byte

// Schema is the JSON Schema (draft 2020-12) of a scenario file, made from the Go structs and their comments. It knows
// shapes, the limits of numbers, the words of enums, and how durations are written; limits of durations (x-range),
// rules between fields, and the words of distributions and expectations are Parse's alone.
func Schema() []byte { return slices.Clone(schema) }
