package istio_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/importer/istio"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// orders is a VirtualService with one route, which has more keys.
func orders(keys string) string {
	return `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: orders, namespace: shop}
spec:
  hosts: [orders]
  http:
  - route: [{destination: {host: orders}}]
` + keys
}

// rule is a DestinationRule for the same host.
func rule(policy string) string {
	return `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: orders, namespace: shop}
spec:
  host: orders.shop.svc.cluster.local
  trafficPolicy: ` + policy + "\n"
}

func read(t testing.TB, version string, texts ...string) topology.Form {
	t.Helper()
	var all []source.Document
	for i, text := range texts {
		docs, remarks := source.YAML(fmt.Sprintf("f%d.yaml", i), []byte(text))
		if len(remarks) > 0 {
			t.Fatalf("%v in\n%s", remarks, text)
		}
		for _, d := range docs {
			if !istio.Recognise(d) {
				t.Fatalf("not recognised:\n%s", text)
			}
		}
		all = append(all, docs...)
	}
	assume := source.Assume{}
	if version != "" {
		assume.Versions = map[string]string{"istio": version}
	}
	return istio.Read(all, assume)
}

// called returns the layer of a kind that calls of orders have.
func called(t testing.TB, f topology.Form, kind topology.Kind) topology.Layer {
	t.Helper()
	f.Services = append(f.Services, topology.Service{Name: "checkout.shop"}, topology.Service{Name: "orders.shop"})
	f.Calls = append(f.Calls, topology.Call{From: "checkout.shop", To: "orders.shop"})
	joined, _ := f.Join()
	var found []topology.Layer
	for _, c := range joined.Calls {
		if c.From != "checkout.shop" {
			continue
		}
		for _, l := range c.Layers {
			if l.Kind == kind {
				found = append(found, l)
			}
		}
	}
	if len(found) != 1 {
		t.Fatalf("want one layer of kind %v, got %d in\n%s", kind, len(found), joined.YAML())
	}
	return found[0]
}

// What Istio gives Envoy for these blocks was read out of Istio's own translation, and what Envoy does with it
// measured.
func TestTriesByBlockAndVersion(t *testing.T) {
	outcomes := []topology.Outcome{topology.Refused, topology.ResetUnsent, topology.ResetSent, topology.Hang,
		topology.S500,
		topology.S503, topology.S429, topology.Unavailable, topology.Internal}
	for _, c := range []struct {
		keys, version string
		want          []int
	}{
		{"", "", []int{3, 3, 1, 1, 1, 1, 1, 3, 1}},
		{"", "1.24", []int{3, 3, 1, 1, 1, 1, 1, 3, 1}},
		{"", "1.23", []int{3, 3, 1, 1, 1, 3, 1, 3, 1}},
		{"    retries: {attempts: 0}", "1.23", []int{1, 1, 1, 1, 1, 1, 1, 1, 1}},
		{"    retries: {}", "", []int{1, 1, 1, 1, 1, 1, 1, 1, 1}},
		{"    retries: {attempts: 3, perTryTimeout: 1s}", "1.24", []int{4, 4, 1, 1, 1, 1, 1, 4, 1}},
		{"    retries: {attempts: 3, perTryTimeout: 1s}", "1.20", []int{4, 4, 1, 1, 1, 4, 1, 4, 1}},
		{"    retries: {attempts: 3, perTryTimeout: 1s, retryOn: '5xx'}", "", []int{4, 4, 4, 4, 4, 4, 1, 1, 1}},
		{"    retries: {attempts: 3, retryOn: '5xx'}", "", []int{4, 4, 4, 1, 4, 4, 1, 1, 1}},
		{"    retries: {attempts: 3, retryOn: 'connect-failure,429,503'}", "1.20", []int{4, 1, 1, 1, 1, 4, 4, 1, 1}},
		{"    retries: {attempts: 1, retryOn: 'reset,internal'}", "", []int{2, 2, 2, 1, 1, 1, 1, 1, 2}},
		{"    retries: {attempts: 5, perTryTimeout: 2s, retryOn: gateway-error}\n    timeout: 5s", "", []int{6, 6, 6, 3, 1, 6,
			1, 1, 1}},
		{"    fault: {delay: {fixedDelay: 1s}}", "1.20", []int{1, 1, 1, 1, 1, 1, 1, 1, 1}},
	} {
		l := called(t, read(t, c.version, orders(c.keys)), topology.SidecarOut)
		for i, o := range outcomes {
			for _, m := range []topology.Methods{topology.Safe, topology.Unsafe} {
				if got := l.Tries(o, m); got.N != c.want[i] || !got.Known {
					t.Errorf("%q of Istio %q, %v, %v: %+v, want %d", c.keys, c.version, o, m, got, c.want[i])
				}
			}
		}
	}
}

func TestABlockWithoutAttemptsIsOffAndSaysWhy(t *testing.T) {
	l := called(t, read(t, "", orders("    retries: {retryRemoteLocalities: true}")), topology.SidecarOut)
	want := "1 (default of Istio 1.31 (retries without attempts are off); f0.yaml:8:14)"
	if len(l.Repeats) != 1 || l.Repeats[0].Tries.String() != want {
		t.Errorf("%+v, want %s", l.Repeats, want)
	}
}

func TestTheEnvironmentOfTheControlPlaneBringsBack503(t *testing.T) {
	f := read(t, "", orders(""), `apiVersion: install.istio.io/v1alpha1
kind: IstioOperator
spec:
  tag: 1.27.3-distroless
  values: {pilot: {env: {EXCLUDE_UNSAFE_503_FROM_DEFAULT_RETRY: "false"}}}
`)
	l := called(t, f, topology.SidecarOut)
	if got := l.Tries(topology.S503, topology.Unsafe).N; got != 3 {
		t.Errorf("%d tries, want 3", got)
	}
	if got := l.Version.String(); got != "1.27 (f1.yaml:4:8)" {
		t.Errorf("version %s", got)
	}
}

func TestTheMeshesDefaultHoldsWhereARouteSaysNothing(t *testing.T) {
	config := `apiVersion: v1
kind: ConfigMap
metadata: {name: istio}
data:
  mesh: |
    rootNamespace: istio-system
    connectTimeout: 3s
    defaultHttpRetryPolicy:
      attempts: 4
      retryOn: 5xx
`
	f := read(t, "", orders(""), config)
	l := called(t, f, topology.SidecarOut)
	got := l.Tries(topology.S500, topology.Safe)
	if want := "5 (inherited from meshConfig.defaultHttpRetryPolicy; f1.yaml:9:17)"; got.N != 5 ||
		got.By.Tries.String() != want {
		t.Errorf("got %+v, %s", got, got.By.Tries)
	}
	if l.Connect.String() != "3s (f1.yaml:7:21)" {
		t.Errorf("connect %s", l.Connect)
	}
	l = called(t, read(t, "", orders("    retries: {attempts: 1}"), config), topology.SidecarOut)
	if a, b := l.Tries(topology.Refused, topology.Safe).N, l.Tries(topology.S500, topology.Safe).N; a != 2 || b != 1 {
		t.Errorf("a route's own block: %d and %d tries, want 2 and 1", a, b)
	}
	off := read(t, "", orders(""), strings.Replace(config, "attempts: 4\n      retryOn: 5xx", "attempts: 0", 1))
	l = called(t, off, topology.SidecarOut)
	if got := l.Tries(topology.Refused, topology.Safe).N; got != 1 {
		t.Errorf("%d tries with the default switched off", got)
	}
}

func TestEverySidecarRepeatsWhatWasNeverSent(t *testing.T) {
	for version, want := range map[string]int{"1.24": 3, "1.23": 0, "": 3} {
		f := read(t, version, rule("{}"))
		n := 0
		for _, p := range f.Policies {
			if p.Layer.Kind == topology.SidecarIn {
				n = p.Layer.Tries(topology.ResetUnsent, topology.Unsafe).N
				if other := p.Layer.Tries(topology.ResetSent, topology.Safe).N; other != 1 {
					t.Errorf("%d tries of what was sent", other)
				}
			}
		}
		if n != want {
			t.Errorf("Istio %q: %d tries, want %d", version, n, want)
		}
	}
}

func TestServicesWithoutARouteHaveTheImplicitRetries(t *testing.T) {
	f := read(t, "", orders("    retries: {attempts: 0}"))
	f.Services = []topology.Service{{Name: "checkout.shop"}, {Name: "pay.shop"}, {Name: "db.shop", Database: true},
		{Name: "far.away"}}
	f.Calls = []topology.Call{{From: "checkout.shop", To: "pay.shop"}, {From: "checkout.shop", To: "db.shop"},
		{From: "far.away", To: "pay.shop"}}
	joined, _ := f.Join()
	for i, want := range []string{"sidecar-out sidecar-in", "", "sidecar-in"} {
		var kinds []string
		for _, l := range joined.Calls[i].Layers {
			kinds = append(kinds, l.Kind.String())
		}
		if got := strings.Join(kinds, " "); got != want {
			t.Errorf("%s to %s has %q, want %q", joined.Calls[i].From, joined.Calls[i].To, got, want)
		}
	}
	l := joined.Calls[0].Layers[0]
	if c := l.Tries(topology.Refused, topology.Unsafe); c.N != 3 ||
		c.By.Tries.String() != "3 (default of Istio 1.31; f0.yaml:1:1)" {
		t.Errorf("%+v %s", c, c.By.Tries)
	}
}

func TestLimitsAreThoseOfTheRule(t *testing.T) {
	for _, c := range []struct{ policy, version, concurrent, share, ejection string }{
		{"{}", "", "unbounded (default of Istio 1.31; f1.yaml:1:1)", "", ""},
		{"{connectionPool: {http: {maxRetries: 0}}}", "", "unbounded (default of Istio 1.31; f1.yaml:1:1)", "", ""},
		{"{connectionPool: {http: {maxRetries: 7}}}", "", "7 (f1.yaml:6:55)", "", ""},
		{"{retryBudget: {}}", "", "3 (default of Istio 1.31; f1.yaml:6:32)", "0.2 (default of Istio 1.31; f1.yaml:6:32)", ""},
		{"{retryBudget: {percent: 5, minRetryConcurrency: 9}}", "1.28", "9 (f1.yaml:6:66)", "0.05 (f1.yaml:6:42)", ""},
		{"{retryBudget: {percent: 5}}", "1.26", "unbounded (default of Istio 1.26; f1.yaml:1:1)", "", ""},
		{"{retryBudget: {}}", "1.28", "3 (default of Istio 1.28; f1.yaml:6:32)",
			"0.002 (default of Istio 1.28, which takes 0.2 for 0.2 %; f1.yaml:6:32)", ""},
		{"{outlierDetection: {}}", "", "unbounded (default of Istio 1.31; f1.yaml:1:1)", "", "5 10s 30s 0.1"},
		{"{outlierDetection: {consecutive5xxErrors: 2, interval: 1s, maxEjectionPercent: 100}}", "",
			"unbounded (default of Istio 1.31; f1.yaml:1:1)", "", "2 1s 30s 1"},
	} {
		l := called(t, read(t, c.version, orders(""), rule(c.policy)), topology.SidecarOut)
		e := ""
		if !l.Ejection.Interval.IsZero() {
			e = fmt.Sprint(l.Ejection.Consecutive.V, l.Ejection.Interval.V, l.Ejection.Base.V, l.Ejection.MaxShare.V)
		}
		if got := l.Budget.Concurrent.String(); got != c.concurrent {
			t.Errorf("%s: %s at once, want %s", c.policy, got, c.concurrent)
		}
		if got := l.Budget.Share.String(); got != c.share {
			t.Errorf("%s: share %s, want %s", c.policy, got, c.share)
		}
		if e != c.ejection {
			t.Errorf("%s: ejection %q, want %q", c.policy, e, c.ejection)
		}
	}
}

func TestOtherDefaults(t *testing.T) {
	l := called(t, read(t, "", orders("")), topology.SidecarOut)
	for _, c := range []struct{ what, got, want string }{
		{"overall", l.Overall.String(), "none (default of Istio 1.31; f0.yaml:7:5)"},
		{"connect", l.Connect.String(), "10s (default of Istio 1.31; f0.yaml:7:5)"},
		{"first wait", l.Backoff.First.String(), "25ms (default of Istio 1.31; f0.yaml:7:5)"},
		{"pending", l.Limits.Pending.String(), "unbounded (default of Istio 1.31; f0.yaml:7:5)"},
		{"version", l.Version.String(), "1.31 (assumed: no file says the version of istio)"},
		{"name", l.Name, "VirtualService shop/orders, http[0]"},
		{"per try", l.PerTry.String(), ""},
	} {
		if c.got != c.want {
			t.Errorf("%s is %q, want %q", c.what, c.got, c.want)
		}
	}
	if !l.Repeats[0].Elsewhere {
		t.Error("a retry goes to the same endpoint")
	}
	l = called(t, read(t, "", orders(""), rule("{loadBalancer: {consistentHash: {useSourceIp: true}}}")),
		topology.SidecarOut)
	if l.Repeats[0].Elsewhere {
		t.Error("with a consistent hash a retry goes elsewhere")
	}
}

func TestASubsetAndAPortAreLaidOverTheRule(t *testing.T) {
	text := rule(`{connectionPool: {http: {maxRetries: 7, http2MaxRequests: 50}}}
  subsets:
  - name: v1
    trafficPolicy:
      outlierDetection: {}
      portLevelSettings: [{port: {number: 81}, connectionPool: {tcp: {connectTimeout: 1s}}}]
`)
	for destination, want := range map[string]string{
		"{host: orders}":                                     "7 10s",
		"{host: orders, subset: v1}":                         "7 10s",
		"{host: orders, subset: v1, port: {number: 81}}":     "2147483647 1s",
		"{host: orders.shop, subset: v2, port: {number: 8}}": "7 10s",
	} {
		l := called(t, read(t, "", strings.Replace(orders(""), "{host: orders}", destination, 1), text), topology.SidecarOut)
		if got := fmt.Sprint(l.Budget.Concurrent.V, " ", l.Connect.V); got != want {
			t.Errorf("%s: %s, want %s", destination, got, want)
		}
	}
}

func TestAGatewayIsAServiceWithCallsOfItsOwn(t *testing.T) {
	text := `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: public, namespace: shop}
spec: {selector: {istio: ingressgateway}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [shop.example.com]
  gateways: [public]
  http:
  - match: [{uri: {prefix: /api}}, {uri: {exact: /}, method: {exact: POST}}]
    route: [{destination: {host: web}}]
    mirror: {host: shadow}
    retries: {attempts: 2, retryOn: 5xx, perTryTimeout: 300ms}
    timeout: 500ms
`
	f := read(t, "", text)
	joined, _ := f.Join()
	if len(joined.Calls) != 2 || joined.Calls[0].From != "istio-ingressgateway" || joined.Calls[0].To != "web.shop" ||
		!joined.Calls[1].Detached || joined.Services[0].Aliases[0] != "shop.example.com" {
		t.Fatalf("got\n%s", joined.YAML())
	}
	layers := joined.Calls[0].Layers
	if len(layers) != 3 || layers[0].Match.Path != "/api*" || layers[1].Match.Methods[0] != "POST" ||
		layers[0].Choice == "" || layers[0].Choice != layers[1].Choice || layers[2].Kind != topology.SidecarIn {
		t.Fatalf("layers\n%s", joined.YAML())
	}
	if got := layers[0].Tries(topology.Hang, topology.Safe); got.N != 2 || !got.Cut {
		t.Errorf("a hang: %+v, want 2, cut", got)
	}
	if l := joined.Calls[1].Layers[0]; l.Tries(topology.Refused, topology.Safe).N != 1 {
		t.Error("a mirror is repeated")
	}
}

func TestADelegatesRoutesHaveTheHostsOfItsRoot(t *testing.T) {
	f := read(t, "", strings.Replace(orders("    retries: {attempts: 4, retryOn: 5xx}\n    timeout: 2s\n"),
		"route: [{destination: {host: orders}}]",
		"delegate: {name: inner, namespace: team}", 1), `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: inner, namespace: team}
spec:
  http:
  - timeout: 1s
    route: [{destination: {host: orders.shop.svc.cluster.local}}]
`)
	l := called(t, f, topology.SidecarOut)
	if l.Tries(topology.S500, topology.Safe).N != 5 || l.Overall.V != time.Second {
		t.Errorf("%d tries, overall %s", l.Tries(topology.S500, topology.Safe).N, l.Overall)
	}
}

func TestWhatDoesNothingIsRemarked(t *testing.T) {
	second := strings.Replace(orders(""), "name: orders,", "name: orders2,", 1)
	bound := func(gateways string) string {
		return strings.Replace(orders("    timeout: 1s\n"), "  http:", "  gateways: "+gateways+"\n  http:", 1)
	}
	gateway := "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: public, namespace: edge}\nspec: {}\n"
	for _, c := range []struct {
		texts              []string
		version, rule, fix string
		line               int
	}{
		{[]string{orders("    retries: {attempts: 3, retryOn: 'conect-failure'}")}, "", "F601", "connect-failure", 8},
		{[]string{orders("    retries: {attempts: 3, retryOn: 'canceled,5xx'}")}, "", "F601", "cancelled", 8},
		{[]string{orders("    retries: {attempts: 3, perTryTimout: 2s}")}, "", "F601", "perTryTimeout", 8},
		{[]string{orders("    retry: {attempts: 3}")}, "", "F601", "retries", 8},
		{[]string{orders("    retries: {attempts: 3, backoff: 1s}")}, "1.25", "F601", "update", 8},
		{[]string{orders("    retries: {attempts: 0, retryOn: 5xx}")}, "", "F602", "attempts", 8},
		{[]string{orders("    retries: {attempts: 2}\n    fault: {abort: {httpStatus: 500}}")}, "", "F602", "fault", 9},
		{[]string{orders("  - timeout: 1s\n    route: [{destination: {host: orders}}]")}, "", "F602", "before", 8},
		{[]string{orders("") + "---\n" + second}, "", "F603", "into one", 13},
		{[]string{orders(""), rule("{connectionPool: {http: {maxRetries: 0}}}")}, "", "F604", "1", 6},
		{[]string{orders(""), rule("{outlierDetection: {consecutiveErrors: 5}}")}, "", "F601", "consecutive5xxErrors", 6},
		{[]string{orders(""), rule("{retryBudget: {percent: 5}}")}, "1.26", "F601", "update", 6},
		{[]string{bound("[public]"), gateway}, "", "F602", "edge/public", 6},
		{[]string{bound("[edge/public]"), gateway}, "", "F602", "mesh", 5},
		{[]string{orders("    timeout: soon")}, "", "F702", "", 8},
		{[]string{orders(""),
			"apiVersion: networking.istio.io/v1alpha3\nkind: EnvoyFilter\nspec:\n  a: [{retry_policy: {}}]\n"},
			"", "F702", "config_dump", 4},
		{[]string{orders(""), filter("route: {request_headers_to_add: [{header: {key: X-Envoy-Max-Retries, value: '9'}}]}")},
			"", "F702", "config_dump", 4},
		{[]string{orders(""), filter("inline_code: 'h:headers():add(\"x-envoy-retry-on\", \"5xx\")'")}, "", "F702",
			"config_dump", 4},
		{[]string{orders(""), filter("tcp_proxy: {max_connect_attempts: 5}")}, "", "F702", "config_dump", 4},
		{[]string{orders(""), sidecar("inboundConnectionPool: {http: {http2MaxRequests: 0}}")}, "", "F604", "1", 5},
		{[]string{orders(""), sidecar("inboundConnectionPool: {http: {http2MaxRequest: 10}}")}, "", "F601",
			"http2MaxRequests", 5},
		{[]string{orders(""), sidecar("ingress: [{port: {number: 80}, connectionPool: {tcp: {maxConnections: 0}}}]")}, "",
			"F604", "1", 5},
		{[]string{orders(""), sidecar("connectionPool: {http: {http2MaxRequests: 10}}")}, "", "F601",
			"inboundConnectionPool", 5},
	} {
		f := read(t, c.version, c.texts...)
		found := false
		for _, r := range f.Remarks {
			found = found || r.Rule == c.rule && r.At.Line == c.line && strings.Contains(r.Fix, c.fix) && r.Subject != ""
		}
		if !found {
			t.Errorf("%s\nwant %s, line %d, %q, got %+v", strings.Join(c.texts, "---\n"), c.rule, c.line, c.fix, f.Remarks)
		}
	}
	if f := read(t, "", orders("    retries: {attempts: 3, retryOn: '5xx,503', perTryTimeout: 1s}\n    timeout: 4s"),
		rule("{}")); len(f.Remarks) > 0 {
		t.Errorf("a good file: %+v", f.Remarks)
	}
}

func TestOfTwoRulesOfOneNameTheOneWithAPolicyCounts(t *testing.T) {
	bare := strings.Replace(rule("{}"), "trafficPolicy: {}", "subsets: [{name: v1}]", 1)
	policy := rule("{outlierDetection: {maxEjectionPercent: 100}}")
	for _, texts := range [][]string{{bare, policy}, {policy, bare}} {
		l := called(t, read(t, "", append([]string{orders("")}, texts...)...), topology.SidecarOut)
		if got := l.Ejection.MaxShare.V; got != 1 {
			t.Errorf("%q: %v", texts, got)
		}
	}
}

func TestARuleForTheEgressGatewayIsNoCallOfIt(t *testing.T) {
	egress := strings.Replace(rule("{}"), "host: orders.shop", "host: istio-egressgateway.edge", 1)
	if f := read(t, "", egress); len(f.Policies) != 2 { // of every sidecar
		t.Errorf("%d policies, %+v", len(f.Policies), f.Policies[0].Callees)
	}
}

// Without a sidecar, and without a waypoint, requests pass what knows no HTTP.
func TestInAnAmbientNamespaceOnlyAWaypointCarriesOutRoutes(t *testing.T) {
	const ambient = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n  labels:\n    " +
		"istio.io/dataplane-mode: ambient\n"
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: orders, namespace: shop, labels: " +
		"{istio.io/use-waypoint: w}}\n"
	for _, c := range []struct {
		texts []string
		bare  bool
	}{
		{[]string{ambient}, true},
		{[]string{ambient + "    istio.io/use-waypoint: none\n"}, true},
		{[]string{ambient + "    istio.io/use-waypoint: w\n"}, false},
		{[]string{ambient, service}, false},
		{[]string{strings.Replace(ambient, "name: shop", "name: other", 1)}, false},
		{nil, false},
	} {
		f := read(t, "", append([]string{orders("    retries: {attempts: 3}"), rule("{}")}, c.texts...)...)
		said := slices.ContainsFunc(f.Remarks, func(r topology.Remark) bool { return r.Rule == "F602" })
		if said != c.bare || (len(f.Policies) == 0) != c.bare {
			t.Errorf("%q: remarks %+v, %d policies", c.texts, f.Remarks, len(f.Policies))
		}
	}
	gate := strings.Replace(orders(""), "  http:", "  gateways: [public]\n  http:", 1)
	if f := read(t, "", gate, ambient); len(f.Calls) != 1 || len(f.Remarks) != 0 {
		t.Errorf("at a gateway: %d calls, %+v", len(f.Calls), f.Remarks)
	}
}

// A chart that leaves the namespace out is installed into one that only the command line names.
func TestAGatewayWithoutANamespaceIsInTheOneThatIsNamed(t *testing.T) {
	const gateway = "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: public}\nspec: {}\n"
	for _, named := range []string{"edge/public", "public"} {
		f := read(t, "", strings.Replace(orders(""), "  http:", "  gateways: ["+named+"]\n  http:", 1), gateway)
		for _, r := range f.Remarks {
			t.Errorf("%s: %+v", named, r)
		}
	}
}

func filter(patch string) string {
	return "apiVersion: networking.istio.io/v1alpha3\nkind: EnvoyFilter\nspec:\n  configPatches: [{patch: {value: {" +
		patch + "}}}]\n"
}

func sidecar(spec string) string {
	return "apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {name: default, namespace: shop}\nspec:\n  " +
		spec + "\n"
}

// A Sidecar narrows whom a workload may call, and a filter may be about other things: neither changes what is repeated.
func TestWhatDoesNotChangeRetriesIsNotRemarked(t *testing.T) {
	const retried = "    retries: {attempts: 3, retryOn: '5xx,503', perTryTimeout: 1s}\n    timeout: 4s"
	alone := read(t, "", orders(retried))
	for _, text := range []string{
		sidecar("outboundTrafficPolicy: {mode: REGISTRY_ONLY}\n  egress: [{hosts: ['./*']}]"),
		sidecar("workloadSelector: {labels: {app: a}}\n  inboundConnectionPool: {http: {http2MaxRequests: 10}}"),
		filter("route: {request_headers_to_add: [{header: {key: x-envoy-decorator-operation, value: a}}]}"),
	} {
		f := read(t, "", orders(retried), text)
		if len(f.Remarks) > 0 {
			t.Errorf("%s\n%+v", text, f.Remarks)
		}
		was, is := called(t, alone, topology.SidecarOut), called(t, f, topology.SidecarOut)
		for _, o := range []topology.Outcome{topology.Refused, topology.S500, topology.S503} {
			if was, is := was.Tries(o, topology.Safe).N, is.Tries(o, topology.Safe).N; was != is {
				t.Errorf("%s\nmakes %d tries of %d after %v", text, is, was, o)
			}
		}
	}
}

func TestTemplatesAreUnknown(t *testing.T) {
	l := called(t, read(t, "", orders("    retries: {attempts: '{{ .n }}', retryOn: 5xx}\n    timeout: '{{ .t }}'")),
		topology.SidecarOut)
	if c := l.Tries(topology.S503, topology.Safe); c.Known || !l.Overall.IsUnknown() {
		t.Errorf("%+v, overall %s", c, l.Overall)
	}
}

func TestOtherDocumentsAreNotRecognised(t *testing.T) {
	for _, text := range []string{"kind: Service\napiVersion: v1\n", "kind: ConfigMap\ndata: {mesh: 'a: b'}\n", "[]\n",
		"apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\n"} {
		docs, _ := source.YAML("f", []byte(text))
		if istio.Recognise(docs[0]) {
			t.Errorf("recognised %q", text)
		}
	}
}

func FuzzReadingDoesNotPanic(f *testing.F) {
	f.Add([]byte(orders("    retries: {attempts: 3, retryOn: '5xx,503'}") + "---\n" +
		rule("{retryBudget: {}, outlierDetection: {}}")))
	f.Add([]byte("apiVersion: networking.istio.io/v1\nkind: VirtualService\n" +
		"spec: {http: [{delegate: {name: ''}}], gateways: [a/b]}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, _ := source.YAML("f.yaml", data)
		for _, d := range docs {
			istio.Recognise(d)
		}
		joined, _ := istio.Read(docs, source.Assume{}).Join()
		joined.YAML()
	})
}
