package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
)

// decides are the folders and files of which every function is pure, besides policy/ and the state machines: what the
// simulator runs on, and what is said in so many words to do no I/O.
var decides = []string{
	"sim/engine", "sim/kernel", "sim/population", "sim/distribution", "sim/expect", "sim/figures",
	"hops", "proxy/h1", "proxy/proxyproto", "proxy/spread", "internal/pathform", "internal/exhausted", "internal/repeats",
	"adapter/abatekafka/dlq/outlook.go",
}

// pure reports whether the functions of a file only decide: they are given the time, random numbers and the
// processor's load.
func pure(f *goFile) bool {
	return inPolicy(f) || inMachine(f) || slices.Contains(decides, f.dir) || slices.Contains(decides, f.path)
}

func inPolicy(f *goFile) bool { // a suite for tests waits
	return strings.HasPrefix(f.dir, "policy/") && !strings.HasSuffix(f.dir, "/storetest")
}

// ports are the interfaces, their methods and the fields by which a decision calls a user's code, or what a
// driver hands over: what that does is its giver's affair. A decision may be told by them what it is told by
// its arguments.
var ports = map[string]string{
	"context.Context":              "the caller's: whether it has left is told, as the time is",
	"core.Observer":                "a user's, which guards tell what they did",
	"inbound.GateObserver":         "a user's, which gates tell what they did",
	"inbound.FleetLimiter.TryTake": "a user's, which has to answer at once; AskFleet, which may wait, is a driver",
	"core.Policy.Delay":            "a user's",
	"core.settings.rnd":            "the random numbers of Policy.Rand; the simulator's are seeded",
	"inbound.gateSettings.rnd":     "the random numbers of Protection.Rand; the simulator's are seeded",
	"caught.Panics.Log":            "the log, without which nobody would hear of an observer's panic",
	"core.StatusCode":              "of others' errors, by an interface without a name",
	"connfail.SQLState":            "of others' errors, by an interface without a name",
	"idempotency.Measured":         "a user's store of keys",
	"idempotency.Memory.now":       "the clock that a store of keys is made with: a Store is asked without the time",
}

// handed are the calls out of decisions that are right though they end in the world.
var handed = map[string]string{
	"core.New → caught.Log":                   "gives the log to the guard",
	"core.New → core.Guard.Update":            "New is for programs, whose guards are on our clock",
	"inbound.NewGate → caught.Log":            "gives the log to the gate",
	"inbound.NewGate → inbound.Gate.Update":   "NewGate is for programs, whose gates are on our clock",
	"core.unguarded → caught.Log":             "gives the log to a guard",
	"core.Guard.compile → chance.Source":      "gives the default to Policy.Rand",
	"core.policies.enabled → chance.Seed":     "the seed tells keys apart and decides nothing",
	"inbound.Gate.compile → chance.Source":    "gives the default to Protection.Rand",
	"inbound.Gate.compile → chance.Seed":      "the seed tells keys apart and decides nothing",
	"inbound.Gate.compile → clock.Now":        "gives the clock to the store of keys",
	"inbound.gateSettings.hash → chance.Seed": "the seed tells keys apart and decides nothing",
	"inbound.Gate.KeyDecided → clock.Now":     "for drivers: a store of keys is asked without the time",
	"inbound.Gate.keysForgotten → clock.Now":  "called by the store of keys, which is asked without the time",
	"core.ObserverFunc.Observe":               "calls a user's function",
	"inbound.GateObserverFunc.ObserveGate":    "calls a user's function",
	"core.RetryIf":                            "calls a user's functions",
}

// exceptions are what decisions may do although it reaches out of them.
type exceptions struct{ ports, handed map[string]string }

// graphs are those that have been made: two rules look at the repository's.
var graphs = make(map[*tree]*graph)

// graphOf makes the graph of a tree, whose ports are left out. used collects the names of the ports that there are.
func (e exceptions) graphOf(t *tree) (*graph, error) {
	if g := graphs[t]; g != nil {
		return g, nil
	}
	p, err := check(t)
	if err != nil {
		return nil, err
	}
	used := make(map[string]bool)
	g := connect(p, func(name string) bool {
		_, ok := e.ports[name]
		used[name] = used[name] || ok
		return ok
	})
	g.used = used
	graphs[t] = g
	return g, nil
}

// impurities finds decisions that reach the world, through whatever functions of ours.
func (e exceptions) impurities(t *tree) []finding {
	g, err := e.graphOf(t)
	if err != nil {
		return []finding{{"go.work", 1, err.Error()}}
	}
	// What is wrong with a decision is said there, not of those that call it.
	through := func(f *fn) bool { return !g.decides(f) }
	ways := g.ways(func(f *fn) bool { return f.act != "" }, through, func(call) bool { return true })
	needed := make(map[string]bool)
	allowed := func(from *fn, to string) bool {
		for _, name := range []string{outermost(from).name, outermost(from).name + " → " + to} {
			if _, ok := e.handed[name]; ok {
				needed[name] = true
				return true
			}
		}
		return false
	}
	found := append(g.unbuilt(), g.unknown(allowed)...)
	for _, f := range g.functions() {
		if !g.decides(f) {
			continue
		}
		said := make(map[*fn]bool)
		for _, c := range f.calls {
			if c.to.act == "" && (g.decides(c.to) || ways[c.to] == nil) || said[c.to] {
				continue
			}
			said[c.to] = true
			if !allowed(f, c.to.name) {
				found = append(found, g.report(f, c, ways))
			}
		}
	}
	return append(found, append(stale("port", e.ports, g.used), stale("exception", e.handed, needed)...)...)
}

// stale finds exceptions that nobody needs: they would let something else through.
func stale(kind string, table map[string]string, needed map[string]bool) []finding {
	var found []finding
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if !needed[name] {
			text := fmt.Sprintf("no decision needs the %s %q: delete it from its list", kind, name)
			found = append(found, finding{"internal/tidy/pure_test.go", 1, text})
		}
	}
	return found
}

// absent finds names in decides that no longer exist: what they stood for is decided elsewhere now, and nobody looks.
func absent(t *tree) []finding {
	var found []finding
	for _, name := range decides {
		if !slices.ContainsFunc(t.files, func(f *goFile) bool { return !f.test && (f.dir == name || f.path == name) }) {
			found = append(found, finding{"internal/tidy/pure_test.go", 1,
				name + " is on the list of what decides, and has no program: say where that is decided now"})
		}
	}
	return found
}

// functions are those of ours, in the order of the text.
func (g *graph) functions() []*fn {
	var all []*fn
	for _, f := range g.byObject {
		if f.decl != nil {
			all = append(all, f)
		}
	}
	for _, f := range g.byDecl {
		all = append(all, f)
	}
	slices.SortStableFunc(all, func(a, b *fn) int {
		if a.file != b.file {
			return strings.Compare(a.file.path, b.file.path)
		}
		return int(a.decl.Pos() - b.decl.Pos())
	})
	return all
}

// decides reports whether a function has to be pure.
func (g *graph) decides(f *fn) bool {
	return f.decl != nil && pure(f.file) && !g.door(outermost(f))
}

// door reports whether a function is for those who have no clock of their own: it reads ours, for its twin,
// and does nothing else. State is StateAt at the time that it is.
func (g *graph) door(f *fn) bool {
	d, ok := f.decl.(*ast.FuncDecl)
	if !ok || !slices.Contains(machines, f.file.dir) || len(f.calls) != 2 || len(d.Body.List) != 1 {
		return false
	}
	twin, time := f.calls[0].to, f.calls[1].to
	return twin.name == f.name+"At" && time.name == "clock.Now"
}

// ways finds, for every function that has one, the call that is its shortest way to an act of the kind. Ways
// do not go on from functions that through says no to, and follow calls that follow says yes to.
func (g *graph) ways(kind, through func(f *fn) bool, follow func(c call) bool) map[*fn]*call {
	callers := make(map[*fn][]*fn)
	var next []*fn
	for _, f := range g.functions() {
		for _, c := range f.calls {
			if !follow(c) {
				continue
			}
			if kind(c.to) && callers[c.to] == nil {
				next = append(next, c.to)
			}
			callers[c.to] = append(callers[c.to], f)
		}
	}
	ways := make(map[*fn]*call)
	for len(next) > 0 {
		to := next[0]
		next = next[1:]
		for _, f := range callers[to] {
			if ways[f] != nil {
				continue
			}
			i := slices.IndexFunc(f.calls, func(c call) bool { return c.to == to && follow(c) })
			ways[f] = &f.calls[i]
			if through(f) {
				next = append(next, f)
			}
		}
	}
	return ways
}

// unbuilt finds decisions that are made on other systems only: nobody has looked at those.
func (g *graph) unbuilt() []finding {
	var found []finding
	for _, f := range g.files {
		if !f.test && pure(f) && !slices.Contains(g.programs, f) {
			found = append(found, finding{f.path, 1,
				"a decision has to be the same everywhere, and this file is not built here: write it for all systems"})
		}
	}
	return found
}

// unknown finds decisions that call what nobody is seen to hand over.
func (g *graph) unknown(allowed func(from *fn, to string) bool) []finding {
	var found []finding
	for _, d := range g.flow.calls {
		if g.decides(d.in) && len(d.met) == 0 && !d.optional && !allowed(d.in, d.name) {
			at := g.place(d.at)
			found = append(found, finding{at.Filename, at.Line, fmt.Sprintf(
				"%s calls %s, and no program of ours says what that is: a user's has to be on a list of internal/tidy/pure_test.go",
				outermost(d.in).name, d.name)})
		}
	}
	return found
}

func (g *graph) place(at token.Pos) token.Position { return g.fset.Position(at) }

// report says how a decision reaches the world, call by call.
func (g *graph) report(f *fn, c call, ways map[*fn]*call) finding {
	at := g.place(c.at)
	way, act := g.way(f, c, ways)
	text := fmt.Sprintf("%s is banned in a decision, use %s (%s)%s", act.act, act.use, whyPure, way)
	return finding{at.Filename, at.Line, text}
}

// way writes a call down and those behind it, to an act.
func (g *graph) way(f *fn, c call, ways map[*fn]*call) (string, *fn) {
	var way strings.Builder
	for {
		at := g.place(c.at)
		fmt.Fprintf(&way, "\n\t%s:%d: %s → %s", at.Filename, at.Line, outermost(f).name, c.to.name)
		if c.to.act != "" || ways[c.to] == nil {
			return way.String(), c.to
		}
		f, c = c.to, *ways[c.to]
	}
}

func TestWhatDecidesExists(t *testing.T) { holds(t, absent) }

func TestDecisionsReachNothingButDecisions(t *testing.T) {
	holds(t, exceptions{ports, handed}.impurities)
}
