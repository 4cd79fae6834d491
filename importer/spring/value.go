package spring

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// scalar reads a value. What a placeholder gives when nothing else is set ("${TRIES:3}") is assumed.
func scalar[T topology.Scalar](form *topology.Form, t *tree, parse func(string) (T, error)) topology.Value[T] {
	if t == nil || !t.set {
		return topology.Value[T]{}
	}
	word, placeholder := resolve(t.text)
	v, remarks := source.Word(word, t.here, parse)
	form.Remarks = append(form.Remarks, remarks...)
	if placeholder && v.Origin == topology.Written {
		v = topology.Assume(v.V, "nothing else is set for "+t.text)
		v.At = t.here
	}
	return v
}

// resolve puts the defaults of placeholders into a text, and reports whether there were some.
func resolve(text string) (string, bool) {
	found := false
	for range 10 {
		start := strings.LastIndex(text, "${")
		if start < 0 {
			return text, found
		}
		length := strings.IndexByte(text[start:], '}')
		if length < 0 {
			return text, found
		}
		_, byDefault, has := strings.Cut(text[start+2:start+length], ":")
		if !has {
			return text, found
		}
		text, found = text[:start]+byDefault+text[start+length+1:], true
	}
	return text, found
}

// address puts into the placeholders of an address what the workloads of the application set, what its files say, or
// else the default.
func (a *application) address(text string) string {
	const longest = 4096
	for range 10 {
		start := strings.LastIndex(text, "${")
		length := strings.IndexByte(text[max(start, 0):], '}')
		if start < 0 || length < 0 || len(text) > longest {
			break
		}
		key, value, has := strings.Cut(text[start+2:start+length], ":")
		for _, v := range []string{a.env[key], a.env[variable(key)], a.root.value(key), a.shared.value(key)} {
			if v != "" {
				value, has = v, true
				break
			}
		}
		if !has {
			break
		}
		text = text[:start] + value + text[start+length+1:]
	}
	return text
}

// variable returns the variable of the environment that sets a key: app.auth-server is APP_AUTHSERVER.
func variable(key string) string {
	return strings.ToUpper(strings.NewReplacer(".", "_", "-", "").Replace(key))
}

// duration reads a duration as Spring does: 500ms, 1s, 2m, PT1.5S, or a number of milliseconds.
func duration(word string) (time.Duration, error) {
	word = strings.TrimSpace(word)
	if upper := strings.ToUpper(word); strings.HasPrefix(upper, "P") {
		return iso(upper[1:], word)
	}
	if days, ok := strings.CutSuffix(strings.ToLower(word), "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 20); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	return source.DurationIn(time.Millisecond)(strings.ToLower(strings.ReplaceAll(word, " ", "")))
}

// iso reads what stands behind the P of a duration of ISO 8601.
func iso(rest, word string) (time.Duration, error) {
	bad := fmt.Errorf("%q is no duration such as 500ms, 1s or PT1.5S", word)
	units := map[byte]time.Duration{'D': 24 * time.Hour, 'H': time.Hour, 'M': time.Minute, 'S': time.Second}
	total, some := time.Duration(0), false
	for rest = strings.Replace(rest, "T", "", 1); rest != ""; {
		end := strings.IndexAny(rest, "DHMS")
		if end <= 0 {
			return 0, bad
		}
		n, err := strconv.ParseFloat(rest[:end], 64)
		if err != nil || !(n >= 0) || n > 1e6 {
			return 0, bad
		}
		total, rest, some = total+time.Duration(n*float64(units[rest[end]])), rest[end+1:], true
	}
	if !some {
		return 0, bad
	}
	return total, nil
}
