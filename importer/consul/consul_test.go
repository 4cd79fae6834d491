package consul_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/importer/consul"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

func read(t *testing.T, text string) topology.Form {
	t.Helper()
	docs, remarks := source.YAML("c.yaml", []byte(text))
	if len(remarks) > 0 {
		t.Fatal(remarks)
	}
	for _, d := range docs {
		if !consul.Recognise(d) {
			t.Fatalf("not recognised:\n%s", d.Data)
		}
	}
	return consul.Read(docs, source.Assume{})
}

func router(destination string) string {
	return "apiVersion: consul.hashicorp.com/v1alpha1\nkind: ServiceRouter\nmetadata: {name: orders}\nspec:\n" +
		"  routes:\n" +
		"  - match: {http: {pathPrefix: /v1}}\n    destination: {" + destination + "}\n"
}

func TestARouterRepeatsWhatEnvoyIsTold(t *testing.T) {
	for destination, want := range map[string]struct {
		on    topology.Outcome
		tries int
		rule  string // of the remark
	}{
		"numRetries: 3, retryOn: [gateway-error]":    {topology.S503, 4, ""},
		"numRetries: 3, retryOnStatusCodes: [503]":   {topology.S503, 4, ""},
		"numRetries: 2, retryOnConnectFailure: true": {topology.Refused, 3, ""},
		"retryOnConnectFailure: true":                {topology.Refused, 2, ""},
		"numRetries: 0, retryOnConnectFailure: true": {topology.Refused, 2, "F604"},
		"numRetries: 5": {topology.Refused, 1, "F602"},
		"numRetries: 3, retryOn: [gateway-errror]":             {topology.S503, 1, "F601"},
		"requestTimeout: 2s":                                   {topology.S503, 1, ""},
		"numRetries: 3, retryOnConnectFailure: false":          {topology.Refused, 1, "F602"},
		"numRetries: \"{{ .n }}\", retryOn: [connect-failure]": {topology.Refused, 1, "F702"},
	} {
		f := read(t, router(destination))
		l := f.Policies[0].Layer
		if got := l.Tries(want.on, topology.Unsafe).N; got != want.tries {
			t.Errorf("%s: %d tries of %s, want %d", destination, got, want.on, want.tries)
		}
		var rules []string
		for _, r := range f.Remarks {
			rules = append(rules, r.Rule)
		}
		if got := strings.Join(rules, " "); got != want.rule {
			t.Errorf("%s: remarks %s", destination, f.Remarks)
		}
		if l.Match.Path != "/v1*" || l.Choice == "" || l.Budget.Concurrent.V != 3 {
			t.Errorf("%s: %+v", destination, l)
		}
	}
}

func TestTimeLimitsAreEnvoysUnlessTheyAreWritten(t *testing.T) {
	for limit, want := range map[string]string{
		"": "15s (default of Consul 1.22; c.yaml:6:5)", ", requestTimeout: 0s": "15s (default of Consul 1.22; c.yaml:6:5)",
		", requestTimeout: 3s": "3s (c.yaml:7:53)", ", requestTimeout: -1s": "none (c.yaml:7:53)",
	} {
		f := read(t, router("service: billing"+limit))
		if got := f.Policies[0].Layer.Overall.String(); got != want || f.Policies[0].Callees[0] != "billing" {
			t.Errorf("%q: %s, want %s", limit, got, want)
		}
	}
}

func TestEntriesOfJSONAreRead(t *testing.T) {
	f := read(t, `{"Kind": "service-router", "Name": "orders", "Routes": [{"Match": {"HTTP":
 {"PathExact": "/a", "Methods": ["GET"]}}, "Destination":
 {"RequestTimeout": "2s", "NumRetries": 2, "RetryOn": ["reset"]}}]}
---
{"Kind": "service-resolver", "Name": "orders", "RequestTimeout": "9s"}
---
{"Kind": "service-resolver", "Name": "stock", "ConnectTimeout": "1s", "RequestTimeout": "9s"}
---
{"Kind": "service-defaults", "Name": "shop", "UpstreamConfig": {"Overrides": [{"Name": "orders", "Limits":
 {"MaxConcurrentRequests": 7}, "PassiveHealthCheck": {"MaxFailures": 4, "Interval": "3s"}}]}}`)
	if len(f.Policies) != 4 || len(f.Remarks) != 1 || f.Remarks[0].Rule != "F602" {
		t.Fatalf("%s", f.YAML())
	}
	first, stock, shop := f.Policies[0].Layer, f.Policies[2], f.Policies[3]
	if first.Tries(topology.ResetSent, topology.Safe).N != 3 || first.Match.Path != "/a" ||
		len(first.Match.Methods) != 1 {
		t.Errorf("router: %+v", first)
	}
	if stock.Layer.Overall.String() != "9s (c.yaml:7:89)" || stock.Layer.Connect.V.String() != "1s" {
		t.Errorf("resolver: %+v", stock.Layer)
	}
	if shop.Callers[0] != "shop" || shop.Layer.Limits.Requests.V != 7 || shop.Layer.Ejection.Consecutive.V != 4 {
		t.Errorf("defaults: %+v", shop)
	}
}

func FuzzEntriesAreReadWithoutAPanic(f *testing.F) {
	f.Add(router("numRetries: 3, retryOn: [5xx]"))
	f.Add(`{"Kind": "service-defaults", "Name": "a", "UpstreamConfig": {"Defaults": {"Limits": 3,` +
		` "PassiveHealthCheck": []}}}`)
	f.Fuzz(func(_ *testing.T, text string) {
		docs, _ := source.YAML("x", []byte(text))
		for _, d := range docs {
			consul.Recognise(d)
		}
		consul.Read(docs, source.Assume{})
	})
}

// Who writes 0 has written it: F604 says what it comes to, and that nobody wrote the number would be wrong.
func TestANumberThatConsulPassesOverIsNoneThatNobodyWrote(t *testing.T) {
	for destination, want := range map[string]topology.Origin{
		"numRetries: 0, retryOnConnectFailure: true": topology.Inherited, "retryOnConnectFailure: true": topology.Default} {
		f := read(t, router(destination))
		if got := f.Policies[0].Layer.Repeats[0].Tries.Origin; got != want {
			t.Errorf("%s: origin %v, want %v", destination, got, want)
		}
	}
}
