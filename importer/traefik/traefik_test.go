package traefik_test

import (
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/importer/traefik"
	"github.com/abate-go/abate/topology"
)

func read(t *testing.T, version, text string) topology.Form {
	t.Helper()
	docs, _ := source.YAML("t.yaml", []byte(text))
	for _, d := range docs {
		if !traefik.Recognise(d) {
			t.Errorf("not recognised: %s", d.Data)
		}
	}
	return traefik.Read(docs, source.Assume{Versions: map[string]string{"traefik": version}})
}

const file = `http:
  routers:
    web:
      rule: Host(` + "`shop.example`) && PathPrefix(`/api`)" + `
      middlewares: [again@file]
      service: orders
    other: {rule: "PathPrefix(` + "`/`" + `)", service: stock@file}
  middlewares:
    again: {chain: {middlewares: [four]}}
    four:
      retry:
        attempts: 4
        initialInterval: 100ms
        status: ["500-599", "429"]
    idle: {retry: {attempts: 2}}
  services:
    orders:
      loadBalancer:
        serversTransport: slow
        servers: [{url: "http://orders-1:80"}, {url: "http://orders-2:80"}]
    stock: {loadBalancer: {servers: [{url: "http://stock:8080"}]}}
  serversTransports:
    slow: {forwardingTimeouts: {responseHeaderTimeout: 3s}}
`

func TestAttemptsCountTheFirstTry(t *testing.T) {
	f := read(t, "3.7.1", file)
	if len(f.Calls) != 2 || f.Calls[0].To != "orders" || f.Calls[1].To != "stock" {
		t.Fatalf("%s", f.YAML())
	}
	orders, stock := f.Calls[0].Layers[0], f.Calls[1].Layers[0]
	for _, c := range []struct{ got, want string }{
		{orders.Repeats[0].Tries.String(), "4 (t.yaml:12:19)"},
		{orders.Backoff.First.String() + ", " + orders.Backoff.Max.String(),
			"100ms (t.yaml:13:26), 200ms (default of Traefik 3.7.1, twice the first; t.yaml:12:9)"},
		{orders.PerTry.String(), "3s (t.yaml:23:56)"},
		{stock.PerTry.String(), "none (default of Traefik 3.7.1; t.yaml:7:5)"},
		{orders.Match.Host + orders.Match.Path, "shop.example/api*"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
	for _, c := range []struct {
		o    topology.Outcome
		m    topology.Methods
		want int
	}{{topology.Refused, topology.Unsafe, 4}, {topology.S503, topology.Safe, 4}, {topology.S503, topology.Unsafe, 1},
		{topology.ResetSent, topology.Safe, 1}, {topology.Hang, topology.Safe, 1}, {topology.S429, topology.Safe, 4}} {
		if got := orders.Tries(c.o, c.m).N; got != c.want {
			t.Errorf("%v %v: %d tries, want %d", c.o, c.m, got, c.want)
		}
	}
	if len(f.Remarks) != 1 || f.Remarks[0].Rule != "F602" || f.Remarks[0].At.String() != "t.yaml:15:19" {
		t.Errorf("%+v", f.Remarks)
	}
	f = read(t, "3.2", file)
	if l := f.Calls[0].Layers[0]; l.Tries(topology.S503, topology.Safe).N != 1 || f.Remarks[0].Rule != "F601" {
		t.Errorf("before 3.7: %+v", f.Remarks)
	}
}

func TestResourcesAndLabelsAreRead(t *testing.T) {
	f := read(t, "3.7", `apiVersion: traefik.io/v1alpha1
kind: Middleware
metadata: {name: again, namespace: shop}
spec: {retry: {attempts: 3, timeout: 5}}
---
apiVersion: traefik.io/v1alpha1
kind: IngressRoute
metadata: {name: web, namespace: shop}
spec:
  routes:
    - {match: "Path('/x')", middlewares: [{name: again}], services: [{name: Orders, port: 80}]}
---
services:
  stock:
    image: stock
    labels:
      - "traefik.http.routers.stock.rule=PathPrefix('/stock')"
      - "traefik.http.routers.stock.middlewares=tw@docker"
      - traefik.http.middlewares.tw.retry.attempts=2
`)
	if len(f.Calls) != 2 || len(f.Remarks) != 0 || f.Calls[0].To != "orders.shop" || f.Calls[1].To != "stock" {
		t.Fatalf("%s", f.YAML())
	}
	orders, stock := f.Calls[0].Layers[0], f.Calls[1].Layers[0]
	if orders.Tries(topology.Refused, topology.Safe).N != 3 || orders.Overall.V != 5*time.Second ||
		stock.Tries(topology.Refused, topology.Safe).N != 2 || stock.Repeats[0].Tries.At.Line != 19 {
		t.Errorf("%s", f.YAML())
	}
}

func TestARetryWithoutAttemptsIsRefused(t *testing.T) {
	f := read(t, "3.7", "http: {routers: {a: {service: b, middlewares: m}}, middlewares: {m: {retry: {}}}, "+
		"services: {b: {loadBalancer: {servers: [{url: 'http://b'}]}}}}\n")
	if len(f.Remarks) != 1 || f.Remarks[0].Rule != "F606" || f.Calls[0].Layers[0].Repeats != nil {
		t.Errorf("%s", f.YAML())
	}
}

func TestARetryOfNoAttemptsIsRefused(t *testing.T) {
	f := read(t, "3.7", "http: {routers: {a: {service: b, middlewares: m}}, middlewares: {m: {retry: {attempts: 0}}}, "+
		"services: {b: {loadBalancer: {servers: [{url: 'http://b'}]}}}}\n")
	if len(f.Remarks) != 1 || f.Remarks[0].Rule != "F606" || f.Remarks[0].At.Column == 0 ||
		f.Calls[0].Layers[0].Repeats != nil {
		t.Errorf("%s", f.YAML())
	}
}

// A retry middleware acts on an Ingress that names it, with the namespace before a dash.
func TestAnIngressNamesMiddlewares(t *testing.T) {
	const again = "apiVersion: traefik.io/v1alpha1\nkind: Middleware\nmetadata: {name: again, namespace: my-shop}\n" +
		"spec: {retry: {attempts: 4}}\n"
	const web = `---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web
  namespace: my-shop
  annotations:
    traefik.ingress.kubernetes.io/router.middlewares: my-shop-again@kubernetescrd, other@file
spec:
  ingressClassName: traefik
  defaultBackend: {service: {name: "{{ .Values.web }}"}}
  rules:
  - host: shop.example
    http:
      paths:
      - {path: /api, pathType: Prefix, backend: {service: {name: api, port: {number: 80}}}}
      - {path: /one, pathType: Exact, backend: {service: {name: one, port: {number: 80}}}}
`
	f := read(t, "3.7", again+web)
	if len(f.Calls) != 2 || len(f.Remarks) > 0 || f.Calls[0].From != "traefik" || f.Calls[0].To != "api.my-shop" ||
		f.Calls[0].At.String() != "t.yaml:20:49" || f.Calls[1].Layers[0].Match.Path != "/one" {
		t.Fatalf("%s", f.YAML())
	}
	l := f.Calls[0].Layers[0]
	if l.Repeats[0].Tries.String() != "4 (t.yaml:4:26)" || l.Match.Host+l.Match.Path != "shop.example/api*" {
		t.Errorf("%s", f.YAML())
	}
	if f := read(t, "3.7", again); len(f.Remarks) != 1 {
		t.Errorf("a middleware that nobody names: %v", f.Remarks)
	}
}

func TestARouterThatOnlyRedirectsCallsNobody(t *testing.T) {
	const labels = `services:
  web:
    image: web
    labels:
      traefik.http.routers.plain.rule: Host("shop.example")
      traefik.http.routers.plain.middlewares: toTLS
      traefik.http.middlewares.toTLS.redirectscheme.scheme: https
      traefik.http.routers.pages.service: api@internal
      traefik.http.routers.secure.rule: Host("shop.example")
      traefik.http.routers.secure.middlewares: toTLS
      traefik.http.routers.secure.tls: true
`
	const dynamic = `http:
  routers:
    plain: {middlewares: [all], service: web}
    secure: {service: web, tls: {}}
  middlewares: {all: {chain: {middlewares: [toTLS]}}, toTLS: {redirectScheme: {scheme: https}}}
  services: {web: {loadBalancer: {servers: [{url: "http://web"}]}}}
`
	for _, text := range []string{labels, dynamic} {
		f := read(t, "3.7", text)
		if len(f.Calls) != 1 || f.Calls[0].Layers[0].Name != "router secure" {
			t.Errorf("%s", f.YAML())
		}
	}
	f := read(t, "3.7", strings.Replace(labels, "tls: true", "priority: 1", 1))
	if len(f.Calls) != 2 {
		t.Errorf("the entry points may say TLS: %s", f.YAML())
	}
}

// A file laid over another one has a router of Traefik's own pages, whose service is in the other.
func TestTraefikDoesNotCallItself(t *testing.T) {
	f := read(t, "3.6", `services:
  traefik:
    image: traefik:v3.6
    labels:
      traefik.http.routers.pages.rule: Host(`+"`pages.example`"+`)
  web:
    image: web
    labels:
      traefik.http.routers.web.rule: Host(`+"`shop.example`"+`)
`)
	if len(f.Calls) != 1 || f.Calls[0].To != "web" {
		t.Errorf("%s", f.YAML())
	}
}

func FuzzTraefikIsReadWithoutAPanic(f *testing.F) {
	f.Add([]byte(file))
	f.Add([]byte("http: {middlewares: {a: {chain: {middlewares: [a, a]}, retry: {attempts: x}}}, routers: {r: " +
		"{middlewares: [a], service: s}}, " +
		"services: {s: {weighted: {services: [{name: s}]}}}}\n---\nservices: {x: {labels: {traefik.http.routers.a.rule: " +
		"1}}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, _ := source.YAML("f", data)
		for _, d := range docs {
			traefik.Recognise(d)
		}
		for _, c := range traefik.Read(docs, source.Assume{}).Calls {
			if c.To == "" {
				t.Error("a call to nobody")
			}
		}
	})
}

// Limits that Traefik starts with hold for every call without a transport of its own, wherever they stand.
func TestLimitsThatTraefikStartsWithAreThoseOfEveryCall(t *testing.T) {
	const route = `
---
apiVersion: traefik.io/v1alpha1
kind: IngressRoute
metadata: {name: web, namespace: shop}
spec: {routes: [{match: "Path('/x')", services: [{name: orders, port: 80}]}]}
`
	const own = "---\napiVersion: traefik.io/v1alpha1\nkind: ServersTransport\nmetadata: {name: own, namespace: shop}\n" +
		"spec: {forwardingTimeouts: {dialTimeout: 1s}}\n"
	const argument = `"--serversTransport.forwardingTimeouts.responseHeaderTimeout=30s"`
	const release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nspec: {values: {additionalArguments: [" +
		argument + "]}}"
	for _, c := range []struct {
		name, text string
		want       time.Duration
		unknown    bool
	}{
		{"values of the chart", "additionalArguments: [" + argument + "]" + route, 30 * time.Second, false},
		{"a release of Flux", release + route, 30 * time.Second, false},
		{"a workload", "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {containers: [{args: [" + argument +
			"]}]}}}" + route, 30 * time.Second, false},
		{"a compose file", "services: {traefik: {image: traefik, command: [" + argument + "]}}" + route, 30 * time.Second,
			false},
		{"its own file", "serversTransport: {forwardingTimeouts: {responseHeaderTimeout: 30s}}" + route, 30 * time.Second,
			false},
		{"two that differ", "serversTransport: {forwardingTimeouts: {responseHeaderTimeout: 9s}}\n---\n" + release + route, 0,
			true},
		{"a transport of its own", release + strings.Replace(route, "port: 80", "port: 80, serversTransport: own", 1) + own,
			0, false},
	} {
		f := read(t, "3.7", c.text)
		if len(f.Calls) != 1 || len(f.Remarks) != 0 {
			t.Errorf("%s: %s", c.name, f.YAML())
			continue
		}
		limit := f.Calls[0].Layers[0].PerTry
		if v, known := limit.Get(); v != c.want || known == c.unknown {
			t.Errorf("%s: %v, want %v", c.name, limit, c.want)
		}
	}
}

// An annotation that a program puts together may name a middleware that no router is seen to use.
func TestAMiddlewareThatATextNamesIsNotUnused(t *testing.T) {
	docs, _ := source.YAML("t.yaml", []byte("apiVersion: traefik.io/v1alpha1\nkind: Middleware\n"+
		"metadata: {name: again, namespace: shop}\nspec: {retry: {attempts: 3}}\n"))
	for names, remarks := range map[string]int{"shop-again@kubernetescrd": 0, "shop-other@kubernetescrd": 1} {
		f := traefik.Read(docs, source.Assume{Mentions: func(text string) bool { return strings.Contains(names, text) }})
		if len(f.Remarks) != remarks {
			t.Errorf("%s: %+v", names, f.Remarks)
		}
	}
}

func TestExpressionsOfTerraformAreCalledAfterWhatTheyReferTo(t *testing.T) {
	for name, want := range map[string]string{
		"${kubernetes_service.web.metadata[0].name}":                                  "web.shop",
		"${local.is_old ? var.old : one(kubernetes_service.new[*].metadata[0].name)}": "(is_old).shop",
		"${var.name}-web": "(name)-web.shop",
		"web":             "web.shop",
	} {
		f := read(t, "3.7", "apiVersion: traefik.io/v1alpha1\nkind: IngressRoute\nmetadata: {name: a, namespace: "+
			"'${kubernetes_namespace_v1.shop.metadata[0].name}'}\nspec: {routes: [{match: \"Path('/x')\", services: [{name: '"+
			name+"'}]}]}\n")
		if len(f.Calls) != 1 || f.Calls[0].To != want {
			t.Errorf("%s: want %s\n%s", name, want, f.YAML())
		}
	}
}
