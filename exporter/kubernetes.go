package exporter

import (
	"strings"
	"time"

	"github.com/abate-go/abate/topology"
)

// documents writes one or more YAML documents for each route.
func documents(routes []Route, write func(*text, *Route)) []byte {
	t := &text{}
	routes = distinct(routes)
	for i := range routes {
		if i > 0 {
			t.line("---")
		}
		write(t, &routes[i])
	}
	return []byte(t.String())
}

// shortName is the name of a service's object: its host without the namespace.
func (r *Route) shortName() string { return yamlWord(label(strings.SplitN(r.host(), ".", 2)[0])) }

// Istio writes a VirtualService and a DestinationRule for each service.
func Istio(routes []Route) []byte {
	return documents(routes, func(t *text, r *Route) {
		virtualService(t, r, r.host())
		t.line("---")
		destinationRule(t, r, r.host())
	})
}

func virtualService(t *text, r *Route, host string) {
	l := &r.Layer
	t.line("apiVersion: networking.istio.io/v1")
	t.line("kind: VirtualService")
	t.line("metadata: {name: %s}", r.yamlName())
	t.line("spec:")
	t.line("  hosts: [%q]", host)
	t.line("  http:")
	t.line("  - route: [{destination: {host: %q}}]", host)
	set(t, l.Overall, "    timeout: %s", seconds)
	tries, _ := Tries(l)
	words, status := envoyWords(l)
	if tries < 2 || len(words)+len(status) == 0 {
		t.line("    retries: {attempts: 0} # without it Istio would retry twice")
		return
	}
	t.line("    retries:")
	t.line("      attempts: %d", tries-1)
	set(t, l.PerTry, "      perTryTimeout: %s", seconds)
	if len(status) > 0 { // Istio takes numbers among the words
		words = append(words[:len(words)-1:len(words)-1], status...)
	}
	t.line("      retryOn: %q", strings.Join(words, ","))
	set(t, l.Backoff.First, "      backoff: %s", seconds)
}

func destinationRule(t *text, r *Route, host string) {
	l := &r.Layer
	t.line("apiVersion: networking.istio.io/v1")
	t.line("kind: DestinationRule")
	t.line("metadata: {name: %s}", r.yamlName())
	t.line("spec:")
	t.line("  host: %q", host)
	t.line("  trafficPolicy:")
	t.line("    connectionPool:")
	t.line("      tcp: {connectTimeout: %s}", seconds(l.Connect.Or(10*time.Second)))
	if n := l.Limits.Requests.Or(0); n > 0 && n < topology.Unbounded {
		t.line("      http: {http2MaxRequests: %d}", n)
	}
	if ratio := share(&l.Budget); ratio > 0 {
		t.line("    retryBudget: {percent: %s, minRetryConcurrency: %d}", percent(ratio), max(1, l.Budget.Concurrent.Or(3)))
	}
	if e := &l.Ejection; e.Consecutive.Or(0) > 0 {
		t.line("    outlierDetection:")
		t.line("      consecutive5xxErrors: %d", e.Consecutive.V)
		set(t, e.Interval, "      interval: %s", seconds)
		set(t, e.Base, "      baseEjectionTime: %s", seconds)
		set(t, e.MaxShare, "      maxEjectionPercent: %s", wholePercent)
	}
}

// GatewayAPI writes an HTTPRoute for each service.
func GatewayAPI(routes []Route) []byte { return documents(routes, httpRoute) }

func httpRoute(t *text, r *Route) {
	l, e := &r.Layer, r.endpoints()[0]
	t.line("apiVersion: gateway.networking.k8s.io/v1")
	t.line("kind: HTTPRoute")
	t.line("metadata: {name: %s}", r.yamlName())
	t.line("spec:")
	t.line("  parentRefs: [{name: gateway}] # the name of your Gateway")
	t.line("  hostnames: [%q]", r.host())
	t.line("  rules:")
	t.line("  - backendRefs: [{name: %s, port: %s}]", r.shortName(), e.port)
	if l.Overall.Or(0) > 0 || l.PerTry.Or(0) > 0 {
		t.line("    timeouts:")
		set(t, l.Overall, "      request: %s", millis)
		set(t, l.PerTry, "      backendRequest: %s", millis)
	}
	if tries, _ := Tries(l); tries > 1 {
		t.line("    retry:")
		t.line("      attempts: %d", tries-1)
		if s := statuses(l); len(s) > 0 {
			t.line("      codes: [%s]", strings.Join(s, ", "))
		}
		set(t, l.Backoff.First, "      backoff: %s", millis)
	}
}

// Linkerd writes a Service with annotations for each service.
func Linkerd(routes []Route) []byte { return documents(routes, annotated) }

func annotated(t *text, r *Route) {
	l, e := &r.Layer, r.endpoints()[0]
	t.line("apiVersion: v1")
	t.line("kind: Service")
	t.line("metadata:")
	t.line("  name: %s", r.shortName())
	t.line("  annotations:")
	tries, _ := Tries(l)
	if s := statuses(l); tries > 1 && len(s) > 0 {
		t.line("    retry.linkerd.io/http: %q", strings.Join(s, ","))
	}
	if c := codes(l); tries > 1 && len(c) > 0 {
		t.line("    retry.linkerd.io/grpc: %q", strings.ToLower(strings.ReplaceAll(strings.Join(c, ","), "_", "-")))
	}
	if tries > 1 {
		t.line("    retry.linkerd.io/limit: \"%d\"", tries-1)
	}
	set(t, l.PerTry, "    retry.linkerd.io/timeout: %s", millis)
	set(t, l.Overall, "    timeout.linkerd.io/request: %s", millis)
	t.line("spec: {ports: [{port: %s}]}", e.port)
}
