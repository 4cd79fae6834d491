package strictyaml

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Text is a value as the file writes it.
func (f *Field) Text(v reflect.Value) string {
	switch f.Kind {
	case List:
		members := make([]string, v.Len())
		for i := range members {
			if members[i] = f.Member.Text(v.Index(i)); f.Member.Kind == Custom {
				members[i] = Text(members[i]) // commas and brackets end a member
			}
		}
		return "[" + strings.Join(members, ", ") + "]"
	case Toggle:
		return strconv.FormatBool(v.Bool())
	case Number:
		return strconv.FormatFloat(v.Float(), 'f', -1, 64)
	case Whole:
		return fmt.Sprint(v.Interface())
	case Duration:
		return shortDuration(time.Duration(v.Int()))
	case Custom:
		if m, ok := v.Interface().(encoding.TextMarshaler); ok {
			if b, err := m.MarshalText(); err == nil {
				return string(b)
			}
		}
		return fmt.Sprint(v.Interface())
	}
	return Text(v.String())
}

// shortDuration writes 1m instead of 1m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

var (
	plainText = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$`)
	notText   = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
)

// Text writes a string so that YAML reads it back as this string: plain where that is safe, else in double quotes,
// whose escapes are those of JSON.
func Text(s string) string {
	if plainText.MatchString(s) && !slices.Contains(notText, strings.ToLower(s)) {
		return s
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return strconv.Quote(s)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
