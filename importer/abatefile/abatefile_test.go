package abatefile_test

import (
	"os"
	"strings"
	"testing"

	"github.com/abate-go/abate/importer/abatefile"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

func read(t *testing.T, text string) topology.Form {
	t.Helper()
	docs, remarks := source.YAML("policy.yaml", []byte(text))
	if len(docs) == 0 || len(remarks) > 0 || !abatefile.Recognise(docs[len(docs)-1]) {
		t.Fatalf("%s is not recognised: %v", text, remarks)
	}
	docs[len(docs)-1].Owner = "checkout"
	return abatefile.Read(docs[len(docs)-1:], source.Assume{})
}

func layer(t *testing.T, f topology.Form, callee string) topology.Layer {
	t.Helper()
	for _, p := range f.Policies {
		if p.Callees[0] == callee {
			return p.Layer
		}
	}
	t.Fatalf("no policy for %s:\n%s", callee, f.YAML())
	return topology.Layer{}
}

const file = `defaults:
  timeout: 3s
  attemptTimeout: 1s
  maxRetries: 2
  neverRetryOn: ["500"]
services:
  payments:
    initialDelay: 200ms
    jitterFactor: 0.5
    retryBudget: {ratio: 0.05}
    circuitBreaker: {failureThreshold: 5, waitDurationInOpenState: 2s}
    bulkhead: {maxConcurrentCalls: 50, maxQueue: 25}
    upstreams: ["http://payments-1.shop:8080", "http://payments-2.shop:8080"]
  mail:
    maxRetries: 1
    retryOn: ["429", connect-failure, UNAVAILABLE]
    retryMethods: [POST]
    retryOwner: none
  db:
    preset: connections
protect:
  orders:
    listen: "0.0.0.0:8080"
    upstreams: ["http://127.0.0.1:9000"]
    trustedPeers: [10.0.0.0/8]
`

func TestEachServiceIsAPolicyOfWhoeverHasTheFile(t *testing.T) {
	f := read(t, file)
	pay, mail, db := layer(t, f, "payments"), layer(t, f, "mail"), layer(t, f, "db")
	for _, c := range []struct{ got, want string }{
		{strings.Join(f.Policies[0].Callers, " "), "checkout"},
		{strings.Join(f.Policies[0].Callees, " "), "payments payments-1.shop payments-2.shop"},
		{pay.Repeats[0].Tries.String(), "3 (inherited from defaults; policy.yaml:4:15)"},
		{pay.Overall.String(), "3s (inherited from defaults; policy.yaml:2:12)"},
		{pay.Backoff.First.String(), "200ms (policy.yaml:8:19)"},
		{pay.Backoff.Max.String(), "10s (default of Abate; policy.yaml:7:3)"},
		{pay.Backoff.Jitter.String(), "±50% (policy.yaml:9:19)"},
		{pay.Budget.Ratio.String(), "0.05 (policy.yaml:10:26)"},
		{pay.Breaker.Consecutive.String(), "5 (policy.yaml:11:40)"},
		{pay.Breaker.OpenFor.String(), "2s (policy.yaml:11:68)"},
		{pay.Limits.Requests.String(), "50 (policy.yaml:12:36)"},
		{pay.Ejection.Consecutive.String(), "5 (default of Abate; policy.yaml:7:3)"},
		{pay.Owner.String(), "nearest (default of Abate; policy.yaml:7:3)"},
		{mail.Owner.String(), "none (policy.yaml:18:17)"},
		{mail.Repeats[1].At.String(), "policy.yaml:16:22"},
		{db.PerTry.String(), "5s (default of Abate; policy.yaml:19:3)"},
		{db.Overall.String(), "none (default of Abate; policy.yaml:19:3)"},
		{f.Services[0].Name + " " + f.Services[0].CallTree.String(), "orders true (policy.yaml:25:19)"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
	for _, c := range []struct {
		l    topology.Layer
		o    topology.Outcome
		m    topology.Methods
		want int
	}{
		{pay, topology.S503, topology.Safe, 3}, {pay, topology.S500, topology.Safe, 1}, {pay, topology.Hang, topology.Safe,
			3},
		{pay, topology.S503, topology.Unsafe, 1}, {pay, topology.Refused, topology.Unsafe, 3}, {pay, topology.S4xx,
			topology.Safe, 1},
		{pay, topology.Unavailable, topology.Safe, 1}, {mail, topology.S429, topology.Unsafe, 2}, {mail, topology.S503,
			topology.Unsafe, 1},
		{mail, topology.Unavailable, topology.Unsafe, 2}, {db, topology.Refused, topology.Safe, 3},
	} {
		if got := c.l.Tries(c.o, c.m); got.N != c.want || !got.Known {
			t.Errorf("%s %v %v: %+v, want %d", c.l.Name, c.o, c.m, got, c.want)
		}
	}
}

func TestMistakesAreRemarksAtTheirPlace(t *testing.T) {
	f := read(t, "# a stream\n---\nservices:\n  a:\n    maxRetries: 2\n    maxRetrys: 3\n    timeout: 5\n")
	if len(f.Remarks) != 2 || len(f.Policies) != 0 {
		t.Fatalf("%+v", f)
	}
	for i, want := range []string{"F606 policy.yaml:6:5 did you mean maxRetries?", "F606 policy.yaml:7:14"} {
		r := f.Remarks[i]
		if got := r.Rule + " " + r.At.String() + " " + r.Fix; !strings.HasPrefix(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestTheExampleIsRead(t *testing.T) {
	text, err := os.ReadFile("../../examples/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f := read(t, string(text))
	inventory := layer(t, f, "inventory-service")
	if len(f.Policies) < 3 || len(f.Remarks) > 0 || inventory.Hedge.Copies.V != 1 || inventory.Tries(topology.S503,
		topology.Safe).N < 3 {
		t.Errorf("%s", f.YAML())
	}
}

func TestOtherFilesAreNotPolicies(t *testing.T) {
	for _, text := range []string{"services: {web: {image: nginx, timeout: 3}}\n",
		"services: {web: {ports: [1]}}\nvolumes: {}\n", "kind: ConfigMap\n",
		"version: '3'\nservices: {a: {timeout: 3}}\n", "a: b\n", "defaults: {retries: 3}\n", "calls: [{from: a, to: b}]\n"} {
		docs, _ := source.YAML("f", []byte(text))
		if abatefile.Recognise(docs[0]) {
			t.Errorf("%q is taken for a policy", text)
		}
	}
}

func FuzzPoliciesAreReadWithoutAPanic(f *testing.F) {
	f.Add([]byte(file))
	f.Add([]byte("services: {a: {retryBudget: {kind: tokens, clients: 3}, retryOn: [\"4xx\", \"418\"], backoff: " +
		"none, jitter: decorrelated}}"))
	f.Add([]byte("defaults: &a {maxRetries: 1}\nservices: {b: *a, c: {<<: *a}}\nprotect: {x: *a}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, _ := source.YAML("f", data)
		for _, d := range docs {
			abatefile.Recognise(d)
		}
		for _, p := range abatefile.Read(docs, source.Assume{}).Policies {
			for _, o := range topology.AllOutcomes() {
				p.Layer.Tries(o, topology.Safe)
			}
		}
	})
}
