package scenario

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/internal/strictyaml"
)

// mistakes collects what is wrong with a file. What has no value because of an earlier mistake is not reported again,
// nor what depends on it.
type mistakes struct {
	*strictyaml.Positions
	failed map[string]bool // paths without a value, because of an earlier mistake
}

func newMistakes(at *strictyaml.Positions) *mistakes {
	m := &mistakes{Positions: at}
	m.noteFailed()
	return m
}

// noteFailed has to be called after more of the file was read.
func (m *mistakes) noteFailed() {
	m.failed = map[string]bool{}
	for _, path := range m.Failed() {
		m.failed[path] = true
	}
}

// broken reports whether a path, or something around it, has no value because of an earlier mistake.
func (m *mistakes) broken(path string) bool {
	for path != "" {
		if m.failed[path] {
			return true
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return false
}

// rule is one thing that may be wrong. key is where, below the path of what is looked at; needs are the other keys that
// it depends on: with a mistake in one of them nothing is known.
type rule struct {
	wrong             bool
	key, problem, fix string
	needs             []string
}

// obey reports the rules that are broken at a path.
func (m *mistakes) obey(path string, rules []rule) {
	for _, r := range rules {
		if !r.wrong || slices.ContainsFunc(append(r.needs, r.key), func(key string) bool {
			return m.broken(below(path, key))
		}) {
			continue
		}
		m.Add(below(path, r.key), r.problem, r.fix)
	}
}

// short writes 1m instead of 1m0s.
func short(d time.Duration) string {
	f := strictyaml.Field{Kind: strictyaml.Duration}
	return f.Text(reflect.ValueOf(d))
}

// below joins a path and a key, which may be empty.
func below(path, key string) string {
	switch {
	case key == "":
		return path
	case path == "":
		return key
	}
	return path + "." + key
}

const remove = "remove it"

// callsFailed reports whether calls could not be read.
func (m *mistakes) callsFailed() bool {
	for path := range m.failed {
		if strings.Contains(path, "calls") || path == "clients" || path == "services" || strings.HasPrefix(path, "variants") {
			return true
		}
	}
	return false
}

// unlimited reports whether a service has workers without number in all variants.
func (m *mistakes) unlimited(s *Scenario, service string) bool {
	is := func(x Service) bool { return x.Name == service && x.Workers > 0 }
	return !m.broken("services."+service+".workers") && !slices.ContainsFunc(s.Services, is) &&
		!slices.ContainsFunc(s.Variants, func(v Variant) bool { return slices.ContainsFunc(v.Overrides, is) })
}
