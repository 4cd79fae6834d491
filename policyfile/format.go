package policyfile

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/registry"
	"github.com/abate-go/abate/internal/strictyaml"
	"github.com/abate-go/abate/policy/balance"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/shed"
)

// Format writes the effective policy of a guard as Policy.Format does, with what no guard looks at off.
func Format(name string, p *abate.Policy) []byte { return (&Policy{Policy: *p}).Format(name) }

// Format writes the effective policy as YAML under its name, every default written out. Keys that are not set, and
// have no value that could be written, stand in comments, and so does why a section is off. Parse reads the text again,
// under services, to a policy that behaves the same.
func (p *Policy) Format(name string) []byte {
	w := &writer{}
	w.policy(name, "", p)
	return []byte(w.b.String())
}

// Format writes the whole file as the function Format writes each policy. Parse reads it to policies that behave the
// same.
func (f *File) Format() []byte {
	w := &writer{}
	w.policy("defaults", "", &f.Defaults)
	if len(f.Services) == 0 {
		w.line("services: {}")
	} else {
		w.line("services:")
	}
	w.indent++
	for i := range f.Services {
		s := &f.Services[i]
		w.policy(s.Name, cmp.Or(s.Preset, Calls), &s.Policy)
	}
	w.indent--
	w.line("gatewayRetries: " + strconv.FormatBool(f.GatewayRetries))
	w.line("ambiguousPaths: " + cmp.Or(f.AmbiguousPaths, Normalize))
	if len(f.Protect) > 0 {
		w.line("protect:")
		w.indent++
		for i := range f.Protect {
			w.protection(f.Protect[i].Name, &f.Protect[i].Protection)
		}
		w.indent--
	}
	if f.Outside.Enabled() {
		w.line("outside:")
		w.section(outsideShape, reflect.ValueOf(f.Outside))
	}
	if f.Redis.Enabled() {
		w.line("redis:")
		w.section(redisShape, reflect.ValueOf(f.Redis.WithDefaults()))
	}
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

// policy writes one policy; without a preset the key is left out.
func (w *writer) policy(name string, preset Preset, p *Policy) {
	full := entry{Preset: preset, Policy: *p}
	if full.RetryBudget == (budget.Config{}) {
		full.RetryBudget.Disabled = true // off; left out in a file it would be inherited
	}
	if full.OutlierDetection == (balance.Config{}) {
		full.OutlierDetection.Disabled = true
	}
	full.Policy = full.WithDefaults()
	w.inDefaults = name == "defaults" && w.indent == 0
	w.idle = map[string]bool{}
	for _, e := range fieldErrors(full.Ineffective()) {
		w.idle[e.Path] = !w.inDefaults // there it may be a part of what a service completes
	}
	w.line(strictyaml.Text(name) + ":")
	w.section(policyShape, reflect.ValueOf(full))
}

func (w *writer) protection(name string, p *Protection) {
	full := *p
	if full.Shed == (shed.Config{}) {
		full.Shed.Disabled = true // off; left out in a file it would be on
	}
	if full.OutlierDetection == (balance.Config{}) {
		full.OutlierDetection.Disabled = true
	}
	full = full.WithDefaults()
	w.inDefaults, w.idle = false, map[string]bool{}
	for _, e := range fieldErrors(full.Ineffective()) {
		w.idle[e.Path] = true
	}
	w.line(strictyaml.Text(name) + ":")
	w.section(protectShape, reflect.ValueOf(full))
}

func (w *writer) section(s *strictyaml.Shape, v reflect.Value) {
	w.indent++
	for _, f := range s.Fields {
		value := v.FieldByIndex(f.Index())
		switch {
		case w.inDefaults && s == policyShape && slices.Contains(ofOneService, f.Key): // of one service only
		case s == policyShape && f.Key == "preset" && value.IsZero():
		case f.Kind == strictyaml.Section:
			w.line(f.Key + ":" + off(f, value))
			w.section(f.Inner, value)
		case f.Kind == strictyaml.Sections:
			w.list(f, value)
		case w.idle[f.Path]:
			w.line("# " + f.Key + ": " + f.Text(value) + " has no effect")
		case f.NotEmpty != "" && value.Len() == 0, value.IsZero() && f.Kind != strictyaml.List && !f.ZeroAllowed():
			w.line("# " + f.Key + ": not set" + whenNotSet[f.Key])
		default:
			w.line(f.Key + ": " + f.Text(value))
		}
	}
	w.indent--
}

// whenNotSet is what holds while a key is not set.
var whenNotSet = map[string]string{"retryOn": " (what the adapter retries)",
	"retryMethods": " (GET, HEAD, OPTIONS, TRACE)",
	"default":      " (CRITICAL)", "addresses": " (in this process)"}

// missing is what a section that is off may lack: those of policies are in the registry.
var missing = func() map[string]string {
	all := map[string]string{"fallback": "status", "kafka": "tiers or delay", "healthCheck": "kind", "tls": "certificate",
		"authentication": "bearerTokens"}
	for _, p := range registry.Guard {
		all[p.Key] = p.Needs
	}
	for _, p := range registry.Gate {
		all[p.Key] = p.Needs
	}
	return all
}()

// off is the comment on a section that does nothing: a limit of 0 in it could be read as "nothing may pass".
func off(f *strictyaml.Field, v reflect.Value) string {
	part, ok := v.Interface().(interface{ Enabled() bool })
	disabled := v.FieldByName("Disabled")
	switch {
	case !ok || part.Enabled():
		return ""
	case disabled.IsValid() && disabled.Bool():
		return " # off: disabled"
	case missing[f.Key] != "":
		return " # off: no " + missing[f.Key]
	}
	return " # off"
}

// list writes the members of a list of mappings, each on one line.
func (w *writer) list(f *strictyaml.Field, v reflect.Value) {
	if v.Len() == 0 {
		w.line(f.Key + ": []")
		return
	}
	w.line(f.Key + ":")
	for i := range v.Len() {
		var pairs []string
		for _, inner := range f.Inner.Fields {
			if value := v.Index(i).FieldByIndex(inner.Index()); !value.IsZero() {
				pairs = append(pairs, inner.Key+": "+inner.Text(value))
			}
		}
		w.line("  - {" + strings.Join(pairs, ", ") + "}")
	}
}
