package policyfile

import (
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"strings"
)

// schema is schema.json, compressed: every sidecar carries it, and it is text for people.
//
//go:embed schema.json.gz
var schema string

// Schema is the JSON Schema (draft 2020-12) of a plain policy file, made from the Go structs and their comments. It
// knows shapes, the limits of numbers, the words of enums and lists, and how durations are written; limits of durations
// (x-range), rules between fields and the form of names and addresses are Parse's alone.
func Schema() []byte {
	text, err := unpack(schema)
	if err != nil {
		panic(fmt.Sprintf("policyfile: the schema that is compiled in: %v", err)) // a test reads it
	}
	return text
}

func unpack(packed string) ([]byte, error) {
	r, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
