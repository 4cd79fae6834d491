package kuma_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abate-go/abate/importer/kuma"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// policy is a policy of a kind for calls of orders, in the form of Kubernetes.
func policy(kind, conf string) string {
	return fmt.Sprintf(`apiVersion: kuma.io/v1alpha1
kind: %s
metadata: {name: p, namespace: kuma-system}
spec:
  targetRef: {kind: Mesh}
  to:
  - targetRef: {kind: MeshService, name: orders, namespace: shop}
    default: %s
`, kind, conf)
}

func read(t testing.TB, texts ...string) topology.Form {
	t.Helper()
	var all []source.Document
	for i, text := range texts {
		docs, remarks := source.YAML(fmt.Sprintf("f%d.yaml", i), []byte(text))
		if len(remarks) > 0 {
			t.Fatalf("%v in\n%s", remarks, text)
		}
		for _, d := range docs {
			if !kuma.Recognise(d) {
				t.Fatalf("not recognised:\n%s", text)
			}
		}
		all = append(all, docs...)
	}
	return kuma.Read(all, source.Assume{})
}

// called returns the layers of the call of a service by another.
func called(t testing.TB, f topology.Form, from, to string) []topology.Layer {
	t.Helper()
	f.Services = append(f.Services, topology.Service{Name: from}, topology.Service{Name: to})
	f.Calls = append(f.Calls, topology.Call{From: from, To: to})
	joined, _ := f.Join()
	for _, c := range joined.Calls {
		if c.From == from && c.To == to && len(c.Layers) > 0 {
			return c.Layers
		}
	}
	t.Fatalf("no layer in\n%s", joined.YAML())
	return nil
}

// What Kuma gives Envoy was read in its translation, and what Envoy does with the words measured.
func TestTriesByPolicy(t *testing.T) {
	outcomes := []topology.Outcome{topology.Refused, topology.ResetSent, topology.Hang, topology.S500, topology.S503,
		topology.S429, topology.Unavailable, topology.CancelledCode}
	for _, c := range []struct {
		conf string
		want []int
	}{
		{"{}", []int{6, 6, 1, 1, 6, 1, 6, 6}},
		{"{http: {numRetries: 0}}", []int{1, 1, 1, 1, 1, 1, 6, 6}},
		{"{http: {numRetries: 2, perTryTimeout: 1s}}", []int{3, 3, 3, 1, 3, 1, 6, 6}},
		{"{http: {numRetries: 2, retryOn: ['5xx', '429']}}", []int{3, 3, 1, 3, 3, 3, 6, 6}},
		{"{http: {numRetries: 2, retryOn: ['429']}}", []int{3, 3, 1, 1, 3, 3, 6, 6}},
		{"{http: {retryOn: [ConnectFailure]}, grpc: {numRetries: 1, retryOn: [Unavailable]}}",
			[]int{6, 1, 1, 1, 1, 1, 2, 1}},
		{"{grpc: {numRetries: 1, retryOn: [Canceled, Unavailable]}}", []int{6, 6, 1, 1, 6, 1, 2, 1}},
	} {
		layers := called(t, read(t, policy("MeshRetry", c.conf)), "checkout.shop", "orders.shop")
		if len(layers) != 1 {
			t.Fatalf("%d layers", len(layers))
		}
		for i, o := range outcomes {
			if got := layers[0].Tries(o, topology.Unsafe); got.N != c.want[i] || !got.Known {
				t.Errorf("%s %v: %+v, want %d", c.conf, o, got, c.want[i])
			}
		}
	}
}

func TestEveryMeshHasPoliciesThatNobodyWrote(t *testing.T) {
	f := read(t, "apiVersion: kuma.io/v1alpha1\nkind: Mesh\nmetadata: {name: default}\n")
	l := called(t, f, "a", "b")[0]
	for _, c := range []struct{ what, got, want string }{
		{"tries", l.Repeats[0].Tries.String(), "6 (default of Kuma 2.12 for every mesh; f0.yaml:1:1)"},
		{"per try", l.PerTry.String(), "16s (default of Kuma 2.12 for every mesh; f0.yaml:1:1)"},
		{"overall", l.Overall.String(), "15s (default of Kuma 2.12 for every mesh; f0.yaml:1:1)"},
		{"in flight", l.Budget.Concurrent.String(), "3 (default of Kuma 2.12 for every mesh; f0.yaml:1:1)"},
	} {
		if c.got != c.want {
			t.Errorf("%s is %q, want %q", c.what, c.got, c.want)
		}
	}
	if got := l.Tries(topology.Hang, topology.Safe).N; got != 1 {
		t.Errorf("a hang is tried %d times, although a try may take longer than the call", got)
	}
	f = read(t, "type: Mesh\nname: default\nskipCreatingInitialPolicies: ['*']\n")
	if l := called(t, f, "a", "b")[0]; l.Tries(topology.Refused, topology.Safe).N != 1 || l.Overall.V.Seconds() != 15 {
		t.Errorf("without initial policies: %d tries, overall %s", l.Tries(topology.Refused, topology.Safe).N, l.Overall)
	}
}

func TestAWrittenPolicyIsLaidOverTheOthers(t *testing.T) {
	mesh := `type: MeshRetry
name: all
mesh: default
spec:
  to: [{targetRef: {kind: Mesh}, default: {http: {numRetries: 1}}}]
`
	f := read(t, mesh, policy("MeshRetry", "{http: {perTryTimeout: 1s}}"), policy("MeshTimeout",
		"{http: {requestTimeout: 9s}}"),
		policy("MeshCircuitBreaker", "{connectionLimits: {maxRetries: 8}, outlierDetection: {maxEjectionPercent: 50}}"))
	l := called(t, f, "a.shop", "orders.shop")[0]
	if l.Tries(topology.Refused, topology.Safe).N != 2 || l.PerTry.V.Seconds() != 1 || l.Overall.V.Seconds() != 9 ||
		l.Budget.Concurrent.V != 8 || l.Ejection.MaxShare.V != 0.5 {
		t.Errorf("%+v", l)
	}
	l = called(t, f, "a.shop", "pay.shop")[0]
	if l.Tries(topology.Refused, topology.Safe).N != 2 || l.PerTry.V.Seconds() != 16 || l.Overall.V.Seconds() != 15 {
		t.Errorf("of others: %+v", l)
	}
}

func TestAPolicyOfACallerIsForItsCallsOnly(t *testing.T) {
	text := strings.Replace(policy("MeshRetry", "{http: {numRetries: 0}}"), "{kind: Mesh}",
		"{kind: MeshSubset, tags: {kuma.io/service: checkout_shop_svc_80}}", 1)
	f := read(t, text)
	if len(f.Policies) != 2 || f.Policies[0].Callers[0] != "checkout.shop" {
		t.Fatalf("%s", f.YAML())
	}
	if l := called(t, f, "checkout.shop", "orders.shop")[0]; l.Tries(topology.Refused, topology.Safe).N != 1 {
		t.Errorf("of checkout: %+v", l.Repeats)
	}
}

func TestAPolicyOfACallerHoldsForAllItsCalls(t *testing.T) {
	f := read(t, `type: MeshRetry
name: p
mesh: default
spec:
  targetRef: {kind: MeshService, name: checkout}
  to: [{targetRef: {kind: Mesh}, default: {http: {numRetries: 1}}}]
`)
	for caller, want := range map[string]int{"checkout.shop": 2, "web.shop": 6} {
		if got := called(t, f, caller, "orders.shop")[0].Tries(topology.Refused, topology.Safe).N; got != want {
			t.Errorf("%s: %d tries, want %d", caller, got, want)
		}
	}
}

func TestWhatDoesNothingIsRemarked(t *testing.T) {
	for _, c := range []struct{ conf, fix string }{
		{"{grpc: {retryOn: [Canceled]}}", "leave it out"},
		{"{http: {retryOn: [GatewayErrors]}}", "GatewayError"},
		{"{http: {numRetry: 3}}", "numRetries"},
		{"{https: {numRetries: 3}}", "http"},
	} {
		f := read(t, policy("MeshRetry", c.conf))
		if len(f.Remarks) != 1 || f.Remarks[0].Rule != "F601" || !strings.Contains(f.Remarks[0].Fix, c.fix) ||
			f.Remarks[0].At.Line != 8 {
			t.Errorf("%s: %+v", c.conf, f.Remarks)
		}
	}
}

func FuzzReadingDoesNotPanic(f *testing.F) {
	f.Add([]byte(policy("MeshRetry", "{http: {retryOn: ['5xx', HttpMethodGet, '429']}, grpc: {retryOn: [Canceled]}}")))
	f.Add([]byte("type: Mesh\nname: default\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, _ := source.YAML("f.yaml", data)
		for _, d := range docs {
			kuma.Recognise(d)
		}
		joined, _ := kuma.Read(docs, source.Assume{}).Join()
		joined.YAML()
	})
}
