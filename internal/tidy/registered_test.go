package tidy

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// spread is in how many files a policy is known: a promise that a new one is registered in few places. No number may
// grow, and one that has shrunk has to be lowered here. Tests and the policies' own folders do not count.
type spread struct {
	imports  map[string]int // of a folder below policy
	sections map[string]int // files that take a field of this name from anything: a section of a Policy or Protection
}

// known is what is so today. Throttle shows what a policy of a guard needs: its package in core/policy.go (the
// section), core/policies.go (the state) and core/attempt.go (the decision), and its section in the first two and in
// internal/registry, and sim/remedy, which tries changes of each. What others have besides decides something: the proxy
// balances, the gates shed, consumers deliver again.
var known = spread{
	imports: map[string]int{
		"policy/balance":     9,
		"policy/breaker":     25,
		"policy/budget":      18, // with the Redis of a simulated fleet, and two that show the limits of alerts
		"policy/bulkhead":    10,
		"policy/comeback":    5,
		"policy/health":      4,
		"policy/hedge":       5,
		"policy/idempotency": 35,
		"policy/pacing":      3,
		"policy/ratelimit":   17,
		"policy/reach":       3,
		"policy/recycle":     1,
		"policy/redelivery":  39, // one is abateprom, which passes on to internal/metrics what consumers say
		"policy/retry":       16, // proxy/discovery waits by it between two looks
		"policy/shed":        28,
		"policy/throttle":    4,
	},
	sections: map[string]int{
		"Bulkhead":         13, // one of them is importer/abatefile, which says what an audit asks of a policy
		"CircuitBreaker":   25, // importer/abatefile
		"Hedge":            21,
		"Idempotency":      21,
		"Kafka":            13,
		"OutlierDetection": 7, // importer/abatefile
		"Pacing":           10,
		"RateLimit":        28,
		"RetryBudget":      19, // importer/abatefile
		"Shed":             32,
		"Throttle":         4,
	},
}

// policies finds policies that more files know than before.
func (s spread) policies(t *tree) []finding {
	imports, sections := make(map[string]sized), make(map[string]sized)
	for _, f := range t.files {
		if f.test || strings.HasPrefix(f.dir, "policy/") || others(f.dir) {
			continue
		}
		for _, spec := range f.ast.Imports {
			importPath, _ := strconv.Unquote(spec.Path.Value)
			if dir, isOurs := folder(importPath); isOurs && strings.HasPrefix(dir, "policy/") {
				imports[dir] = sized{imports[dir].n + 1, finding{path: f.path, line: t.line(spec)}}
			}
		}
		for name, at := range s.taken(f) {
			sections[name] = sized{sections[name].n + 1, finding{path: f.path, line: t.line(at)}}
		}
	}
	return slices.Concat(spreads("imported by files", s.imports, imports), spreads("read by files", s.sections, sections))
}

// others reports whether a folder is about the settings of other programs, which have hedges and budgets too.
func others(dir string) bool {
	return slices.ContainsFunc([]string{"topology", "importer", "lint", "audit", "exporter"}, func(top string) bool {
		return matches(top, dir)
	})
}

// taken returns where f first takes a field of each name of the list.
func (s spread) taken(f *goFile) map[string]ast.Node {
	first := make(map[string]ast.Node)
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && f.packageOf(sel) == "" {
			if _, listed := s.sections[sel.Sel.Name]; listed && first[sel.Sel.Name] == nil {
				first[sel.Sel.Name] = sel
			}
		}
		return true
	})
	return first
}

// spreads compares the list with what there is.
func spreads(what string, list map[string]int, sizes map[string]sized) []finding {
	found := compare("is "+what, list, sizes, 0)
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if n := sizes[name].n; n < list[name] && n*10 > list[name]*9 { // which compare lets pass
			found = append(found, finding{"internal/tidy/registered_test.go", 1, fmt.Sprintf("%s is %s: %d, %d before; "+
				"lower its number", name, what, n, list[name])})
		}
	}
	return found
}

func TestPoliciesAreKnownInFewPlaces(t *testing.T) { holds(t, known.policies) }

func TestSpreadRuleFails(t *testing.T) {
	const imported = "package p\n\nimport \"github.com/abate-go/abate/policy/x\"\n"
	const read = "package p\n\nvar v = p.X.On\n"
	provoke(t, spread{}.policies, []example{
		{"a new policy that is not listed", "core/a.go:3: error: policy/x is imported by files: 1, at most 0",
			source{"core/a.go": imported}},
		{"its own tests", "", source{"policy/x/y/a.go": imported, "core/a_test.go": imported}},
	})
	provoke(t, spread{imports: map[string]int{"policy/x": 1}, sections: map[string]int{"X": 1}}.policies, []example{
		{"as many as before", "", source{"a.go": imported, "b.go": read, "policy/x/c.go": read}},
		{"read by one more", "c.go:3: error: X is read by files: 2, at most 1",
			source{"a.go": imported, "b.go": read, "c.go": read}},
		{"a name of another package", "", source{"a.go": imported, "b.go": read,
			"c.go": "package p\n\nimport \"go/x\"\n\nvar v = x.X\n"}},
	})
	const lower = "internal/tidy/registered_test.go:1: error: policy/x is imported by files: 19, 20 before; " +
		"lower its number"
	files := source{}
	for i := range 19 {
		files[fmt.Sprintf("f%d.go", i)] = imported
	}
	provoke(t, spread{imports: map[string]int{"policy/x": 20}}.policies, []example{{"one less", lower, files}})
}
