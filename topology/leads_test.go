package topology_test

import (
	"slices"
	"testing"

	"github.com/abate-go/abate/topology"
)

// joinedCalls returns the calls of a form that was joined, with how many layers each has.
func joinedCalls(t *testing.T, f topology.Form) map[[2]string]int {
	t.Helper()
	out, _ := f.Join()
	calls := map[[2]string]int{}
	for _, c := range out.Calls {
		calls[[2]string{c.From, c.To}] = len(c.Layers)
	}
	return calls
}

// front is a service that calls another one, which two others stand behind, and what one of these calls.
func front(leads ...topology.Lead) topology.Form {
	return topology.Form{
		Services: []topology.Service{{Name: "web.shop"}, {Name: "api.shop"}, {Name: "blue.shop"}, {Name: "green.shop"}},
		Calls: []topology.Call{{From: "web.shop", To: "api.shop"}, {From: "blue.shop", To: "db.shop"},
			{From: "edge.shop", To: "api.shop", Layers: []topology.Layer{layer(topology.Gateway, "edge")}}},
		Policies: []topology.Policy{{Callees: []string{"api.shop"}, Layer: layer(topology.SidecarOut, "api")}},
		Leads:    leads}
}

func TestCallsOfANameThatLeadsElsewhereAreCallsOfWhatGetsThem(t *testing.T) {
	got := joinedCalls(t, front(topology.Lead{From: "api.shop", To: []string{"blue.shop"}}))
	if n, ok := got[[2]string{"web.shop", "blue.shop"}]; !ok || n != 1 {
		t.Errorf("web does not call blue with the layer of api: %v", got)
	}
	if _, ok := got[[2]string{"edge.shop", "blue.shop"}]; !ok || len(got) != 3 {
		t.Errorf("the gateway does not reach the pods behind api: %v", got)
	}
}

func TestARouteOfSidecarsLeadsNoGatewayElsewhere(t *testing.T) {
	got := joinedCalls(t, front(topology.Lead{From: "api.shop", To: []string{"blue.shop"}, Route: true}))
	for _, c := range [][2]string{{"web.shop", "blue.shop"}, {"edge.shop", "api.shop"}} {
		if _, ok := got[c]; !ok {
			t.Errorf("no call %v: %v", c, got)
		}
	}
}

func TestANameThatSeveralServicesShareIsAProxyInFrontOfThem(t *testing.T) {
	for _, to := range [][]string{{"blue.shop", "green.shop"}, {"api.shop", "blue.shop"}} {
		f := front(topology.Lead{From: "api.shop", To: to[:1]}, topology.Lead{From: "api.shop", To: to[1:]})
		out, _ := f.Join()
		at := slices.IndexFunc(out.Services, func(s topology.Service) bool { return s.Name == "api.shop" })
		if at < 0 || !out.Services[at].Proxy {
			t.Fatalf("%v: api is no proxy: %+v", to, out.Services)
		}
		got := joinedCalls(t, f)
		if _, ok := got[[2]string{"api.shop", "blue.shop"}]; !ok || got[[2]string{"web.shop", "api.shop"}] != 1 {
			t.Errorf("%v: %v", to, got)
		}
	}
}

func TestCallsByTwoNamesOfOneServiceStayTwoCalls(t *testing.T) {
	f := front(topology.Lead{From: "api.shop", To: []string{"blue.shop"}})
	f.Calls = append(f.Calls, topology.Call{From: "web.shop", To: "blue.shop"})
	got := joinedCalls(t, f)
	if got[[2]string{"web.shop", "api.shop"}] != 1 || len(got) != 5 {
		t.Errorf("%v", got)
	}
	out, _ := f.Join()
	for _, c := range out.Calls {
		if c.From == "api.shop" && c.PerRequest.Or(0) != 1 {
			t.Errorf("%v of the requests of api reach blue", c.PerRequest)
		}
	}
}

func TestLeadsThatGoInACircleOrNowhereChangeNothing(t *testing.T) {
	want := joinedCalls(t, front())
	for _, leads := range [][]topology.Lead{
		{{From: "api.shop", To: []string{"nobody.shop"}}},
		{{From: "nobody.shop", To: []string{"api.shop"}}},
		{{From: "api.shop", To: []string{"api.shop"}}},
		{{From: "blue.shop", To: []string{"green.shop"}}}, // it makes calls
	} {
		if got := joinedCalls(t, front(leads...)); len(got) != len(want) || got[[2]string{"web.shop", "api.shop"}] != 1 {
			t.Errorf("%v: %v; want %v", leads, got, want)
		}
	}
	there := topology.Lead{From: "api.shop", To: []string{"green.shop"}}
	back := topology.Lead{From: "green.shop", To: []string{"api.shop"}}
	if got := joinedCalls(t, front(there, back)); len(got) != len(want) {
		t.Errorf("a circle: %v", got)
	}
}

func TestNamesMayLeadToEachOtherInAnyOrder(t *testing.T) {
	first := topology.Lead{From: "api.shop", To: []string{"mid.shop"}}
	then := topology.Lead{From: "mid.shop", To: []string{"blue.shop"}}
	for _, leads := range [][]topology.Lead{{first, then}, {then, first}} {
		f := front(leads...)
		f.Services = append(f.Services, topology.Service{Name: "mid.shop"})
		got := joinedCalls(t, f)
		if n, ok := got[[2]string{"web.shop", "blue.shop"}]; !ok || n != 1 || len(got) != 3 {
			t.Errorf("%v: %v", leads, got)
		}
	}
}
