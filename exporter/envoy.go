package exporter

import (
	"fmt"
	"strings"
	"time"

	"github.com/abate-go/abate/topology"
)

// envoyWords returns what Envoy and what is built on it repeat, as retry_on writes it, and the status codes for
// retriable-status-codes.
func envoyWords(l *topology.Layer) (words, status []string) {
	add := func(word string, on ...topology.Outcome) {
		for _, o := range on {
			if repeats(l, o) {
				words = append(words, word)
				return
			}
		}
	}
	add("connect-failure", topology.Refused)
	add("refused-stream", topology.ResetUnsent)
	add("reset-before-request", topology.ResetUnsent)
	add("reset", topology.ResetSent, topology.Hang)
	add("unavailable", topology.Unavailable)
	add("resource-exhausted", topology.ResourceExhausted)
	add("internal", topology.Internal)
	add("deadline-exceeded", topology.DeadlineExceeded)
	add("cancelled", topology.CancelledCode)
	if status = statuses(l); len(status) > 0 {
		words = append(words, "retriable-status-codes")
	}
	return words, status
}

// Envoy writes a bootstrap with one listener on port 10000, a virtual host and a cluster for each service.
func Envoy(routes []Route) []byte {
	t := &text{}
	routes = distinct(routes)
	t.line("static_resources:")
	t.line("  listeners:")
	t.line("  - name: abate")
	t.line("    address: {socket_address: {address: 127.0.0.1, port_value: 10000}}")
	t.line("    filter_chains:")
	t.line("    - filters:")
	t.line("      - name: envoy.filters.network.http_connection_manager")
	t.line("        typed_config:")
	t.line(`          "@type": %s.http_connection_manager.v3.HttpConnectionManager`,
		"type.googleapis.com/envoy.extensions.filters.network")
	t.line("          stat_prefix: abate")
	t.line("          http_filters:")
	t.line("          - name: envoy.filters.http.router")
	t.line("            typed_config:")
	t.line(`              "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router`)
	t.line("          route_config:")
	t.line("            name: abate")
	t.line("            virtual_hosts:")
	for i := range routes {
		envoyRoute(t, &routes[i])
	}
	t.line("  clusters:")
	for i := range routes {
		envoyCluster(t, &routes[i])
	}
	return []byte(t.String())
}

func envoyRoute(t *text, r *Route) {
	l := &r.Layer
	t.line("            - name: %s", r.yamlName())
	t.line("              domains: [%q, %q]", r.asked(), r.asked()+":*")
	t.line("              routes:")
	t.line("              - match: {prefix: /}")
	t.line("                route:")
	t.line("                  cluster: %s", r.yamlName())
	t.line("                  timeout: %s", seconds(l.Overall.Or(0)))
	tries, safeOnly := Tries(l)
	words, status := envoyWords(l)
	if tries < 2 || len(words) == 0 {
		return
	}
	t.line("                  retry_policy:")
	t.line("                    retry_on: %s", strings.Join(words, ","))
	if len(status) > 0 {
		t.line("                    retriable_status_codes: [%s]", strings.Join(status, ", "))
	}
	t.line("                    num_retries: %d", tries-1)
	set(t, l.PerTry, "                    per_try_timeout: %s", seconds)
	if first := l.Backoff.First.Or(0); first > 0 {
		t.line("                    retry_back_off:")
		t.line("                      base_interval: %s", seconds(max(time.Millisecond, first)))
		if m := l.Backoff.Max.Or(0); m >= first {
			t.line("                      max_interval: %s", seconds(m))
		}
	}
	methods := Listed(l)
	if len(methods) == 0 && safeOnly && sentRepeats(l) {
		methods = []string{"GET", "HEAD", "OPTIONS", "TRACE"}
	}
	if len(methods) > 0 {
		t.line("                    retriable_request_headers:")
		for _, method := range methods {
			t.line(`                    - {name: ":method", string_match: {exact: %s}}`, method)
		}
	}
}

func envoyCluster(t *text, r *Route) {
	l := &r.Layer
	endpoints := r.endpoints()
	t.line("  - name: %s", r.yamlName())
	t.line("    type: STRICT_DNS")
	t.line("    connect_timeout: %s", seconds(l.Connect.Or(5*time.Second)))
	t.line("    load_assignment:")
	t.line("      cluster_name: %s", r.yamlName())
	t.line("      endpoints:")
	t.line("      - lb_endpoints:")
	for _, e := range endpoints {
		t.line("        - endpoint: {address: {socket_address: {address: %q, port_value: %s}}}", e.host, e.port)
	}
	if endpoints[0].tls {
		t.line("    transport_socket:")
		t.line("      name: envoy.transport_sockets.tls")
		t.line("      typed_config:")
		t.line(`        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext`)
		t.line("        sni: %q", endpoints[0].host)
	}
	t.line("    circuit_breakers:")
	t.line("      thresholds:")
	t.line("      - priority: DEFAULT")
	set(t, l.Limits.Requests, "        max_requests: %s", limit)
	set(t, l.Limits.Pending, "        max_pending_requests: %s", limit)
	switch ratio := share(&l.Budget); {
	case ratio > 0:
		t.line("        retry_budget: {budget_percent: {value: %s}, min_retry_concurrency: %d}", percent(ratio),
			max(1, l.Budget.Concurrent.Or(3)))
	case l.Budget.Concurrent.Or(0) > 0:
		t.line("        max_retries: %d", l.Budget.Concurrent.V)
	default:
		t.line("        max_retries: 4294967295 # the policy has no cap; Envoy's own would be 3")
	}
	envoyEjection(t, &l.Ejection)
}

// share is the retries for a first try, or in flight for a request in flight, whichever the budget has.
func share(b *topology.Budget) float64 { return b.Ratio.Or(b.Share.Or(0)) }

func envoyEjection(t *text, e *topology.Ejection) {
	if e.Consecutive.Or(0) == 0 {
		return
	}
	t.line("    outlier_detection:")
	t.line("      consecutive_5xx: %d", e.Consecutive.V)
	set(t, e.Interval, "      interval: %s", seconds)
	set(t, e.Base, "      base_ejection_time: %s", seconds)
	set(t, e.MaxShare, "      max_ejection_percent: %s", wholePercent)
}

func limit(n int) string {
	if n == topology.Unbounded {
		return "4294967295"
	}
	return fmt.Sprint(n)
}

// percent writes a share in hundredths without a fraction that is none.
func percent(share float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.4f", share*100), "0"), ".")
}

func wholePercent(share float64) string { return fmt.Sprintf("%.0f", min(100, share*100)) }
