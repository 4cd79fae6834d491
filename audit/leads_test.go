package audit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/importer/source"
)

// pods is a Deployment that calls something, with a Service of its own.
func pods(name, calls string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: shop}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: c, image: "shop/%[1]s", env: [{name: TARGET, value: "%[2]s"}]}]}
---
`, name, calls) + service(name, "{app: "+name+"}")
}

func service(name, selector string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s, namespace: shop}\nspec: {selector: %s, "+
		"ports: [{port: 80, name: http}]}\n---\n", name, selector)
}

func virtualService(host string, attempts int, destinations ...string) string {
	routes := make([]string, len(destinations))
	for i, d := range destinations {
		routes[i] = "{destination: {host: " + d + "}}"
	}
	return fmt.Sprintf("apiVersion: networking.istio.io/v1\nkind: VirtualService\n"+
		"metadata: {name: %[1]s, namespace: shop}\nspec:\n  hosts: [%[1]s]\n  http:\n  - route: [%[2]s]\n"+
		"    retries: {attempts: %[3]d, retryOn: \"5xx,connect-failure\"}\n---\n",
		host, strings.Join(routes, ", "), attempts)
}

// Whoever calls a service by another of its names, or by a name that a route leads to it, reaches what it calls too.
func TestThePathGoesOnBehindANameThatLeadsToAnotherService(t *testing.T) {
	all := pods("web", "http://api") + pods("blue", "http://store") + pods("green", "http://store") + pods("store", "") +
		virtualService("store", 4, "store")
	for name, text := range map[string]string{
		"two Services of the same pods":    all + service("api", "{app: blue}") + virtualService("api", 11, "api"),
		"a route to another Service":       all + service("api", "{}") + virtualService("api", 11, "blue"),
		"a route for a name of no Service": all + virtualService("api", 11, "blue"),
		"a route to two Services":          all + service("api", "{}") + virtualService("api", 11, "blue", "green"),
		"a canary":                         all + service("api", "{}") + virtualService("api", 11, "api", "blue"),
		"a route of the Gateway API": all + service("api", "{}") + "apiVersion: gateway.networking.k8s.io/v1\n" +
			"kind: HTTPRoute\nmetadata: {name: api, namespace: shop}\nspec:\n" +
			"  parentRefs: [{kind: Service, group: \"\", name: api, port: 80}]\n" +
			"  rules:\n  - backendRefs: [{name: blue, port: 80}]\n    retry: {attempts: 11, codes: [503]}\n",
	} {
		r := audit.Run(file(text), audit.Options{Assume: source.Assume{Implementation: "istio"}})
		if r.Worst == nil || r.Worst.Service != "store.shop" || r.Worst.Most != 60 {
			t.Errorf("%s: %s", name, r.Worst.Headline())
			continue
		}
		// What was joined can be edited and audited again.
		if again := audit.Run(file(string(r.Form.YAML())), audit.Options{}); again.Worst == nil || again.Worst.Most != 60 {
			t.Errorf("%s: from the form it is %s", name, again.Worst.Headline())
		}
	}
}
