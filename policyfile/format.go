package policyfile

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

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/budget"
)

// Format writes the effective policy as YAML under its name, every default written out. Keys that are not set, and
// have no value that could be written, stand in comments, and so does why a section is off. Parse reads the text again,
// under services, to a policy that behaves the same.
func Format(name string, p *abate.Policy) []byte {
	w := &writer{}
	w.policy(name, p)
	return []byte(w.b.String())
}

// Format writes the whole file as the function Format writes each policy. Parse reads it to policies that behave the same.
func (f *File) Format() []byte {
	w := &writer{}
	w.policy("defaults", &f.Defaults)
	if len(f.Services) == 0 {
		w.line("services: {}")
	} else {
		w.line("services:")
	}
	w.indent++
	for i := range f.Services {
		w.policy(f.Services[i].Name, &f.Services[i].Policy)
	}
	w.indent--
	w.line("gatewayRetries: " + strconv.FormatBool(f.GatewayRetries))
	return []byte(w.b.String())
}

type writer struct {
	b          strings.Builder
	indent     int
	inDefaults bool
	idle       map[string]bool // fields of the policy being written that have no effect
}

func (w *writer) line(s string) {
	w.b.WriteString(strings.Repeat("  ", w.indent) + s + "\n")
}

func (w *writer) policy(name string, p *abate.Policy) {
	full := *p
	if full.RetryBudget == (budget.Config{}) {
		full.RetryBudget.Disabled = true // off; left out in a file it would be inherited
	}
	full = full.WithDefaults()
	w.inDefaults = name == "defaults" && w.indent == 0
	w.idle = map[string]bool{}
	for _, e := range fieldErrors(full.Ineffective()) {
		w.idle[e.Path] = !w.inDefaults // there it may be a part of what a service completes
	}
	w.line(text(name) + ":")
	w.section(policyShape, reflect.ValueOf(full))
}

func (w *writer) section(s *shape, v reflect.Value) {
	w.indent++
	for _, f := range s.fields {
		value := v.FieldByIndex(f.index)
		switch {
		case w.inDefaults && s == policyShape && (f.key == "upstreams" || f.key == "routes"): // of one service only
		case f.kind == section:
			w.line(f.key + ":" + off(f, value))
			w.section(f.inner, value)
		case f.kind == sections:
			w.list(f, value)
		case w.idle[f.path]:
			w.line("# " + f.key + ": " + f.text(value) + " has no effect")
		case f.emptyMeansDefault() && value.Len() == 0:
			w.line("# " + f.key + ": not set (" + withoutList[f.key] + ")")
		case value.IsZero() && f.kind != words && !f.zeroAllowed():
			w.line("# " + f.key + ": not set")
		default:
			w.line(f.key + ": " + f.text(value))
		}
	}
	w.indent--
}

// withoutList is what holds when a list is not set.
var withoutList = map[string]string{"retryOn": "what the adapter retries", "retryMethods": "GET, HEAD, OPTIONS, TRACE"}

// missing is what a section that is off may lack.
var missing = map[string]string{"circuitBreaker": "threshold", "bulkhead": "maxConcurrentCalls", "hedge": "delay or quantile", "fallback": "status"}

// off is the comment on a section that does nothing: a limit of 0 in it could be read as "nothing may pass".
func off(f *field, v reflect.Value) string {
	part, ok := v.Interface().(interface{ Enabled() bool })
	switch {
	case !ok || part.Enabled():
		return ""
	case v.FieldByName("Disabled").Bool():
		return " # off: disabled"
	case missing[f.key] != "":
		return " # off: no " + missing[f.key]
	}
	return " # off"
}

// list writes the members of a list of mappings, each on one line.
func (w *writer) list(f *field, v reflect.Value) {
	if v.Len() == 0 {
		w.line(f.key + ": []")
		return
	}
	w.line(f.key + ":")
	for i := range v.Len() {
		var pairs []string
		for _, inner := range f.inner.fields {
			if value := v.Index(i).FieldByIndex(inner.index); !value.IsZero() {
				pairs = append(pairs, inner.key+": "+inner.text(value))
			}
		}
		w.line("  - {" + strings.Join(pairs, ", ") + "}")
	}
}

// text is a value as the file writes it.
func (f *field) text(v reflect.Value) string {
	switch f.kind {
	case words:
		members := make([]string, v.Len())
		for i := range members {
			members[i] = text(v.Index(i).String())
		}
		return "[" + strings.Join(members, ", ") + "]"
	case toggle:
		return strconv.FormatBool(v.Bool())
	case number:
		return strconv.FormatFloat(v.Float(), 'f', -1, 64)
	case whole:
		return strconv.FormatInt(v.Int(), 10)
	case duration:
		return shortDuration(time.Duration(v.Int()))
	case custom:
		if m, ok := v.Interface().(encoding.TextMarshaler); ok {
			if b, err := m.MarshalText(); err == nil {
				return string(b)
			}
		}
		return fmt.Sprint(v.Interface())
	}
	return text(v.String())
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

// text writes a string so that YAML reads it back as this string: plain where that is safe, else in double quotes,
// whose escapes are those of JSON.
func text(s string) string {
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
