package remedy

import (
	"reflect"
	"strings"

	"github.com/abate-go/abate/internal/strictyaml"
)

// line is one key of a piece of a policy file: "services", "pay", "maxRetries". Its value is one word, or a section.
type line struct {
	list, name, key string
	word            string
	section         [][2]string // keys and values; empty with an empty word for a section without keys
}

// flow is the value on one line.
func (l *line) flow() string {
	if l.word != "" {
		return l.word
	}
	pairs := make([]string, len(l.section))
	for i, p := range l.section {
		pairs[i] = p[0] + ": " + p[1]
	}
	return "{" + strings.Join(pairs, ", ") + "}"
}

// text writes lines as YAML, those of one list and name together.
func text(lines []line) string {
	var b strings.Builder
	for _, list := range []string{"services", "protect"} {
		begun := false
		for i, l := range lines {
			if l.list != list || before(lines[:i], l.list, l.name) {
				continue
			}
			if !begun {
				b.WriteString(list + ":\n")
				begun = true
			}
			entry(&b, lines[i:], l.list, l.name)
		}
	}
	return b.String()
}

// before reports whether an entry was begun already.
func before(lines []line, list, name string) bool {
	for _, l := range lines {
		if l.list == list && l.name == name {
			return true
		}
	}
	return false
}

// entry writes all lines of one name.
func entry(b *strings.Builder, lines []line, list, name string) {
	b.WriteString("  " + strictyaml.Text(name) + ":")
	empty := true
	for _, l := range lines {
		if l.list != list || l.name != name || l.key == "" {
			continue
		}
		if empty {
			b.WriteString("\n")
			empty = false
		}
		switch {
		case l.word != "" || len(l.section) == 0:
			b.WriteString("    " + l.key + ": " + l.flow() + "\n")
		default:
			b.WriteString("    " + l.key + ":\n")
			for _, p := range l.section {
				b.WriteString("      " + p[0] + ": " + p[1] + "\n")
			}
		}
	}
	if empty {
		b.WriteString(" {}\n")
	}
}

// fields writes what is set of a section, key by key.
func fields[T any](config T) [][2]string {
	var pairs [][2]string
	v := reflect.ValueOf(config)
	for _, f := range strictyaml.ShapeOf(v.Type()).Fields {
		if value := v.FieldByIndex(f.Index()); !value.IsZero() {
			pairs = append(pairs, [2]string{f.Key, strings.ReplaceAll(f.Text(value), "µs", "us")})
		}
	}
	return pairs
}

// section is a line with what is set of a section. Where it was switched off it is switched on in words: left out, that
// would be inherited.
func section[T any](key string, config T, wasDisabled bool) line {
	pairs := fields(config)
	if wasDisabled && !(len(pairs) > 0 && pairs[0][0] == "disabled") {
		pairs = append([][2]string{{"disabled", "false"}}, pairs...)
	}
	return line{key: key, section: pairs}
}

// off is a line that switches a section off.
func off(key string) line { return line{key: key, section: [][2]string{{"disabled", "true"}}} }

// word is a line with one value.
func word(key, value string) line {
	return line{key: key, word: strings.ReplaceAll(value, "µs", "us")}
}

// said is a section as it is, for "was".
func said[T any](config T, enabled bool) string {
	if !enabled {
		return "off"
	}
	l := line{section: fields(config)}
	return l.flow()
}
