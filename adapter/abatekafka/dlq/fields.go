package dlq

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"
)

// fieldKind is what can be compared with a field.
type fieldKind int

const (
	textField fieldKind = iota
	numberField
	durationField
	timeField
	yesField
	foundField // a header or a JSON field: what it is shows only in the letter
)

// subject is the dead letter that an expression is asked about.
type subject struct {
	e      *Entry
	now    time.Time
	value  any // of its JSON
	parsed bool
}

// field is a word of the language. Either of or found is nil.
type field struct {
	name  string
	kind  fieldKind
	of    func(*subject) any
	found func(s *subject, name string) (value any, ok bool)
}

var fields = []field{
	{name: "class", kind: textField, of: func(s *subject) any { return s.e.Letter.Class }},
	{name: "message", kind: textField, of: func(s *subject) any { return s.e.Letter.Message }},
	{name: "trace", kind: textField, of: func(s *subject) any { return s.e.Letter.Trace }},
	{name: "reason", kind: textField, of: func(s *subject) any { return s.e.Letter.Reason }},
	{name: "group", kind: textField, of: func(s *subject) any { return s.e.Letter.Group }},
	{name: "topic", kind: textField, of: func(s *subject) any { return s.e.Letter.Original.Topic }},
	{name: "key", kind: textField, of: func(s *subject) any { return string(s.e.Letter.Key) }},
	{name: "value", kind: textField, of: func(s *subject) any { return string(s.e.Letter.Value) }},
	{name: "dialect", kind: textField, of: func(s *subject) any { return string(s.e.Letter.Dialect) }},
	{name: "id", kind: textField, of: func(s *subject) any { return s.e.Group }},
	{name: "failures", kind: numberField, of: func(s *subject) any { return int64(s.e.Letter.Failures) }},
	{name: "replays", kind: numberField, of: func(s *subject) any { return int64(s.e.Letter.Replays) }},
	{name: "partition", kind: numberField, of: func(s *subject) any { return int64(s.e.Letter.Original.Partition) }},
	{name: "offset", kind: numberField, of: func(s *subject) any { return s.e.Letter.Original.Offset }},
	{name: "size", kind: numberField, of: func(s *subject) any { return int64(len(s.e.Letter.Value)) }},
	{name: "at.partition", kind: numberField, of: func(s *subject) any { return int64(s.e.At.Partition) }},
	{name: "at.offset", kind: numberField, of: func(s *subject) any { return s.e.At.Offset }},
	{name: "age", kind: durationField, of: func(s *subject) any { return s.now.Sub(s.e.Written) }},
	{name: "written", kind: timeField, of: func(s *subject) any { return s.e.Written }},
	{name: "first", kind: timeField, of: func(s *subject) any { return s.e.Letter.First }},
	{name: "last", kind: timeField, of: func(s *subject) any { return s.e.Letter.Last }},
	{name: "timestamp", kind: timeField, of: func(s *subject) any { return s.e.Letter.Timestamp }},
	{name: "pointer", kind: yesField, of: func(s *subject) any { return s.e.Letter.Pointer }},
	{name: "header", kind: foundField, found: (*subject).header},
	{name: "json", kind: foundField, found: (*subject).json},
}

func fieldCalled(name string) *field {
	for i := range fields {
		if fields[i].name == name {
			return &fields[i]
		}
	}
	return nil
}

func fieldNames() (names []string) {
	for i := range fields {
		names = append(names, fields[i].name)
	}
	return names
}

// example is a comparison that fits the field.
func (f *field) example() string {
	switch f.kind {
	case textField:
		return f.name + ` == "text"`
	case numberField:
		return f.name + " > 3"
	case durationField:
		return f.name + " < 2h"
	case timeField:
		return f.name + ` > "2026-01-31T10:20:30Z"`
	case yesField:
		return f.name + " alone, or !" + f.name
	}
	return f.name + `("name") == "text"`
}

// header is the value of the last such header of the original ones.
func (s *subject) header(name string) (any, bool) {
	for i := len(s.e.Letter.Headers) - 1; i >= 0; i-- {
		if s.e.Letter.Headers[i].Key == name {
			return string(s.e.Letter.Headers[i].Value), true
		}
	}
	return nil, false
}

// json is the value at a path of the letter's value; null is none.
func (s *subject) json(path string) (any, bool) {
	if !s.parsed {
		s.parsed = true
		d := json.NewDecoder(bytes.NewReader(s.e.Letter.Value))
		d.UseNumber()
		var rest json.RawMessage
		if d.Decode(&s.value) != nil || d.Decode(&rest) != io.EOF {
			s.value = nil
		}
	}
	v := s.value
	for name := range strings.SplitSeq(path, ".") {
		switch inside := v.(type) {
		case map[string]any:
			v = inside[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(inside) {
				return nil, false
			}
			v = inside[i]
		default:
			return nil, false
		}
	}
	return v, v != nil
}
