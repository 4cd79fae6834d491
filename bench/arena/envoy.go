package main

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/abate-go/abate/bench/program"
)

// haveEnvoy looks for Envoy's program, and says how to get it.
func haveEnvoy(context.Context) error {
	_, err := program.Envoy()
	return err
}

// envoyKind is one of three configurations.
type envoyKind int

const (
	envoyPlain    envoyKind = iota // Envoy's defaults, with the rig's attempt timeout
	envoyGuarded                   // all that it has against storms, sized by somebody who knows the service
	envoyAdaptive                  // the same, but the concurrency is found out
)

func startEnvoy(kind envoyKind) func(*rig) (caller, error) {
	return func(r *rig) (caller, error) {
		addr, err := r.address()
		if err != nil {
			return nil, err
		}
		config, err := envoyConfig(kind, addr, r.addresses())
		if err != nil {
			return nil, err
		}
		path, err := r.write("envoy.yaml", config)
		if err != nil {
			return nil, err
		}
		self, err := program.Envoy()
		if err != nil {
			return nil, err
		}
		// One thread: its connection pools belong to threads, so a limit over two of them leaves one with waiting
		// requests while the other has free connections. The load needs less than a tenth of a thread.
		err = r.start("envoy", addr, []string{self, "-c", path, "--concurrency", "1", "--disable-hot-restart",
			"--log-level", "error"})
		return r.throughProxy(addr), err
	}
}

// envoyConfig is a bootstrap file.
func envoyConfig(kind envoyKind, addr string, endpoints []string) (string, error) {
	listen, err := socketAddress(addr)
	if err != nil {
		return "", err
	}
	var lines strings.Builder
	for _, e := range endpoints {
		to, err := socketAddress(e)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&lines, "        - endpoint: {address: %s}\n", to)
	}
	return fmt.Sprintf(`static_resources:
  listeners:
  - address: %s
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: arena
          route_config:
            virtual_hosts:
            - name: arena
              domains: ["*"]
              routes:
              - match: {prefix: /}
                route:
                  cluster: service
%s          http_filters:
%s          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  clusters:
  - name: service
    type: STATIC
    connect_timeout: 1s
%s    load_assignment:
      cluster_name: service
      endpoints:
      - lb_endpoints:
%s`, listen, envoyRoute(kind), envoyFilters(kind), envoyCluster(kind, len(endpoints)), lines.String()), nil
}

func socketAddress(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	return fmt.Sprintf("{socket_address: {address: %s, port_value: %s}}", host, port), err
}

// envoyRoute has the time limits and the retries. Retried is what was answered or never sent: after the time limit of
// an attempt half the caller's patience is gone, and its retry would meet the same queue. The pauses are twice Envoy's
// defaults at first and end where a third retry still fits the patience.
func envoyRoute(kind envoyKind) string {
	if kind == envoyPlain {
		return fmt.Sprintf("                  timeout: %s\n", seconds(attemptTimeout))
	}
	return fmt.Sprintf(`                  timeout: %s
                  retry_policy:
                    retry_on: connect-failure,refused-stream,reset-before-request,retriable-status-codes
                    retriable_status_codes: [503]
                    num_retries: 3
                    retry_back_off: {base_interval: 0.05s, max_interval: 0.5s}
                    retry_host_predicate:
                    - name: envoy.retry_host_predicates.previous_hosts
                      typed_config:
                        "@type": %s.retry.host.previous_hosts.v3.PreviousHostsPredicate
                    host_selection_retry_max_attempts: 3
`, seconds(patience), envoyTypes)
}

// envoyTypes begins the names of the types of Envoy's extensions.
const envoyTypes = "type.googleapis.com/envoy.extensions"

// envoyFilters are the filters before the router.
//
// Admission control refuses by the share of failures in its window. Its window is as short as it can be, a second, and
// it begins at 50 % failures instead of 5 %: with the defaults (30 s, 95 %) it refuses for half a minute after five
// seconds of trouble.
//
// Adaptive concurrency measures a minimal latency by letting few requests through, every minute, and in the middle of
// an outage too. What is minimal is known here, so it is told; the limit may be what the service can do in half an
// attempt's time.
func envoyFilters(kind envoyKind) string {
	const name = `          - name: envoy.filters.http.%s
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.%[1]s.v3.%s`
	switch kind {
	case envoyGuarded:
		return fmt.Sprintf(name, "admission_control", "AdmissionControl") + `
              enabled: {default_value: true, runtime_key: admission}
              sampling_window: 1s
              aggression: {default_value: 1, runtime_key: aggression}
              sr_threshold: {default_value: {value: 50}, runtime_key: threshold}
              success_criteria: {http_criteria: {http_success_status: [{start: 100, end: 500}]}}
`
	case envoyAdaptive:
		return fmt.Sprintf(name, "adaptive_concurrency", "AdaptiveConcurrency") + fmt.Sprintf(`
              enabled: {default_value: true, runtime_key: adaptive}
              gradient_controller_config:
                sample_aggregate_percentile: {value: 50}
                concurrency_limit_params: {max_concurrency_limit: %d, concurrency_update_interval: 0.1s}
                min_rtt_calc_params: {fixed_value: %s, request_count: 50, min_concurrency: %d, buffer: {value: 100}}
`, mostAtOnce, seconds(serviceTime), workers)
	}
	return ""
}

// mostAtOnce is what the service can do in half an attempt's time.
const mostAtOnce = int(attemptTimeout/serviceTime) * workers / 2

// envoyCluster has the limits. As many connections to an endpoint as it has workers, and as many requests that wait for
// one as are served in a quarter of a second, or in 1.25 s when all takes five times as long: that still fits the
// patience. What waits in Envoy can be given up, what waits in the service's queue cannot. The time limit of an attempt
// is the cluster's max_stream_duration: per_try_timeout counts the wait too, and then everybody is sent when his second
// is nearly over. Ejection is short, because the first to come back is the one that was ejected, and never
// takes more than half of the endpoints.
func envoyCluster(kind envoyKind, endpoints int) string {
	if kind == envoyPlain {
		return ""
	}
	perHost := ""
	waiting := 1024 // Envoy's default
	if kind == envoyGuarded {
		perHost = fmt.Sprintf("      per_host_thresholds: [{max_connections: %d}]\n", workers/endpoints)
		waiting = mostAtOnce / 2
	}
	return fmt.Sprintf(`    circuit_breakers:
      thresholds:
      - {max_connections: 1024, max_pending_requests: %d, max_requests: 1024,
         retry_budget: {budget_percent: {value: 20}, min_retry_concurrency: 3}}
%s    outlier_detection:
      consecutive_5xx: 5
      consecutive_local_origin_failure: 5
      split_external_local_origin_errors: true
      interval: 0.5s
      base_ejection_time: 1s
      max_ejection_time: 5s
      max_ejection_percent: 50
      enforcing_success_rate: 0
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http_protocol_options: {}}
        common_http_protocol_options: {max_stream_duration: %s}
`, waiting, perHost, seconds(attemptTimeout))
}
