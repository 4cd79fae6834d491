package tidy

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// simulated are the functions of the simulator that may do what looks like deciding about a call, each with its reason.
// All others leave it to production's code: the simulator is the world, and drives what decides.
type simulated struct {
	judges  map[string]string // name a class of outcomes: what an attempt says of the service
	reads   map[string]string // read a setting of a guard's policy
	chooses map[string]string // draw one of several
}

// theWorld is what is so today. A function is named by its file and its name.
var theWorld = simulated{
	judges: map[string]string{
		"sim/engine/call.go drop":         "a copy has won, so that the others say nothing",
		"sim/engine/dial.go dialed":       "what a driver says of a connection that was refused",
		"sim/engine/dial.go dropDial":     "and of one that was too slow",
		"sim/engine/dial.go unopened":     "what the driver of a pool says of a call that got no connection",
		"sim/engine/fleetlimit.go failed": "what the driver of a shared limit says of a Redis that did not answer in time",
		"sim/engine/guards.go outcomes":   "what has no status is a failure, as adapter/abatehttp has it",
		"sim/engine/server.go drop":       "the caller has left, which a gate's driver says so",
		"sim/engine/server.go lose":       "the program ends, and its gate with it",
		"sim/engine/server.go vanish":     "the request is lost",
		"sim/engine/server.go withdraw":   "the caller has left the queue",
	},
	reads: map[string]string{
		"sim/engine/call.go hedge":           "carries out what core.Call says of copies",
		"sim/engine/checks.go ask":           "the time limit of a health check, as its driver has it",
		"sim/engine/gate.go address":         "a gate with a limit for each caller has to be told who calls",
		"sim/engine/gate.go install":         "replicas share the limit of a fleet, as through Redis",
		"sim/engine/guards.go sample":        "the picture shows tokens where there are some",
		"sim/engine/guards.go stopRetries":   "an operator reloads the policy without retries, or with them again",
		"sim/engine/guards.go renew":         "the same, of a program that restarts meanwhile",
		"sim/engine/lives.go ask":            "the time limit of a probe, which belongs to the platform",
		"sim/engine/lives.go comesUp":        "the delay of a first probe, the same",
		"sim/engine/lives.go dies":           "how long the platform waits before it starts a replica again",
		"sim/engine/topology.go newTopology": "the time that Redis has for an answer, which is the driver's",
		"sim/engine/topology.go newEdge":     "what can be prepared once: the lane of a timeout, whether copies may come",
	},
	chooses: map[string]string{
		"sim/engine/consumer.go write":    "the key of a message",
		"sim/engine/fleet.go arrival":     "which instance a request begins at",
		"sim/engine/ready.go chooseReady": "what stands between caller and replicas that come and go",
		"sim/engine/shelf.go draw":        "the key that a request is about",
		"sim/engine/server.go choose":     "what stands between caller and replicas, and knows no policy",
	},
}

// classes are the names of what an outcome says.
var classes = []string{"Success", "Failure", "Overload", "Ignored"}

// decisions finds functions of the simulator that decide about a call by themselves.
func (s simulated) decisions(t *tree) []finding {
	var found []finding
	used := map[string]bool{}
	settings := settingsOf(t)
	for _, f := range t.files {
		if f.test || !strings.HasPrefix(f.dir+"/", "sim/") {
			continue
		}
		for _, d := range f.ast.Decls {
			in := f.path
			if fn, ok := d.(*ast.FuncDecl); ok {
				in += " " + fn.Name.Name
			}
			ast.Inspect(d, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				allowed, what := s.asks(f, sel, settings)
				if what == "" {
					return true
				}
				if used[in] = true; allowed[in] == "" {
					found = append(found, finding{f.path, t.line(sel), fmt.Sprintf("%s %s: decisions about calls are "+
						"production's; ask its code, or list the function with its reason in internal/tidy/simulates_test.go", in, what)})
				}
				return true
			})
		}
	}
	for _, table := range []map[string]string{s.judges, s.reads, s.chooses} {
		found = append(found, stale("sim", table, used)...)
	}
	return found
}

// asks returns what a function does that uses sel, empty if it is nothing, and who may.
func (s simulated) asks(f *goFile, sel *ast.SelectorExpr, settings []string) (allowed map[string]string, what string) {
	name, from := sel.Sel.Name, f.packageOf(sel)
	switch {
	case (from == ours || from == ours+"/core") && slices.Contains(classes, name):
		return s.judges, "judges an attempt (" + name + ")"
	case from == "" && f.dir == "sim/engine" && slices.Contains(settings, name):
		return s.reads, "reads a setting (" + name + ")"
	case from == "" && f.dir == "sim/engine" && name == "IntN":
		return s.chooses, "chooses by chance"
	}
	return nil, ""
}

// settingsOf returns the fields of a guard's policy that decide about calls.
func settingsOf(t *tree) (names []string) {
	for _, f := range t.files {
		if f.path != "core/policy.go" && f.path != "policy/retry/policy.go" && f.path != "policy/retry/config.go" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != "Policy" && spec.Name.Name != "Config" && spec.Name.Name != "Retry" {
				return true
			}
			if fields, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range fields.Fields.List {
					for _, id := range field.Names {
						if ast.IsExported(id.Name) && field.Tag != nil && !strings.Contains(field.Tag.Value, `yaml:"-"`) {
							names = append(names, id.Name)
						}
					}
				}
			}
			return true
		})
	}
	return names
}

func TestTheSimulatorDecidesNothingAboutACall(t *testing.T) { holds(t, theWorld.decisions) }

func TestSimulatorRuleFails(t *testing.T) {
	const head = "package p\n\nimport \"" + ours + "\"\n\n"
	policy := source{"core/policy.go": "package core\n\ntype Policy struct {\n\tMaxRetries int `yaml:\"maxRetries\"`\n}\n"}
	with := func(path, text string) source {
		return source{path: text, "core/policy.go": policy["core/policy.go"]}
	}
	const judged = head + "func f() abate.Class { return abate.Failure }\n"
	provoke(t, simulated{}.decisions, []example{
		{"an outcome", "sim/engine/a.go:5: error: sim/engine/a.go f judges an attempt (Failure): decisions",
			with("sim/engine/a.go", judged)},
		{"a table of outcomes", "sim/a.go:5: error: sim/a.go judges an attempt (Overload)",
			with("sim/a.go", head+"var v = abate.Overload\n")},
		{"a setting", "sim/engine/a.go:3: error: sim/engine/a.go f reads a setting (MaxRetries)",
			with("sim/engine/a.go", "package p\n\nfunc f() int { return p.MaxRetries }\n")},
		{"a choice", "sim/engine/a.go:3: error: sim/engine/a.go f chooses by chance",
			with("sim/engine/a.go", "package p\n\nfunc f() int { return s.IntN(3) }\n")},
		{"elsewhere", "", with("proxy/a.go", judged)},
		{"in a test", "", with("sim/engine/a_test.go", judged)},
	})
	provoke(t, simulated{judges: map[string]string{"sim/engine/a.go f": "why"}}.decisions, []example{
		{"an exception", "", with("sim/engine/a.go", judged)},
		{"an exception that nobody needs", "internal/tidy", with("sim/engine/a.go", "package p\n")},
	})
}
