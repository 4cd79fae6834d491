package linkerd_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/importer/linkerd"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// service is a Service with annotations, without their "linkerd.io" prefix lines.
func service(annotations string) string {
	return "apiVersion: v1\nkind: Service\nmetadata:\n  name: orders\n  namespace: shop\n  annotations:\n" + annotations
}

func route(kind, group, annotations, rule string) string {
	return fmt.Sprintf(`apiVersion: %s/v1
kind: %s
metadata: {name: r, namespace: shop, annotations: {%s}}
spec:
  parentRefs: [{kind: Service, group: core, name: orders, port: 80}]
  rules: [{%s}]
`, group, kind, annotations, rule)
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
			if !linkerd.Recognise(d) {
				t.Fatalf("not recognised:\n%s", text)
			}
		}
		all = append(all, docs...)
	}
	return linkerd.Read(all, source.Assume{Versions: map[string]string{"linkerd": version}})
}

func layer(t testing.TB, f topology.Form, i int) topology.Layer {
	t.Helper()
	if len(f.Policies) <= i || f.Policies[i].Callees[0] != "orders.shop" {
		t.Fatalf("no policy %d in\n%s", i, f.YAML())
	}
	return f.Policies[i].Layer
}

// What the annotations mean was read in Linkerd's documentation and its policy controller.
func TestTriesByAnnotations(t *testing.T) {
	outcomes := []topology.Outcome{topology.Refused, topology.ResetSent, topology.Hang, topology.S500, topology.S503,
		topology.S429,
		topology.Unavailable}
	for _, c := range []struct {
		annotations string
		want        []int
		overall     string
	}{
		{"    retry.linkerd.io/http: 5xx\n", []int{1, 1, 1, 2, 2, 1, 1}, "none (default of Linkerd 2.19; f0.yaml:1:1)"},
		{"    retry.linkerd.io/http: gateway-error\n    retry.linkerd.io/limit: '3'\n", []int{1, 1, 1, 1, 4, 1, 1},
			"none (default of Linkerd 2.19; f0.yaml:1:1)"},
		{"    retry.linkerd.io/http: 429,500-502\n", []int{1, 1, 1, 2, 1, 2, 1},
			"none (default of Linkerd 2.19; f0.yaml:1:1)"},
		{"    retry.linkerd.io/http: '503'\n    retry.linkerd.io/grpc: unavailable\n", []int{1, 1, 1, 1, 2, 1, 2},
			"none (default of Linkerd 2.19; f0.yaml:1:1)"},
		{"    retry.linkerd.io/http: 5xx\n    retry.linkerd.io/timeout: 300ms\n    retry.linkerd.io/limit: '4'\n" +
			"    timeout.linkerd.io/request: 1s\n",
			[]int{1, 1, 4, 5, 5, 1, 1}, "1s (f0.yaml:10:33)"},
		{"    retry.linkerd.io/http: 5xx\n    retry.linkerd.io/limit: '0'\n", []int{1, 1, 1, 2, 2, 1, 1},
			"none (default of Linkerd 2.19; f0.yaml:1:1)"},
		{"    timeout.linkerd.io/response: 2s\n", []int{1, 1, 1, 1, 1, 1, 1}, "2s (f0.yaml:7:34)"},
	} {
		l := layer(t, read(t, "2.19", service(c.annotations)), 0)
		for i, o := range outcomes {
			if got := l.Tries(o, topology.Unsafe); got.N != c.want[i] || !got.Known {
				t.Errorf("%s%v: %+v, want %d", c.annotations, o, got, c.want[i])
			}
		}
		if got := l.Overall.String(); got != c.overall {
			t.Errorf("%soverall %s, want %s", c.annotations, got, c.overall)
		}
	}
}

func TestARouteWithARetryAnnotationHasNoneOfItsService(t *testing.T) {
	text := service("    retry.linkerd.io/http: 5xx\n    retry.linkerd.io/limit: '5'\n" +
		"    timeout.linkerd.io/request: 4s\n")
	gateway := "gateway.networking.k8s.io"
	f := read(t, "2.19", text, route("HTTPRoute", gateway, "retry.linkerd.io/http: '503'",
		"matches: [{path: {value: /a}}]"),
		route("HTTPRoute", gateway, "timeout.linkerd.io/request: 1s", ""))
	for i, want := range []string{"1 2 4s /a*", "6 6 1s ", "6 6 4s "} {
		l := layer(t, f, i)
		got := fmt.Sprintf("%d %d %v %s", l.Tries(topology.S500, topology.Safe).N, l.Tries(topology.S503, topology.Safe).N,
			l.Overall.V, l.Match.Path)
		if got != want {
			t.Errorf("%s: %s, want %s", l.Name, got, want)
		}
	}
	if a, b := f.Policies[0].Layer.Choice, f.Policies[2].Layer.Choice; a == "" || a != b {
		t.Errorf("choices %q and %q", a, b)
	}
}

func TestTimeoutsOfARuleHoldInLinkerdsOwnRoutes(t *testing.T) {
	own := layer(t, read(t, "2.19", route("HTTPRoute", "policy.linkerd.io", "", "timeouts: {request: 2s}")), 0)
	if own.Overall.V != 2*time.Second || own.Overall.Origin != topology.Written {
		t.Errorf("overall %s", own.Overall)
	}
}

func TestAProfileHasNoCountButABudget(t *testing.T) {
	f := read(t, "2.19", `apiVersion: linkerd.io/v1alpha2
kind: ServiceProfile
metadata: {name: orders.shop.svc.cluster.local, namespace: shop}
spec:
  retryBudget: {retryRatio: 0.5}
  routes:
  - name: read
    condition: {method: GET, pathRegex: /orders}
    isRetryable: true
    responseClasses: [{condition: {status: {min: 429, max: 429}}, isFailure: true},
      {condition: {status: {min: 500}}, isFailure: false}]
  - condition: {method: POST, pathRegex: /orders}
    timeout: 300ms
`)
	l := layer(t, f, 0)
	for o, want := range map[topology.Outcome]int{topology.S503: topology.Unbounded, topology.S429: topology.Unbounded,
		topology.Hang: 1, topology.S4xx: 1, topology.Refused: 1} {
		if got := l.Tries(o, topology.Safe); o != topology.S503 && got.N != want || o == topology.S503 && got.N < 1_000 {
			t.Errorf("%v: %+v, want %d", o, got, want)
		}
	}
	if l.Budget.Ratio.String() != "0.5 (f0.yaml:5:29)" ||
		l.Budget.PerSecond.String() != "10 (default of Linkerd 2.19; f0.yaml:5:16)" ||
		l.Overall.String() != "10s (default of Linkerd 2.19; f0.yaml:7:5)" || l.Match.Path != "~/orders" {
		t.Errorf("%+v", l)
	}
	if l = layer(t, f, 1); l.Tries(topology.S503, topology.Safe).N != 1 || l.Overall.V != 300*time.Millisecond {
		t.Errorf("%+v", l)
	}
}

// A server of gRPC answers with the status 200 and a code, so no status of HTTP is repeated.
func TestARouteOfAProfileForAMethodOfGRPCRepeatsCodes(t *testing.T) {
	const profile = `apiVersion: linkerd.io/v1alpha2
kind: ServiceProfile
metadata: {name: orders.shop.svc.cluster.local, namespace: shop}
spec:
  routes:
  - condition: {method: METHOD, pathRegex: 'PATH'}
    isRetryable: true
`
	for _, c := range []struct {
		method, path string
		grpc         bool
	}{
		{"POST", `/shop\.v1\.Orders/Place`, true},
		{"POST", `/shop\.Orders/Place`, true},
		{"GET", `/shop\.v1\.Orders/Place`, false},
		{"POST", `/orders/place`, false},
		{"POST", `/orders/v1\.2/items/[^/]*`, false},
	} {
		l := layer(t, read(t, "2.19", strings.NewReplacer("METHOD", c.method, "PATH", c.path).Replace(profile)), 0)
		status, code := l.Tries(topology.S500, topology.AllMethods), l.Tries(topology.Unavailable, topology.AllMethods)
		if status.N > 1 == c.grpc || code.N > 1 != c.grpc || (l.Speaks.Or("") == topology.SpeaksGRPC) != c.grpc {
			t.Errorf("%s %s: status %+v, code %+v, speaks %s", c.method, c.path, status, code, l.Speaks)
		}
	}
}

func TestFailureAccrualEjectsAll(t *testing.T) {
	l := layer(t, read(t, "2.19", service("    balancer.linkerd.io/failure-accrual: consecutive\n")), 0)
	if e := l.Ejection; e.Consecutive.V != 7 || e.Base.V != time.Second || e.MaxShare.V != 1 {
		t.Errorf("%+v", e)
	}
}

func TestWhatDoesNothingIsRemarked(t *testing.T) {
	profile := "apiVersion: linkerd.io/v1alpha2\nkind: ServiceProfile\n" +
		"metadata: {name: orders.shop.svc.cluster.local, namespace: shop}\nspec: {}\n"
	for _, c := range []struct {
		texts              []string
		version, rule, fix string
		line               int
	}{
		{[]string{service("    retry.linkerd.io/http: 5xx,reset\n")}, "", "F601", "5xx", 7},
		{[]string{service("    retry.linkerd.io/grpc: canceled\n")}, "", "F601", "cancelled", 7},
		{[]string{service("    retry.linkerd.io/limits: '3'\n    retry.linkerd.io/http: 5xx\n")}, "", "F601", "limit", 7},
		{[]string{service("    retry.linkerd.io/http: 5xx\n    retry.linkerd.io/limit: '0'\n")}, "", "F604", "remove", 8},
		{[]string{service("    retry.linkerd.io/limit: '3'\n")}, "", "F602", "retry.linkerd.io/http", 7},
		{[]string{service("    retry.linkerd.io/http: 5xx\n")}, "2.15", "F602", "update", 7},
		{[]string{service("    retry.linkerd.io/http: 5xx\n"), profile}, "", "F603", "one of the two", 7},
		{[]string{route("GRPCRoute", "gateway.networking.k8s.io", "retry.linkerd.io/http: 5xx", "")}, "", "F602", "grpc", 3},
		{[]string{service("    retry.linkerd.io/timeout: soon\n    retry.linkerd.io/http: 5xx\n")}, "", "F702", "", 7},
	} {
		f := read(t, c.version, c.texts...)
		if len(f.Remarks) != 1 || f.Remarks[0].Rule != c.rule || !strings.Contains(f.Remarks[0].Fix, c.fix) ||
			f.Remarks[0].At.Line != c.line {
			t.Errorf("%s: %+v", c.texts[0], f.Remarks)
		}
	}
	f := read(t, "", service("    retry.linkerd.io/http: 5xx\n"), profile)
	if len(f.Policies) != 0 {
		t.Errorf("annotations beside a profile hold:\n%s", f.YAML())
	}
}

func TestOtherObjectsAreNotRecognised(t *testing.T) {
	for _, text := range []string{"kind: Service\napiVersion: v1\n",
		"apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\n",
		"kind: Deployment\nmetadata: {annotations: {retry.linkerd.io/http: 5xx}}\n", "1\n"} {
		docs, _ := source.YAML("f", []byte(text))
		if linkerd.Recognise(docs[0]) {
			t.Errorf("recognised %q", text)
		}
	}
}

func FuzzReadingDoesNotPanic(f *testing.F) {
	f.Add([]byte(service("    retry.linkerd.io/http: 5xx,500-502\n") + "---\n" +
		route("HTTPRoute", "policy.linkerd.io", "retry.linkerd.io/limit: '1'", "matches: [{method: GET}]")))
	f.Add([]byte("apiVersion: linkerd.io/v1alpha2\nkind: ServiceProfile\nspec: {routes: [{isRetryable: true}]}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, _ := source.YAML("f.yaml", data)
		for _, d := range docs {
			linkerd.Recognise(d)
		}
		joined, _ := linkerd.Read(docs, source.Assume{}).Join()
		joined.YAML()
	})
}
