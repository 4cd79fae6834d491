package topology_test

import (
	"slices"
	"testing"
	"time"

	"github.com/abate-go/abate/topology"
)

func TestNamesAreFoundByTheRulesThatAreListed(t *testing.T) {
	names := topology.NewNames([]topology.Service{{Name: "orders.shop"}, {Name: "orders.test"}, {Name: "db"},
		{Name: "pay.shop", Aliases: []string{"https://payments.example.com/v1", "10.0.0.7:9000"}}})
	for _, c := range []struct {
		name, namespace, want string
		rule                  topology.Rule
	}{
		{"orders.shop", "", "orders.shop", topology.ByName},
		{"orders.shop.svc.cluster.local:8080", "", "orders.shop", topology.ByName},
		{"outbound|8080||orders.test.svc.cluster.local", "", "orders.test", topology.ByName},
		{"http://Orders.shop.svc/", "", "orders.shop", topology.ByName},
		{"orders", "test", "orders.test", topology.ByNamespace},
		{"orders", "", "", topology.Ambiguous},
		{"orders", "elsewhere", "", topology.Ambiguous},
		{"orders.elsewhere", "", "", topology.NotFound},
		{"payments.example.com", "", "pay.shop", topology.ByAlias},
		{"10.0.0.7", "", "pay.shop", topology.ByAlias},
		{"10.0.0.8:9000", "", "", topology.NotFound},
		{"pay", "", "pay.shop", topology.ByLabel},
		{"db.shop", "", "db", topology.ByLabel},
		{"pay.$(PAY_NAMESPACE).svc.$(DOMAIN)", "", "pay.shop", topology.ByLabel},
	} {
		got, rule := names.Find(c.name, c.namespace)
		if got != c.want || rule != c.rule {
			t.Errorf("%q in %q is %q by %q; want %q by %q", c.name, c.namespace, got, rule, c.want, c.rule)
		}
	}
}

func layer(kind topology.Kind, name string) topology.Layer {
	return topology.Layer{Kind: kind, Name: name}
}

func TestPoliciesBecomeLayersOfTheCallsTheyAreFor(t *testing.T) {
	f := topology.Form{
		Services: []topology.Service{{Name: "checkout.shop"}, {Name: "orders.shop"}},
		Calls:    []topology.Call{{From: "checkout.shop", To: "orders.shop"}},
		Policies: []topology.Policy{
			{Callees: []string{"orders.shop.svc.cluster.local"}, Layer: layer(topology.SidecarOut, "mesh")},
			{Callees: []string{"orders"}, Namespace: "shop", Callers: []string{"checkout"},
				Layer: layer(topology.Client, "library")},
			{Callees: []string{"orders-db"}, Namespace: "shop", Callers: []string{"orders"},
				Layer: layer(topology.Client, "driver")},
			{Callees: []string{"mail.shop"}, Layer: layer(topology.SidecarOut, "mail")},
		},
	}
	joined, _ := f.Join()
	got := map[string][]string{}
	for _, c := range joined.Calls {
		for _, l := range c.Layers {
			got[c.From+">"+c.To] = append(got[c.From+">"+c.To], l.Name)
		}
	}
	for call, want := range map[string][]string{"checkout.shop>orders.shop": {"library", "mesh"},
		"orders.shop>orders-db.shop": {"driver"}, ">mail.shop": {"mail"}} {
		if len(got[call]) != len(want) || got[call][0] != want[0] {
			t.Errorf("%s has the layers %q, want %q", call, got[call], want)
		}
	}
	if len(joined.Calls) != 3 {
		t.Errorf("%d calls, want 3", len(joined.Calls))
	}
	if len(f.Calls[0].Layers) != 0 {
		t.Error("the form that was given has changed")
	}
}

func TestANameOfSeveralServicesIsARemarkAndJoinsNothing(t *testing.T) {
	f := topology.Form{Services: []topology.Service{{Name: "db.a"}, {Name: "db.b"}},
		Policies: []topology.Policy{{Callees: []string{"db"}, Layer: layer(topology.Client, "x")}}}
	joined, _ := f.Join()
	if len(joined.Calls) != 0 || len(joined.Remarks) != 1 || joined.Remarks[0].Rule != "F701" {
		t.Errorf("got %+v", joined)
	}
}

func TestAnApplicationIsTheServiceWithItsNameAndANamespace(t *testing.T) {
	f := topology.Form{Services: []topology.Service{{Name: "orders"}, {Name: "orders.shop"}, {Name: "db"}, {Name: "db.a"},
		{Name: "db.b"}, {Name: "api"}, {Name: "api.example.com"}},
		Calls: []topology.Call{{From: "orders", To: "db.a"}}}
	joined, _ := f.Join()
	var names []string
	for _, s := range joined.Services {
		names = append(names, s.Name)
	}
	if want := []string{"orders.shop", "db", "db.a", "db.b", "api", "api.example.com"}; !slices.Equal(names, want) {
		t.Errorf("services %q, want %q", names, want)
	}
	if c := joined.Calls[0]; c.From != "orders.shop" {
		t.Errorf("the call is from %q", c.From)
	}
}

func TestWhatNobodyWroteIsNoCallOfAServiceThatAGatewayCalls(t *testing.T) {
	retries := func(tries topology.Value[int]) topology.Policy {
		return topology.Policy{Callees: []string{"web"}, Layer: topology.Layer{Kind: topology.SidecarOut,
			Repeats: []topology.Repeat{{On: []topology.Outcome{topology.Refused}, Tries: tries}}}}
	}
	byDefault, written := topology.DefaultOf(3, "Istio", topology.Position{}), topology.Write(3, topology.Position{})
	gateway := []topology.Call{{From: "edge", To: "web", Layers: []topology.Layer{layer(topology.Gateway, "g")}}}
	for i, c := range []struct {
		tries topology.Value[int]
		calls []topology.Call
		want  int
	}{{byDefault, gateway, 1}, {written, gateway, 2}, {byDefault, nil, 1}} {
		joined, _ := topology.Form{Calls: c.calls, Policies: []topology.Policy{retries(c.tries)}}.Join()
		if len(joined.Calls) != c.want {
			t.Errorf("case %d: %d calls, want %d", i, len(joined.Calls), c.want)
		}
	}
}

func TestAShortNameIsThatOfTheCallersNamespaceFirst(t *testing.T) {
	f := topology.Form{Services: []topology.Service{{Name: "edge.a", Aliases: []string{"edge"}}, {Name: "api.a"},
		{Name: "api.b"}, {Name: "api"}, {Name: "db"}},
		Calls: []topology.Call{{From: "edge", To: "api"}, {From: "edge", To: "db"}, {From: "api.b", To: "new"}}}
	joined, _ := f.Join()
	var got []string
	for _, c := range joined.Calls {
		got = append(got, c.From+">"+c.To)
	}
	if want := []string{"edge.a>api.a", "edge.a>db", "api.b>new"}; !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
}

func TestAProxyAnswersAClientOfGRPCWithACode(t *testing.T) {
	proxy := topology.Layer{Kind: topology.SidecarOut, Product: "istio",
		Answers: []topology.Answer{{After: topology.Refused, Gives: topology.S503}}}
	f := topology.Form{Policies: []topology.Policy{{Callees: []string{"a"}, Layer: proxy}, {Callees: []string{"b"},
		Layer: proxy},
		{Callees: []string{"b"}, Layer: topology.Layer{Kind: topology.Client, Product: "grpc"}}}}
	joined, _ := f.Join()
	for _, c := range joined.Calls {
		want := map[string]topology.Outcome{"a": topology.S503, "b": topology.Unavailable}[c.To]
		if got := c.Layers[len(c.Layers)-1].Gives(topology.Refused); got != want {
			t.Errorf("%s: the proxy gives %s, want %s", c.To, got, want)
		}
	}
	if f.Policies[1].Layer.Gives(topology.Refused) != topology.S503 {
		t.Error("the form that was given has changed")
	}
}

func TestAServiceAllOfWhoseCallsPassAGatewayIsAProxy(t *testing.T) {
	gateway, client := topology.Layer{Kind: topology.Gateway}, topology.Layer{Kind: topology.Client}
	f, _ := topology.Form{Services: []topology.Service{{Name: "edge"}, {Name: "shop"}, {Name: "own",
		AnswersWith: topology.Write("500", topology.Position{})}},
		Calls: []topology.Call{{From: "edge", To: "shop", Layers: []topology.Layer{gateway}},
			{From: "edge", To: "own", Layers: []topology.Layer{gateway}},
			{From: "shop", To: "db", Layers: []topology.Layer{gateway}}, {From: "shop", To: "mail",
				Layers: []topology.Layer{client, gateway}},
			{From: "own", To: "db", Layers: []topology.Layer{gateway}}}}.Join()
	for _, s := range f.Services {
		want := map[string]string{"edge": "same", "own": "500"}[s.Name]
		if s.Proxy != (want != "") || s.AnswersWith.Or("") != want {
			t.Errorf("%s: proxy %v, answers with %q", s.Name, s.Proxy, s.AnswersWith.Or(""))
		}
	}
}

// A service that has the address of its own gateway asks it for other services.
func TestACallThroughAGatewayThatLeadsBackIsNoCircle(t *testing.T) {
	gateway := []topology.Layer{{Kind: topology.Gateway}}
	guess := topology.Assume(1.0, "the address stands in the variable EDGE_URL")
	for _, c := range []struct {
		per  topology.Value[float64]
		from string
		kept bool
	}{{guess, "orders", false}, {guess, "till", false}, {guess, "web", true},
		{topology.Write(1.0, topology.Position{}), "orders", true}} {
		f, _ := topology.Form{Calls: []topology.Call{{From: c.from, To: "edge", PerRequest: c.per},
			{From: "edge", To: "orders", Layers: gateway}, {From: "edge", To: "stock", Layers: gateway},
			{From: "orders", To: "till"}}}.Join()
		kept := slices.ContainsFunc(f.Calls, func(d topology.Call) bool { return d.To == "edge" })
		if kept != c.kept || len(f.Remarks) > 0 == kept || len(f.Remarks) > 0 && f.Remarks[0].Rule != "F701" {
			t.Errorf("%s calls edge, %v: %s", c.from, c.per, f.YAML())
		}
	}
}

// As a Resiliency of Dapr that two apps load, and that has a target for each.
func TestPoliciesOfSeveralCallersMakeNoCircle(t *testing.T) {
	for _, c := range []struct {
		what     string
		callers  []string
		calls    []topology.Call
		want     []string
		policies []string // their callees
	}{
		{"both may call both", []string{"orders", "kitchen"}, nil, []string{">orders", ">kitchen"},
			[]string{"orders", "kitchen"}},
		{"a call that is known stays", []string{"orders", "kitchen"}, []topology.Call{{From: "orders", To: "kitchen"}},
			[]string{"orders>kitchen", ">orders"}, []string{"orders", "kitchen"}},
		{"no circle", []string{"orders", "kitchen"}, nil, []string{"orders>pay", "kitchen>pay"}, []string{"pay"}},
		{"a circle through a call", []string{"orders", "kitchen"}, []topology.Call{{From: "pay", To: "orders"}},
			[]string{"pay>orders", "kitchen>pay"}, []string{"pay"}},
		{"one caller", []string{"orders"}, []topology.Call{{From: "pay", To: "orders"}}, []string{"pay>orders", "orders>pay"},
			[]string{"pay"}},
	} {
		f := topology.Form{Calls: c.calls}
		for _, callee := range c.policies {
			f.Policies = append(f.Policies, topology.Policy{Callees: []string{callee}, Callers: c.callers,
				Layer: layer(topology.SidecarOut, callee)})
		}
		joined, _ := f.Join()
		var got []string
		for _, call := range joined.Calls {
			got = append(got, call.From+">"+call.To)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

// A sidecar sees no requests of what is said to a database: what it would do by default it does not do there.
func TestWhatNobodyWroteIsNoLayerOfCallsOfADatabase(t *testing.T) {
	written := topology.Layer{Kind: topology.SidecarOut, PerTry: topology.Write(time.Second, topology.Position{})}
	for _, c := range []struct {
		layer    topology.Layer
		database bool
		want     int
	}{{layer(topology.SidecarOut, "mesh"), true, 0}, {layer(topology.SidecarOut, "mesh"), false, 1}, {written, true, 1}} {
		form, _ := topology.Form{Services: []topology.Service{{Name: "db", Database: c.database}},
			Policies: []topology.Policy{{Callees: []string{"db"}, Layer: c.layer}}}.Join()
		if len(form.Calls) != c.want {
			t.Errorf("%v: %v, want %d", c, form.Calls, c.want)
		}
	}
}

// Where somebody limits its connections, what the sidecar does by default with requests is still none of its.
func TestASidecarOnlyConnectsToADatabase(t *testing.T) {
	limited := topology.Layer{Kind: topology.SidecarOut, Overall: topology.DefaultOf(time.Duration(0), "x",
		topology.Position{}), Limits: topology.Limits{Connections: topology.Write(9, topology.Position{})},
		Repeats: []topology.Repeat{{On: []topology.Outcome{topology.S503}, Tries: topology.DefaultOf(3, "x",
			topology.Position{})}}}
	for database, want := range map[bool]topology.Kind{true: topology.Connection, false: topology.SidecarOut} {
		form, _ := topology.Form{Services: []topology.Service{{Name: "db", Database: database}},
			Policies: []topology.Policy{{Callees: []string{"db"}, Layer: limited}}}.Join()
		l := form.Calls[0].Layers[0]
		if l.Kind != want || database != (len(l.Repeats) == 0) || l.Limits.Connections.V != 9 {
			t.Errorf("database %v: %+v", database, l)
		}
	}
}

// A program is told the name under which a browser finds it. It is no call, and nothing is left out.
func TestTheOwnPublicNameOfAServiceIsNoCall(t *testing.T) {
	guess := topology.Assume(1.0, "the address stands in the variable SITE_URL")
	route := func(host string) []topology.Layer {
		return []topology.Layer{{Kind: topology.Gateway, Match: topology.Match{Host: host}}}
	}
	for _, c := range []struct {
		orders, stock string
		remarks       int
	}{{"a.example.com", "b.example.com", 0}, {"a.example.com", "a.example.com", 1}, {"c.example.com, a.example.com",
		"", 0},
		{"", "", 1}} {
		f, _ := topology.Form{Services: []topology.Service{{Name: "edge", Aliases: []string{"a.example.com"}}},
			Calls: []topology.Call{{From: "orders", To: "https://a.example.com/x", PerRequest: guess,
				At: topology.Position{Line: 9}},
				{From: "edge", To: "orders", Layers: route(c.orders)}, {From: "edge", To: "stock", Layers: route(c.stock)}}}.Join()
		if len(f.Remarks) != c.remarks || len(f.Calls) != 2 {
			t.Errorf("%v: %s", c, f.YAML())
		}
	}
}

func TestAMirrorIsNotTheCallThatItsCalleeAlsoGets(t *testing.T) {
	f, _ := topology.Form{Calls: []topology.Call{{From: "edge", To: "a", Layers: []topology.Layer{{Name: "route"}}},
		{From: "edge", To: "a", Detached: true, Layers: []topology.Layer{{Name: "mirror"}}}}}.Join()
	if len(f.Calls) != 2 || len(f.Calls[0].Layers) != 1 || f.Calls[0].Detached || !f.Calls[1].Detached {
		t.Errorf("%s", f.YAML())
	}
}
