package topology_test

import (
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/topology"
)

// A gateway in a mesh has a sidecar, if somebody says what that does with its calls.
func TestAPolicyOfASidecarHoldsForAGatewayThatItNames(t *testing.T) {
	for _, callee := range []string{"*", "a"} {
		for caller, want := range map[string]int{"edge": 2, "*": 1} {
			joined, _ := topology.Form{
				Services: []topology.Service{{Name: "a"}, {Name: "edge"}},
				Calls: []topology.Call{{From: "edge", To: "a", Layers: []topology.Layer{{Kind: topology.Gateway,
					Product: "x"}}}},
				Policies: []topology.Policy{{Callees: []string{callee}, Callers: []string{caller},
					Layer: topology.Layer{Kind: topology.SidecarOut, Product: "mesh"}}},
			}.Join()
			if got := len(joined.Calls[0].Layers); got != want {
				t.Errorf("%s to %s: %d layers, want %d", caller, callee, got, want)
			}
		}
	}
}

func TestAPolicyForANamespaceHoldsWhereNothingElseIsSaid(t *testing.T) {
	mesh := func(kind topology.Kind, name string) topology.Layer {
		return topology.Layer{Kind: kind, Product: "mesh", Name: name}
	}
	f := topology.Form{
		Services: []topology.Service{{Name: "a.shop"}, {Name: "b.shop"}, {Name: "db.shop", Database: true},
			{Name: "far.away"}, {Name: "ingress.shop", Proxy: true},
			{Name: "edge.shop"}},
		Calls: []topology.Call{
			{From: "a.shop", To: "b.shop"},
			{From: "b.shop", To: "a.shop"},
			{From: "a.shop", To: "db.shop"},
			{From: "far.away", To: "a.shop"},
			{From: "a.shop", To: "far.away"},
			{To: "a.shop"},
			{From: "edge.shop", To: "a.shop", Layers: []topology.Layer{mesh(topology.Gateway, "route")}},
			{From: "a.shop", To: "edge.shop"},
			{From: "ingress.shop", To: "b.shop"},
		},
		Policies: []topology.Policy{
			{Callees: []string{"*"}, Callers: []string{"*.shop"}, Layer: mesh(topology.SidecarOut, "out")},
			{Callees: []string{"*.shop"}, Layer: mesh(topology.SidecarIn, "in")},
			{Callees: []string{"a"}, Namespace: "shop", Layer: mesh(topology.SidecarOut, "own")},
		},
	}
	joined, _ := f.Join()
	if len(joined.Calls) != len(f.Calls) {
		t.Fatalf("%d calls, want %d", len(joined.Calls), len(f.Calls))
	}
	for i, want := range []string{"out in", "own in", "", "own in", "out", "own in", "route in", "out", "in"} {
		var names []string
		for _, l := range joined.Calls[i].Layers {
			names = append(names, l.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s to %s has %q, want %q", f.Calls[i].From, f.Calls[i].To, got, want)
		}
	}
}

func TestAPolicyOfANamespacesCallersIsForTheirCallsOnly(t *testing.T) {
	f := topology.Form{
		Services: []topology.Service{{Name: "a.shop"}, {Name: "b.test"}, {Name: "c.shop"}},
		Calls:    []topology.Call{{From: "a.shop", To: "c.shop"}, {From: "b.test", To: "c.shop"}},
		Policies: []topology.Policy{{Callees: []string{"c.shop"}, Callers: []string{"*.shop"}, Layer: layer(topology.Client,
			"x")}},
	}
	joined, _ := f.Join()
	if a, b := len(joined.Calls[0].Layers), len(joined.Calls[1].Layers); a != 1 || b != 0 || len(joined.Calls) != 2 {
		t.Errorf("%d and %d layers of %d calls", a, b, len(joined.Calls))
	}
}

func TestAnAliasDoesNotTakeTheNameOfAnotherService(t *testing.T) {
	names := topology.NewNames([]topology.Service{{Name: "edge", Aliases: []string{"orders", "shop.example.com"}},
		{Name: "orders"}})
	for name, want := range map[string]string{"orders": "orders", "shop.example.com": "edge"} {
		if got, _ := names.Find(name, ""); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func TestTriesThatRunBesideEachOtherEndWithTheCall(t *testing.T) {
	l := repeating(3, topology.Hang)
	l.PerTry, l.Overall, l.Beside = limit(300*time.Millisecond), limit(2*time.Second), topology.Write(true,
		topology.Position{})
	got, ends := l.Longest(topology.Hang, topology.Safe)
	if n := l.Tries(topology.Hang, topology.Safe).N; n != 3 || got != 2*time.Second || !ends {
		t.Errorf("%d tries, %v, %v; Envoy made 3 and ended after 2 s", n, got, ends)
	}
}

// The sidecars of a mesh of Kubernetes stand beside pods. Where the files of the mesh leave their namespace out, it is
// not one that only others name.
func TestWhatEverySidecarDoesIsNotAddedWhereNoSidecarIs(t *testing.T) {
	out := topology.Layer{Kind: topology.SidecarOut, Product: "istio"}
	for _, c := range []struct {
		services string // what runs the caller and another one
		from     string
		want     int
	}{
		{"kubernetes kubernetes", "a", 1},
		{"compose kubernetes", "a", 0},
		{" kubernetes", "a", 1},                  // what runs it is not known
		{"kubernetes kubernetes", "a.far", 0},    // the other one is without a namespace, so that is where Istio is
		{"kubernetes compose", "a.far", 1},       // all have a namespace, so it may be this one
		{"compose+kubernetes compose", "a", 1},   // which describe one program
		{"compose+kubernetes compose", "a.x", 1}, // as do these
	} {
		first, second, _ := strings.Cut(c.services, " ")
		f := topology.Form{Services: []topology.Service{{Name: "b"}, {Name: "other", Runs: second}},
			Calls:    []topology.Call{{From: c.from, To: "b"}},
			Policies: []topology.Policy{{Callees: []string{"*"}, Callers: []string{"*."}, Layer: out}}}
		for _, runs := range strings.Split(first, "+") {
			name := c.from
			if runs == topology.RunsCompose {
				name = "a"
			}
			f.Services = append(f.Services, topology.Service{Name: name, Runs: runs})
		}
		joined, _ := f.Join()
		if got := len(joined.Calls[0].Layers); got != c.want {
			t.Errorf("%+v: %d layers, want %d", c, got, c.want)
		}
	}
}
