package main

import (
	"fmt"
	"net"
)

// envoyConfig is Envoy with the same policy as abate's: time limits, three retries within a budget, limits of what is
// under way, and ejection. What costs it something and nobody asked for here is off: its own request identifiers and
// x-envoy headers, which abate does not add.
func envoyConfig(m mode, addr, upstream string) (string, error) {
	listen, err := socketAddress(addr)
	if err != nil {
		return "", err
	}
	to, err := socketAddress(upstream)
	if err != nil {
		return "", err
	}
	limits := "timeout: 3s"
	attempt := ", per_try_timeout: 1s"
	if m.stream > 0 || m.chats > 0 {
		limits, attempt = "timeout: 0s", ""
	}
	retryOn, http2 := "5xx", ""
	if m.grpc {
		retryOn = "unavailable,reset"
		http2 = `    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
`
	}
	most := max(4*connections, 2*m.chats)
	return fmt.Sprintf(envoyBootstrap, listen, streamsEach, limits, retryOn, attempt, http2, most, to, copyBuffer,
		"type.googleapis.com/envoy.extensions"), nil
}

const envoyBootstrap = `static_resources:
  listeners:
  - address: %[1]s
    per_connection_buffer_limit_bytes: %[9]d
    tcp_backlog_size: 4096
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": %[10]s.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: bench
          generate_request_id: false
          stream_idle_timeout: 0s
          http2_protocol_options: {max_concurrent_streams: %[2]d}
          route_config:
            virtual_hosts:
            - name: bench
              domains: ["*"]
              routes:
              - match: {prefix: /}
                route:
                  cluster: service
                  %[3]s
                  retry_policy: {retry_on: "%[4]s", num_retries: 3%[5]s}
          http_filters:
          - name: envoy.filters.http.router
            typed_config:
              "@type": %[10]s.filters.http.router.v3.Router
              suppress_envoy_headers: true
  clusters:
  - name: service
    type: STATIC
    connect_timeout: 1s
    per_connection_buffer_limit_bytes: %[9]d
%[6]s    circuit_breakers:
      thresholds:
      - max_connections: %[7]d
        max_pending_requests: %[7]d
        max_requests: %[7]d
        retry_budget: {budget_percent: {value: 10}, min_retry_concurrency: 10}
    outlier_detection: {consecutive_5xx: 5}
    load_assignment:
      cluster_name: service
      endpoints:
      - lb_endpoints:
        - endpoint: {address: %[8]s}
`

func socketAddress(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	return fmt.Sprintf("{socket_address: {address: %s, port_value: %s}}", host, port), err
}
