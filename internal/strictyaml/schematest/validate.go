package schematest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Validate checks a YAML file against a schema, with as much of JSON Schema as our schemas use, and lists what does not
// conform. name stands in messages.
func Validate(t testing.TB, schema []byte, name string, data []byte) []string {
	t.Helper()
	var value, root any
	if err := yaml.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &value); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := json.Unmarshal(schema, &root); err != nil {
		t.Fatal(err)
	}
	v := validator{root: root.(Object)}
	v.check("", v.root, value)
	slices.Sort(v.problems)
	return v.problems
}

type validator struct {
	root     Object
	problems []string
}

func (v *validator) check(where string, s Object, value any) {
	if ref, ok := s["$ref"].(string); ok {
		v.check(where, v.root["$defs"].(Object)[path.Base(ref)].(Object), value)
	}
	if types := listOf(s["type"]); len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool {
		return isType(t, value)
	}) {
		v.problems = append(v.problems, fmt.Sprintf("%s: %v is not %v", where, value, types))
		return
	}
	if choices, ok := s["anyOf"].([]any); ok && !slices.ContainsFunc(choices, func(c any) bool {
		return v.holds(c.(Object), value)
	}) {
		v.problems = append(v.problems, fmt.Sprintf("%s: %v is none of %v", where, value, choices))
	}
	if one, ok := s["const"]; ok && fmt.Sprint(one) != fmt.Sprint(value) {
		v.problems = append(v.problems, where+": const")
	}
	switch value := value.(type) {
	case Object:
		for _, key := range listOf(s["required"]) {
			if _, ok := value[key]; !ok {
				v.problems = append(v.problems, where+": no "+key)
			}
		}
		for key, member := range value {
			v.member(where+"/"+key, key, s, member)
		}
	case []any:
		if least, ok := s["minItems"].(float64); ok && len(value) < int(least) {
			v.problems = append(v.problems, where+": empty")
		}
		if items, ok := s["items"].(Object); ok {
			for i, item := range value {
				v.check(fmt.Sprintf("%s/%d", where, i), items, item)
			}
		}
	case string:
		if p, ok := s["pattern"].(string); ok && !regexp.MustCompile(p).MatchString(value) {
			v.problems = append(v.problems, where+": pattern")
		}
		if words, ok := s["enum"].([]any); ok && !slices.Contains(words, any(value)) {
			v.problems = append(v.problems, where+": enum")
		}
	case int:
		v.limits(where, s, float64(value))
	case uint64: // above the largest int
		v.limits(where, s, float64(value))
	case float64:
		v.limits(where, s, value)
	}
}

// holds tries one of several schemas.
func (v *validator) holds(s Object, value any) bool {
	alone := validator{root: v.root}
	alone.check("", s, value)
	return len(alone.problems) == 0
}

func (v *validator) member(where, key string, s Object, value any) {
	properties, _ := s["properties"].(Object)
	known, _ := properties[key].(Object)
	others, open := s["additionalProperties"].(Object)
	switch {
	case known != nil:
		v.check(where, known, value)
	case open:
		v.check(where, others, value)
	case s["patternProperties"] != nil && strings.HasPrefix(key, "x-"):
	case s["additionalProperties"] == false:
		v.problems = append(v.problems, where+": unknown")
	}
}

func (v *validator) limits(where string, s Object, value float64) {
	low, hasLow := s["minimum"].(float64)
	high, hasHigh := s["maximum"].(float64)
	if hasLow && value < low || hasHigh && value > high {
		v.problems = append(v.problems, where+": limits")
	}
}

// listOf takes one text or a list of them.
func listOf(t any) []string {
	switch t := t.(type) {
	case string:
		return []string{t}
	case []any:
		var list []string
		for _, one := range t {
			list = append(list, one.(string))
		}
		return list
	}
	return nil
}

func isType(t string, value any) bool {
	switch value.(type) {
	case nil:
		return t == "null"
	case Object:
		return t == "object"
	case []any:
		return t == "array"
	case string:
		return t == "string"
	case bool:
		return t == "boolean"
	case int, uint64:
		return t == "integer" || t == "number"
	case float64:
		return t == "number"
	}
	return false
}
