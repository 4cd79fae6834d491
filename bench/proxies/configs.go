package main

import (
	"fmt"
	"strings"
)

// upstreamConfig is nginx answering bodySize bytes from one process.
func upstreamConfig(addr string, clients int) string {
	return nginxMain(1, clients) + fmt.Sprintf(`  server {
    listen %s backlog=4096;
    default_type text/plain;
    location / { return 200 "%s"; }
  }
}
`, addr, strings.Repeat("x", bodySize))
}

// nginxConfig is nginx as a proxy. Without a temporary file: it would put a long body on disk.
func nginxConfig(addr, upstream string, clients int) string {
	return nginxMain(2, clients) + fmt.Sprintf(`  upstream up {
    server %s;
    keepalive %d;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
  }
  server {
    listen %s backlog=4096;
    location / {
      proxy_pass http://up;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffer_size %[4]d;
      proxy_buffers 8 %[4]d;
      proxy_max_temp_file_size 0;
    }
  }
}
`, upstream, 4*connections, addr, copyBuffer)
}

// nginxMain is what both have in common. nginx closes idle connections when less than a sixteenth of its table is
// free, so there is a quarter more than needed.
func nginxMain(workers, clients int) string {
	return fmt.Sprintf(`daemon off;
worker_processes %d;
pid nginx.pid;
error_log stderr crit;
events { worker_connections %d; }
http {
  access_log off;
  keepalive_requests 1000000000;
  keepalive_timeout 1h;
  client_body_temp_path client_body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
`, workers, clients*5/4+8*connections)
}

// haproxyConfig shares upstream connections between clients, as every other target does. Its own count of the files
// it may need is twice what it opens here, so its strict limits are off.
func haproxyConfig(addr, upstream string, clients int) string {
	return haproxyWith(addr, upstream, clients, "", "")
}

// haproxyWith adds a global setting, and says which protocol is spoken on both sides.
func haproxyWith(addr, upstream string, clients int, global, proto string) string {
	return fmt.Sprintf(`global
  nbthread 2
  maxconn %d
  no strict-limits
  tune.bufsize %d
%sdefaults
  mode http
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  timeout http-keep-alive 1h
  http-reuse always
listen proxy
  bind %s%s backlog 4096
  server up %s%s
`, clients+8*connections, copyBuffer, global, addr, proto, upstream, proto)
}

// Bounds of one call in abate's policy.
type callLimits struct{ timeout, attemptTimeout, slow string }

var (
	shortCalls = callLimits{"3s", "1s", "500ms"}
	longCalls  = callLimits{"4h", "3h", "2h"} // one answer of many gigabytes is one call
)

// repeatEcho lets the proxy repeat the gRPC calls of the load, so that it must be ready to.
const repeatEcho = `    retryMethods: ["/bench.Echo/*"]
`

// abatePolicy has every policy on, for so many calls at once at most, in front of the upstream at a URL.
func abatePolicy(upstream string, calls int, limits callLimits) string {
	return fmt.Sprintf(`services:
  bench:
    timeout: %s
    attemptTimeout: %s
    maxRetries: 3
    initialDelay: 100ms
    maxDelay: 10s
    jitter: full
    retryBudget: {kind: ratio, ratio: 0.1, window: 10s, reserve: 10}
    circuitBreaker:
      slidingWindow: 10s
      minimumNumberOfCalls: 20
      failureRateThreshold: 0.5
      failureThreshold: 10
      slowCallRateThreshold: 0.8
      slowCallDurationThreshold: %s
      waitDurationInOpenState: 1s
      rampUp: 2s
    bulkhead: {maxConcurrentCalls: %d, maxQueue: %[4]d, maxWait: 1s}
    outlierDetection: {consecutiveFailures: 5}
    upstreams: ["%[5]s"]
    routes:
      - {path: /}
`, limits.timeout, limits.attemptTimeout, limits.slow, calls, upstream)
}

// ingressPolicy has limit and shed on, in front of the upstream.
func ingressPolicy(addr, upstream string) string {
	return fmt.Sprintf(`protect:
  bench:
    listen: %s
    upstreams: ["http://%s"]
    timeout: 3s
    trustedPeers: [10.0.0.0/8, 192.168.0.0/16]
    rateLimit: {limit: 1000000/s, burst: 1000000, key: caller}
    shed: {concurrency: gradient, maxConcurrency: %d, initialConcurrency: %[3]d, minConcurrency: %d,
      maxQueue: %[3]d, queueTarget: 1s, queueInterval: 1s}
`, addr, upstream, 4*connections, 2*connections)
}
