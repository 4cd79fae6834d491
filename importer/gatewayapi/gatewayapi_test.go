package gatewayapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/importer/gatewayapi"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// route is an HTTPRoute at a gateway of a class; its one rule has more keys.
func route(class, keys string) string {
	return fmt.Sprintf(`apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec: {gatewayClassName: %s}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: orders, namespace: shop}
spec:
  parentRefs: [{name: edge}]
  hostnames: [shop.example.com]
  rules:
  - backendRefs: [{name: orders, port: 8080}]
%s`, class, keys)
}

// Kong's controller takes of a rule the limit of its back end, and the rest from annotations of the Service.
func TestARouteBehindKong(t *testing.T) {
	const service = `---
apiVersion: v1
kind: Service
metadata: {name: orders, namespace: shop, annotations: {konghq.com/retries: "1"}}
`
	f := read(t, source.Assume{}, route("kong", "    timeouts: {backendRequest: 2s}\n"))
	l := f.Calls[0].Layers[0]
	if l.Repeats[0].Tries.String() != "6 (default of Kong Ingress Controller 3.5; f0.yaml:13:5)" ||
		l.PerTry.V != 2*time.Second || l.Connect.V != 2*time.Second || len(f.Remarks) > 0 ||
		l.Match.Host != "shop.example.com" {
		t.Errorf("%s", f.YAML())
	}
	calls := read(t, source.Assume{}, strings.Replace(route("kong", ""), "HTTPRoute", "GRPCRoute", 1)).Calls
	if calls[0].Layers[0].Speaks.Or("") != topology.SpeaksGRPC {
		t.Errorf("a GRPCRoute speaks %s", calls[0].Layers[0].Speaks)
	}
	f = read(t, source.Assume{}, route("kong", "    timeouts: {request: 2s}\n    retry: {attempts: 3}\n")+service)
	l = f.Calls[0].Layers[0]
	if l.Repeats[0].Tries.String() != "2 (f0.yaml:19:77)" || l.PerTry.V != time.Minute || len(f.Remarks) != 2 ||
		f.Remarks[0].Rule != "F602" {
		t.Errorf("%s", f.YAML())
	}
}

// policy is Envoy Gateway's for that route.
func policy(spec string) string {
	return `apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {name: p, namespace: shop}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: orders}]
` + spec
}

func read(t testing.TB, assume source.Assume, texts ...string) topology.Form {
	t.Helper()
	var all []source.Document
	for i, text := range texts {
		docs, remarks := source.YAML(fmt.Sprintf("f%d.yaml", i), []byte(text))
		if len(remarks) > 0 {
			t.Fatalf("%v in\n%s", remarks, text)
		}
		for _, d := range docs {
			if !gatewayapi.Recognise(d) {
				t.Fatalf("not recognised:\n%s", d.Data)
			}
		}
		all = append(all, docs...)
	}
	return gatewayapi.Read(all, assume)
}

func only(t testing.TB, f topology.Form) topology.Layer {
	t.Helper()
	if len(f.Calls) != 1 || len(f.Calls[0].Layers) != 1 {
		t.Fatalf("want one call with one layer in\n%s", f.YAML())
	}
	return f.Calls[0].Layers[0]
}

// Envoy Gateway's and Istio's answers to these were read in their translations, and what Envoy does with them measured.
func TestTriesByProduct(t *testing.T) {
	outcomes := []topology.Outcome{topology.Refused, topology.ResetSent, topology.Hang, topology.S500, topology.S503,
		topology.S429}
	for _, c := range []struct {
		class, rule, policy string
		want                []int
		overall             string
	}{
		{"istio", "", "", []int{3, 1, 1, 1, 1, 1}, "none (default of Istio 1.31; f0.yaml:13:5)"},
		{"istio", "    retry: {attempts: 4, codes: [500, 503]}", "", []int{5, 1, 1, 5, 5, 1},
			"none (default of Istio 1.31; f0.yaml:13:5)"},
		{"istio", "    retry: {codes: [503]}\n    timeouts: {request: 3s, backendRequest: 1s}", "", []int{3, 1, 1, 1, 3, 1},
			"3s (f0.yaml:15:25)"},
		{"istio", "    timeouts: {backendRequest: 1s}", "", []int{3, 1, 1, 1, 1, 1}, "1s (f0.yaml:14:32)"},
		{"eg", "", "", []int{1, 1, 1, 1, 1, 1}, "15s (default of Envoy Gateway 1.9; f0.yaml:13:5)"},
		{"eg", "", "  retry: {}", []int{3, 1, 1, 1, 3, 1}, "15s (default of Envoy Gateway 1.9; f0.yaml:13:5)"},
		{"eg", "", "  retry: {numRetries: 5, retryOn: {triggers: [5xx]}, perRetry: {timeout: 250ms}}", []int{6, 6, 6, 6, 6,
			1},
			"15s (default of Envoy Gateway 1.9; f0.yaml:13:5)"},
		{"eg", "", "  retry: {numRetries: 5, retryOn: {triggers: [connect-failure]}}", []int{6, 1, 1, 1, 1, 1},
			"15s (default of Envoy Gateway 1.9; f0.yaml:13:5)"},
		{"eg", "", "  retry: {numRetries: 5, retryOn: {httpStatusCodes: [429]}}", []int{6, 1, 1, 1, 1, 6},
			"15s (default of Envoy Gateway 1.9; f0.yaml:13:5)"},
		{"eg", "    retry: {attempts: 1}", "  retry: {numRetries: 5}", []int{2, 1, 1, 1, 2, 1},
			"15s (default of Envoy Gateway 1.9; f0.yaml:13:5)"},
		{"eg", "", "  timeout: {http: {requestTimeout: 0s}}", []int{1, 1, 1, 1, 1, 1}, "none (f1.yaml:6:36)"},
		{"eg", "    timeouts: {request: 2s}", "  timeout: {http: {requestTimeout: 9s}}", []int{1, 1, 1, 1, 1, 1},
			"2s (f0.yaml:14:25)"},
	} {
		texts := []string{route(c.class, c.rule)}
		if c.policy != "" {
			texts = append(texts, policy(c.policy))
		}
		l := only(t, read(t, source.Assume{}, texts...))
		for i, o := range outcomes {
			if got := l.Tries(o, topology.Unsafe); got.N != c.want[i] || !got.Known {
				t.Errorf("%s %s %s: %v: %+v, want %d", c.class, c.rule, c.policy, o, got, c.want[i])
			}
		}
		if got := l.Overall.String(); got != c.overall {
			t.Errorf("%s %s %s: overall %s, want %s", c.class, c.rule, c.policy, got, c.overall)
		}
	}
}

func TestALimitOfATryIsOneOnlyWhereThereAreRetries(t *testing.T) {
	for _, c := range []struct {
		class, rule, want string
		tries             int
	}{
		{"istio", "    retry: {attempts: 3, codes: [500]}\n    timeouts: {request: 5s, backendRequest: 1s}", "1s", 1},
		{"istio", "    timeouts: {backendRequest: 1s}", "0s", 1},
		{"eg", "    retry: {attempts: 3}\n    timeouts: {backendRequest: 1s}", "1s", 1},
	} {
		l := only(t, read(t, source.Assume{}, route(c.class, c.rule)))
		if got := fmt.Sprint(l.PerTry.Or(0)); got != c.want || l.Tries(topology.Hang, topology.Safe).N != c.tries {
			t.Errorf("%s %s: per try %s, want %s", c.class, c.rule, got, c.want)
		}
	}
}

func TestWhatAnUnknownProductDoesIsUnknown(t *testing.T) {
	f := read(t, source.Assume{}, route("acme", "    retry: {attempts: 3, codes: [503]}\n    timeouts: {request: 3s}"))
	l := only(t, f)
	if got := l.Tries(topology.S503, topology.Safe); got.N != 4 || got.Known {
		t.Errorf("503: %+v, want at least 4, not known", got)
	}
	if got := l.Tries(topology.Refused, topology.Safe); got.N != 1 || got.Known {
		t.Errorf("refused: %+v, want at least 1, not known", got)
	}
	if l.Overall.V != 3*time.Second || !l.PerTry.IsUnknown() {
		t.Errorf("overall %s, per try %s", l.Overall, l.PerTry)
	}
	if len(f.Remarks) != 1 || f.Remarks[0].Rule != "F702" || !strings.Contains(f.Remarks[0].Fix,
		"--assume implementation=") {
		t.Errorf("%+v", f.Remarks)
	}
	told := only(t, read(t, source.Assume{Implementation: "istio"}, route("acme", "")))
	if got := told.Tries(topology.Refused, topology.Safe); got.N != 3 || !got.Known {
		t.Errorf("told that it is Istio: %+v", got)
	}
	class := "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: acme}\n" +
		"spec: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}\n"
	if l := only(t, read(t, source.Assume{}, route("acme", ""), class)); l.Product != "envoy-gateway" {
		t.Errorf("by its class: %s", l.Product)
	}
}

func TestCapsAreThoseOfTheProduct(t *testing.T) {
	for _, c := range []struct{ class, spec, concurrent, share, ejection string }{
		{"eg", "", "1024 (default of Envoy Gateway 1.9; f0.yaml:13:5)", "", ""},
		{"eg", "  circuitBreaker: {maxParallelRetries: 5}", "5 (f1.yaml:6:40)", "", ""},
		{"eg", "  circuitBreaker: {retryBudget: {percent: {numerator: 1, denominator: 5}, minRetryConcurrency: 7}}",
			"7 (f1.yaml:6:96)",
			"0.2 (f1.yaml:6:55)", ""},
		{"eg", "  healthCheck: {passive: {baseEjectionTime: 10s}}", "1024 (default of Envoy Gateway 1.9; f0.yaml:13:5)", "",
			"5 3s 10s 0.1"},
		{"istio", "", "unbounded (default of Istio 1.31; f0.yaml:13:5)", "", ""},
	} {
		texts := []string{route(c.class, "")}
		if c.spec != "" {
			texts = append(texts, policy(c.spec))
		}
		l := only(t, read(t, source.Assume{}, texts...))
		if got := l.Budget.Concurrent.String(); got != c.concurrent {
			t.Errorf("%s: %s at once, want %s", c.spec, got, c.concurrent)
		}
		if got := l.Budget.Share.String(); got != c.share {
			t.Errorf("%s: share %s, want %s", c.spec, got, c.share)
		}
		e := ""
		if !l.Ejection.Base.IsZero() {
			e = fmt.Sprint(l.Ejection.Consecutive.V, l.Ejection.Interval.V, l.Ejection.Base.V, l.Ejection.MaxShare.V)
		}
		if e != c.ejection {
			t.Errorf("%s: ejection %s, want %s", c.spec, e, c.ejection)
		}
	}
}

func TestTheMoreSpecialPolicyReplacesTheOther(t *testing.T) {
	gateway := strings.NewReplacer("kind: HTTPRoute, name: orders", "kind: Gateway, name: edge", "name: p,",
		"name: g,").Replace(
		policy("  retry: {numRetries: 9}\n  timeout: {http: {requestTimeout: 4s}}"))
	l := only(t, read(t, source.Assume{}, route("eg", ""), gateway))
	if l.Tries(topology.S503, topology.Safe).N != 10 || l.Overall.V != 4*time.Second {
		t.Errorf("of the gateway: %d, %s", l.Tries(topology.S503, topology.Safe).N, l.Overall)
	}
	l = only(t, read(t, source.Assume{}, route("eg", ""), gateway, policy("  retry: {numRetries: 1}")))
	if l.Tries(topology.S503, topology.Safe).N != 2 || l.Overall.V != 15*time.Second {
		t.Errorf("of the route: %d, %s", l.Tries(topology.S503, topology.Safe).N, l.Overall)
	}
	l = only(t, read(t, source.Assume{}, route("eg", ""), gateway,
		policy("  mergeType: StrategicMerge\n  retry: {numRetries: 1}")))
	if l.Tries(topology.S503, topology.Safe).N != 2 || l.Overall.V != 4*time.Second {
		t.Errorf("merged: %d, %s", l.Tries(topology.S503, topology.Safe).N, l.Overall)
	}
}

// As Envoy Gateway resolves targetSelectors: one without labels takes every object of its kind.
func TestASelectorTakesTheGatewaysThatItsLabelsNameOrAll(t *testing.T) {
	labelled := strings.Replace(route("eg", ""), "name: edge, namespace: shop", "name: edge, namespace: shop, "+
		"labels: {tier: edge}", 1)
	for _, c := range []struct {
		selector string
		tries    int
	}{
		{"{group: gateway.networking.k8s.io, kind: Gateway}", 6},
		{"{kind: Gateway, matchLabels: {tier: edge}}", 6},
		{"{kind: Gateway, matchLabels: {tier: inner}}", 1},
		{"{kind: Gateway, matchExpressions: [{key: tier, operator: In, values: [edge, inner]}]}", 6},
		{"{kind: Gateway, matchExpressions: [{key: tier, operator: In, values: [inner]}]}", 1},
		{"{kind: Gateway, matchExpressions: [{key: tier, operator: NotIn, values: [edge]}]}", 1},
		{"{kind: Gateway, matchExpressions: [{key: tier, operator: Exists}]}", 6},
		{"{kind: Gateway, matchExpressions: [{key: tier, operator: DoesNotExist}]}", 1},
		{"{kind: GRPCRoute}", 1},
	} {
		l := only(t, read(t, source.Assume{}, labelled, `apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {name: all}
spec:
  targetSelectors: [`+c.selector+`]
  retry: {numRetries: 5, retryOn: {triggers: [reset]}}
`))
		if got := l.Tries(topology.ResetSent, topology.Safe).N; got != c.tries {
			t.Errorf("%s: %d tries, want %d", c.selector, got, c.tries)
		}
	}
}

func TestTheAPIsOwnBudgetIsOfTheService(t *testing.T) {
	budget := `apiVersion: gateway.networking.x-k8s.io/v1alpha1
kind: XBackendTrafficPolicy
metadata: {name: b, namespace: shop}
spec:
  targetRefs: [{kind: Service, name: orders}]
  retryConstraint:
    budget: {percent: 10}
    minRetryRate: {count: 30, interval: 2s}
`
	l := only(t, read(t, source.Assume{}, route("eg", ""), budget))
	if l.Budget.Ratio.V != 0.1 || l.Budget.PerSecond.V != 15 ||
		l.Budget.Window.String() != "10s (default of the Gateway API; f1.yaml:7:5)" {
		t.Errorf("%+v", l.Budget)
	}
	l = only(t, read(t, source.Assume{}, route("istio", ""), budget))
	if l.Budget.Share.V != 0.1 || !l.Budget.Ratio.IsZero() {
		t.Errorf("of Istio: %+v", l.Budget)
	}
}

func TestAGatewayIsAServiceAndAMirrorIsDetached(t *testing.T) {
	f := read(t, source.Assume{}, route("eg", `    matches:
    - {path: {value: /api}, method: GET}
    - {path: {type: Exact, value: /x}}
    filters: [{type: RequestMirror, requestMirror: {backendRef: {name: shadow}}}]
  - filters: [{type: RequestRedirect}]
    backendRefs: [{name: nobody}]
`))
	joined, _ := f.Join()
	if len(joined.Calls) != 2 || joined.Calls[0].From != "edge.shop" || !joined.Calls[0].Detached ||
		joined.Calls[1].To != "orders.shop" {
		t.Fatalf("%s", joined.YAML())
	}
	layers := joined.Calls[1].Layers
	if len(layers) != 2 || layers[0].Match.Path != "/api*" || layers[0].Match.Methods[0] != "GET" ||
		layers[1].Match.Path != "/x" ||
		layers[0].Kind != topology.Gateway || layers[0].Match.Host != "shop.example.com" {
		t.Errorf("%s", joined.YAML())
	}
	if joined.Services[0].Aliases[0] != "shop.example.com" || !joined.Services[0].Cancels.V {
		t.Errorf("%+v", joined.Services[0])
	}
}

func TestARouteOfAServiceIsAPolicyOfItsCallers(t *testing.T) {
	text := strings.Replace(route("eg", ""), "{name: edge}", "{kind: Service, name: orders}", 1)
	f := read(t, source.Assume{Versions: map[string]string{"istio": "1.20"}}, text)
	if len(f.Calls) != 0 || len(f.Policies) != 1 || f.Policies[0].Callees[0] != "orders.shop" {
		t.Fatalf("%s", f.YAML())
	}
	l := f.Policies[0].Layer
	if l.Kind != topology.SidecarOut || l.Tries(topology.S503, topology.Safe).N != 3 {
		t.Errorf("%+v", l)
	}
	linkerd := strings.Replace(text, "namespace: shop}\nspec:\n  parent",
		"namespace: shop, annotations: {retry.linkerd.io/http: 5xx}}\nspec:\n  parent", 1)
	if f := read(t, source.Assume{}, linkerd); len(f.Policies) != 0 {
		t.Errorf("a route of Linkerd was read:\n%s", f.YAML())
	}
}

func TestAGatewayOfIstioSaysWhoseARouteOfAServiceIs(t *testing.T) {
	for class, want := range map[string]string{"istio-waypoint": "istio", "istio": "istio", "shop-waypoint": ""} {
		text := strings.Replace(route(class, ""), "{name: edge}", "{kind: Service, name: orders}", 1)
		f := read(t, source.Assume{}, text)
		if l := f.Policies[0].Layer; len(f.Remarks) > 0 != (want == "") || want != "" && l.Product != want {
			t.Errorf("%s: %s, %+v", class, l.Product, f.Remarks)
		}
	}
}

func TestWhatDoesNothingIsRemarked(t *testing.T) {
	for _, c := range []struct {
		policy, rule, fix string
		line              int
	}{
		{"  retry: {numRetry: 5}", "F601", "numRetries", 6},
		{"  retry: {retryOn: {triggers: [gateway_error]}}", "F601", "gateway-error", 6},
		{"  retry: {retryOn: {triggers: [5xx], httpStatusCodes: [429]}}", "F601", "retriable-status-codes", 6},
		{"  retry: {perRetry: {backoff: {}}}", "F601", "backOff", 6},
		{"  targetRef: {kind: HTTPRoute, name: order}", "F602", "orders", 6},
	} {
		f := read(t, source.Assume{}, route("eg", ""), policy(c.policy))
		if len(f.Remarks) != 1 || f.Remarks[0].Rule != c.rule || !strings.Contains(f.Remarks[0].Fix, c.fix) ||
			f.Remarks[0].At.Line != c.line {
			t.Errorf("%s: %+v", c.policy, f.Remarks)
		}
	}
}

func FuzzReadingDoesNotPanic(f *testing.F) {
	f.Add([]byte(route("eg", "    retry: {attempts: 3}") + "---\n" +
		policy("  retry: {retryOn: {triggers: [5xx]}}\n  circuitBreaker: {}")))
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, _ := source.YAML("f.yaml", data)
		for _, d := range docs {
			gatewayapi.Recognise(d)
		}
		joined, _ := gatewayapi.Read(docs, source.Assume{}).Join()
		joined.YAML()
	})
}

// What Consul makes of a route follows its controller, which gives it the filters of a rule and nothing else.
func TestConsulRepeatsWhatTheFiltersOfARuleSay(t *testing.T) {
	const filters = `apiVersion: consul.hashicorp.com/v1alpha1
kind: RouteRetryFilter
metadata: {name: again, namespace: shop}
spec: {numRetries: 4, retryOn: [5xx], retryOnStatusCodes: [429]}
---
apiVersion: consul.hashicorp.com/v1alpha1
kind: RouteTimeoutFilter
metadata: {name: limit, namespace: shop}
spec: {requestTimeout: 3s}
`
	ref := func(kind, name string) string {
		return "{type: ExtensionRef, extensionRef: {group: consul.hashicorp.com, kind: " + kind + ", name: " + name + "}}"
	}
	both := "    filters: [" + ref("RouteRetryFilter", "again") + ", " + ref("RouteTimeoutFilter", "limit") + "]"
	for _, c := range []struct {
		rule    string
		tries   int
		overall string
		rules   string
	}{
		{"", 1, "15s (default of Consul 1.22; f0.yaml:13:5)", ""},
		{both, 5, "3s (f1.yaml:9:24)", ""},
		{"    retry: {attempts: 7}\n    timeouts: {request: 2s}", 1, "15s (default of Consul 1.22; f0.yaml:13:5)",
			"F602 F602"},
		{"    filters: [" + ref("RouteRetryFilter", "gone") + "]", 0, "15s (default of Consul 1.22; f0.yaml:13:5)", "F702"},
	} {
		for _, class := range []string{"consul", "own"} { // a class that does not say it: the filters do
			f := read(t, source.Assume{}, route(class, c.rule), filters)
			l := only(t, f)
			tries := l.Tries(topology.S503, topology.Unsafe)
			var rules []string
			for _, r := range f.Remarks {
				rules = append(rules, r.Rule)
			}
			if c.tries > 0 && tries.N != c.tries || c.tries == 0 && tries.Known || l.Overall.String() != c.overall ||
				strings.Join(rules, " ") != c.rules || l.Product != "consul" {
				t.Errorf("%s %q: %+v, %s, %s", class, c.rule, tries, l.Overall, f.Remarks)
			}
		}
	}
}

func TestAnUpgradeOfEnvoyGatewayIsRead(t *testing.T) {
	for spec, want := range map[string]bool{"  httpUpgrade: [{type: websocket}]\n": true, "  httpUpgrade: []\n": false} {
		if got := only(t, read(t, source.Assume{}, route("eg", ""), policy(spec))).Upgrades.Or(false); got != want {
			t.Errorf("%s: %v", spec, got)
		}
	}
}
