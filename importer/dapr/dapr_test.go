package dapr_test

import (
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/importer/dapr"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

const resiliency = `apiVersion: dapr.io/v1alpha1
kind: Resiliency
metadata: {name: shop, namespace: prod}
spec:
  policies:
    timeouts: {quick: 2s}
    retries:
      forever: {policy: constant, duration: 1s}
      growing: {policy: exponential, maxInterval: 15s, maxRetries: 3}
      some: {policy: constant, maxRetries: 2, matching: {httpStatusCodes: "429, 502-504", gRPCStatusCodes: "14"}}
      DaprBuiltInServiceRetries: {policy: constant, maxRetries: 1, maxRetrys: 3}
    circuitBreakers:
      five: {trip: consecutiveFailures >= 5, timeout: 30s}
      other: {trip: requests > 9}
  targets:
    apps:
      orders: {timeout: quick, retry: forever, circuitBreaker: five}
      stock: {timeout: 500ms, retry: growing, circuitBreaker: other}
      mail: {retry: som}
      pay: {timeout: quick}
    components:
      store: {outbound: {retry: some}}
scopes: [checkout]
`

func read(t *testing.T, text string) topology.Form {
	t.Helper()
	docs, _ := source.YAML("r.yaml", []byte(text))
	if len(docs) != 1 || !dapr.Recognise(docs[0]) {
		t.Fatal("it is not recognised")
	}
	return dapr.Read(docs, source.Assume{Versions: map[string]string{"dapr": "1.14"}})
}

func layer(t *testing.T, f topology.Form, callee string) topology.Layer {
	t.Helper()
	for _, p := range f.Policies {
		if p.Callees[0] == callee {
			return p.Layer
		}
	}
	t.Fatalf("no policy for %s", callee)
	return topology.Layer{}
}

func TestWhatIsNotSaidIsRepeatedForEver(t *testing.T) {
	f := read(t, resiliency)
	orders, stock, mail, pay, store := layer(t, f, "orders"), layer(t, f, "stock"), layer(t, f, "mail"), layer(t, f,
		"pay"),
		layer(t, f, "store")
	for _, c := range []struct{ got, want string }{
		{f.Policies[0].Namespace + " " + strings.Join(f.Policies[0].Callers, " "), "prod checkout"},
		{orders.Repeats[0].Tries.String(), "unbounded (default of Dapr 1.14, which repeats for ever; r.yaml:8:16)"},
		{orders.PerTry.String(), "2s (r.yaml:6:23)"},
		{orders.Breaker.Consecutive.String(), "5 (r.yaml:13:20)"},
		{orders.Breaker.OpenFor.String(), "30s (r.yaml:13:55)"},
		{stock.PerTry.String(), "500ms (r.yaml:18:24)"},
		{stock.Repeats[0].Tries.String(), "4 (r.yaml:9:68)"},
		{stock.Overall.String(), "15m0s (default of Dapr 1.14; r.yaml:9:16)"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
	if !stock.StartsOnly || orders.StartsOnly {
		t.Errorf("the 15 minutes forbid a further try to begin and end none: %v; without them %v", stock.StartsOnly,
			orders.StartsOnly)
	}
	if !stock.Breaker.Consecutive.IsUnknown() {
		t.Errorf("an expression is taken for %s", stock.Breaker.Consecutive)
	}
	for _, c := range []struct {
		l    topology.Layer
		o    topology.Outcome
		want int
	}{{orders, topology.S4xx, topology.Unbounded}, {store, topology.S503, 3}, {store, topology.S500, 1},
		{store, topology.Unavailable, 3}, {store, topology.Internal, 1}, {mail, topology.S503, 1}, {pay,
			topology.Unavailable, 4}} {
		if got := c.l.Tries(c.o, topology.Safe).N; got != c.want {
			t.Errorf("%s %v: %d tries, want %d", c.l.Name, c.o, got, c.want)
		}
	}
	var rules []string
	for _, r := range f.Remarks {
		rules = append(rules, r.Rule+" "+r.At.String())
	}
	if got := strings.Join(rules, ", "); got != "F601 r.yaml:11:68, F604 r.yaml:11:65, F601 r.yaml:19:21" {
		t.Errorf("remarks %s", got)
	}
}

func TestAnAppWithoutARetryPolicyHasTheBuiltInOne(t *testing.T) {
	f := read(t, "apiVersion: dapr.io/v1alpha1\nkind: Resiliency\nspec: {targets: {apps: {a: {timeout: 1s}}}}\n")
	l := layer(t, f, "a")
	if l.Tries(topology.Unavailable, topology.Unsafe).N != 4 || l.Tries(topology.S500, topology.Safe).N != 1 ||
		l.Backoff.First.V != time.Second {
		t.Errorf("%s", f.YAML())
	}
}

func FuzzResourcesAreReadWithoutAPanic(f *testing.F) {
	f.Add([]byte(resiliency))
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, _ := source.YAML("f", data)
		for _, d := range docs {
			dapr.Recognise(d)
		}
		for _, p := range dapr.Read(docs, source.Assume{}).Policies {
			for _, o := range topology.AllOutcomes() {
				p.Layer.Tries(o, topology.Safe)
			}
		}
	})
}

// What is laid over another file names policies that stand there.
func TestAPatchNamesPoliciesOfAnotherFile(t *testing.T) {
	const head = "apiVersion: dapr.io/v1alpha1\nkind: Resiliency\nmetadata: {name: r}\nspec:\n"
	const targets = "  targets: {apps: {a: {timeout: slow, retry: often}}}\n"
	for policies, want := range map[string]int{"": 0, "  policies: {timeouts: {fast: 1s}}\n": 2} {
		f := read(t, head+policies+targets)
		if len(f.Remarks) != want || policies == "" && !layer(t, f, "a").PerTry.IsUnknown() {
			t.Errorf("%q: %+v", policies, f.Remarks)
		}
	}
}
