package audit_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/lint"
)

const eg = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: n}
spec: {gatewayClassName: istio}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r, namespace: n}
spec:
  parentRefs: [{name: gw}]
  rules:
  - backendRefs: [{name: web, port: 80}]
    timeouts: {request: 9s}
    retry:
      attempts: 9
      codes: [503]
`

// What a fix writes must be taken by the product. Istio, for example, refuses 0 attempts beside other keys.
func TestAFixWritesNoNumberThatTheProductRefuses(t *testing.T) {
	for _, c := range []struct{ name, file, text, want string }{
		{"istio", "vs.yaml", "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a, namespace: s}\n" +
			"spec:\n  hosts: [a]\n  http:\n  - route: [{destination: {host: a}}]\n    timeout: 9s\n" +
			"    retries:\n      attempts: 9\n      perTryTimeout: 1s # a second\n      retryOn: 5xx\n",
			"    retries:\n      attempts: 0\n       # a second\n"},
		{"istio in braces", "vs.yaml", "apiVersion: networking.istio.io/v1\nkind: VirtualService\n" +
			"metadata: {name: a, namespace: s}\nspec:\n  hosts: [a]\n  http:\n  - route: [{destination: {host: a}}]\n" +
			"    retries: {perTryTimeout: 1s, attempts: 9, retryOn: \"5xx,reset\"} # why\n",
			"    retries: { attempts: 0} # why\n"},
		{"istio alone", "vs.yaml", "apiVersion: networking.istio.io/v1\nkind: VirtualService\n" +
			"metadata: {name: a, namespace: s}\nspec:\n  hosts: [a]\n  http:\n  - route: [{destination: {host: a}}]\n" +
			"    retries:\n      attempts: 9\n", "attempts: 0"},
		{"polly", "web/appsettings.json", `{"Orders": {"Retry": {"MaxRetryAttempts": 9, "Delay": "00:00:01"},` +
			`"TotalRequestTimeout": {"Timeout": "00:10:00"}}}`, `"MaxRetryAttempts": 1,`},
		{"contour", "p.yaml", "apiVersion: projectcontour.io/v1\nkind: HTTPProxy\nmetadata: {name: p, namespace: n}\n" +
			"spec:\n  virtualhost: {fqdn: x.example.com}\n  routes:\n  - services: [{name: web, port: 80}]\n" +
			"    retryPolicy:\n      count: 9\n", "count: 1"},
		{"linkerd", "s.yaml", "apiVersion: v1\nkind: Service\nmetadata:\n  name: a\n  namespace: n\n  annotations:\n" +
			"    retry.linkerd.io/http: 5xx\n    retry.linkerd.io/limit: \"9\"\n    retry.linkerd.io/timeout: 1s\n",
			`limit: "1"`},
		{"gateway-api", "r.yaml", eg, "attempts: 1"},
		{"consul", "c.yaml", "apiVersion: consul.hashicorp.com/v1alpha1\nkind: ServiceRouter\nmetadata: {name: api}\n" +
			"spec:\n  routes:\n  - destination:\n      service: api\n      numRetries: 9\n      retryOnConnectFailure: true\n",
			"numRetries: 1"},
		{"consul in HCL", "api.hcl", "Kind = \"service-router\"\nName = \"api\"\nRoutes = [\n  { # why\n    Destination {\n" +
			"      NumRetries = 9 // nine\n      RetryOn = [\"5xx\"]\n    }\n  }\n]\n", "      NumRetries = 1 // nine\n"},
		{"consul in Terraform", "main.tf", "resource \"consul_config_entry\" \"api\" {\n  name = \"api\"\n" +
			"  kind = \"service-router\"\n  config_json = jsonencode({\n    Routes = [{ Destination = { NumRetries = 9, " +
			"RetryOn = [\"5xx\"] } }]\n  })\n}\n", "{ NumRetries = 1, RetryOn"},
		{"kong", "kong.yml", "_format_version: \"3.0\"\nservices:\n- name: a\n  url: http://a:80\n  retries: 9\n",
			"retries: 0"},
		{"traefik", "d.yml", "http:\n  routers: {a: {rule: 'Path(`/`)', middlewares: [m], service: s}}\n" +
			"  middlewares:\n    m:\n      retry:\n        attempts: 9\n" +
			"  services: {s: {loadBalancer: {servers: [{url: 'http://x:80'}]}}}\n", "attempts: 1"},
	} {
		files := []importer.File{{Name: c.file, Data: []byte(c.text)}}
		r := audit.Run(files, audit.Options{})
		before := len(r.Form.Remarks)
		r.Propose(files, lint.Options{})
		changed, left := audit.Apply(files, r.Changes)
		after, _ := importer.Read(changed, source.Assume{})
		if !strings.Contains(string(changed[0].Data), c.want) || len(left) > 0 || len(after.Remarks) > before {
			t.Errorf("%s: want %q in\n%s\nremarks %+v", c.name, c.want, changed[0].Data, after.Remarks)
		}
	}
}

// shop is a form of services that are called from outside, each with its own number in calls.yaml.
func shop(t *testing.T, calls ...string) ([]importer.File, *audit.Result) {
	t.Helper()
	files := []importer.File{{Name: "calls.yaml", Data: []byte("calls:\n" + strings.Join(calls, "\n") + "\n")}}
	r := audit.Run(files, audit.Options{})
	r.Propose(files, lint.Options{})
	changed, left := audit.Apply(files, r.Changes)
	if len(left) > 0 {
		t.Fatalf("left %v", left)
	}
	return changed, r
}

func TestPathsThatAreEquallyBadAreAllMadeShort(t *testing.T) {
	changed, r := shop(t, "- {from: a, to: b, layers: [{kind: client, repeats: [{on: [refused], tries: 20}]}]}",
		"- {from: c, to: d, layers: [{kind: client, repeats: [{on: [refused], tries: 20}]}]}",
		"- {from: e, to: f, layers: [{kind: client, repeats: [{on: [refused], tries: 7}]}]}",
		"- {from: e, to: g, layers: [{kind: client, repeats: [{on: [refused], tries: 4}]}]}")
	if got := string(changed[0].Data); strings.Count(got, "tries: 1}") != 3 || !strings.Contains(got, "tries: 4}") ||
		r.Unfinished {
		t.Errorf("got\n%s", got)
	}
}

func TestLayersBesideEachOtherAreChangedTogether(t *testing.T) {
	const layer = "{kind: client, product: resilience4j, choice: one, repeats: [{on: [refused], tries: 9}]}"
	changed, _ := shop(t, "- from: a\n  to: b\n  layers:\n  - "+layer+"\n  - "+layer)
	if got := string(changed[0].Data); strings.Count(got, "tries: 1}") != 2 {
		t.Errorf("got\n%s", got)
	}
}

func TestAPathThatNoNumberShortensHidesNoOther(t *testing.T) {
	changed, r := shop(t,
		"- {from: a, to: b, layers: [{kind: client, repeats: [{on: [refused], tries: 30 (default of X)}]}]}",
		"- {from: c, to: d, layers: [{kind: client, repeats: [{on: [refused], tries: 20}]}]}")
	if got := string(changed[0].Data); strings.Count(got, "tries: 1}") != 1 || len(r.Left) != 1 || r.After.Most != 30 {
		t.Errorf("left %q, got\n%s", r.Left, got)
	}
}

func TestALargeFormIsNotLookedAtToTheEndAndThatIsSaid(t *testing.T) {
	if testing.Short() {
		return // all that Propose may do takes ten seconds under the race detector
	}
	var calls []string
	for i := range 250 {
		n := strconv.Itoa(i)
		calls = append(calls, "- {from: a"+n+", to: b"+n+", layers: [{kind: client, repeats: [{on: [refused], tries: 20}]}]}")
	}
	_, r := shop(t, calls...)
	var text strings.Builder
	if err := audit.Text(&text, r, audit.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if !r.Unfinished || len(r.Changes) < 10 || !strings.Contains(text.String(), "not all paths were looked at") {
		t.Errorf("unfinished %t, %d changes", r.Unfinished, len(r.Changes))
	}
}

func TestAPrometheusThatDoesNotAnswerIsOneError(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	_, err := audit.Prometheus(t.Context(), nil, server.URL, "5m")
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), server.URL+" does not answer") {
		t.Errorf("%v", err)
	}
}

// A limit of a try goes with the retries beside it. Where that is what kept a caller from leaving too early, the
// retries become fewer and stay.
func TestALimitStaysThatSomebodyWaitsFor(t *testing.T) {
	const calls = `services: [{name: t, rate: 9}, {name: u, cancels: false}, {name: v}, {name: w, rate: 2}]
calls:
- {from: t, to: u, layers: [{kind: client, product: x, overall: 5s}]}
- {from: u, to: v, unsafe: true}
- {from: v, to: w, layers: [{kind: client, product: library, overall: '10s'}]}
`
	const route = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: v}
spec:
  hosts: [v]
  http:
  - route: [{destination: {host: v}}]
    retries:
      attempts: 2
      perTryTimeout: 1s
      retryOn: 5xx
`
	for limit, want := range map[string]string{"'10s'": "attempts: 0", "&wait 10s": "attempts: 1"} {
		files := []importer.File{{Name: "calls.yaml", Data: []byte(strings.Replace(calls, "'10s'", limit, 1))},
			{Name: "v.yaml", Data: []byte(route)}}
		changed := kept(t, limit, files)
		if !strings.Contains(string(changed[1].Data), want) {
			t.Errorf("%s: want %s in\n%s", limit, want, changed[1].Data)
		}
	}
}
