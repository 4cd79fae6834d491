package main

import (
	"fmt"
	"strings"
	"time"
)

// seconds writes a time as Envoy and nginx read it.
func seconds(d time.Duration) string { return fmt.Sprintf("%gs", d.Seconds()) }

func startHAProxy(r *rig) (caller, error) {
	addr, err := r.address()
	if err != nil {
		return nil, err
	}
	path, err := r.write("haproxy.cfg", haproxyConfig(addr, r.addresses()))
	if err != nil {
		return nil, err
	}
	return r.throughProxy(addr), r.start("haproxy", addr, []string{"haproxy", "-db", "-f", path})
}

// haproxyConfig is HAProxy as somebody sets it up who knows the service: as many requests at a server as it has
// workers, so that the queue is here, where a request that has waited too long is given up before it costs anything. A
// request may wait for what its attempt leaves of the caller's patience. Answered failures and those to connect are
// retried, a time limit is not: half of the patience is gone. Of several servers one that fails ten times in a row is
// left out until it takes a connection, which is looked at after half a second.
func haproxyConfig(addr string, endpoints []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `global
  nbthread 1
  maxconn 20000
  no strict-limits
defaults
  mode http
  timeout connect %[1]dms
  timeout client 60s
  timeout server %[1]dms
  timeout queue %[2]dms
  retries 3
  retry-on conn-failure empty-response 503
  option redispatch 1
  option abortonclose
  http-reuse always
listen arena
  bind %[3]s backlog 4096
  balance leastconn
`, attemptTimeout.Milliseconds(), (patience - attemptTimeout).Milliseconds(), addr)
	for i, e := range endpoints {
		fmt.Fprintf(&b, "  server s%d %s maxconn %d", i+1, e, workers/len(endpoints))
		if len(endpoints) > 1 {
			b.WriteString(" check inter 500ms rise 1 observe layer7 error-limit 10 on-error mark-down")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func startNginx(r *rig) (caller, error) {
	addr, err := r.address()
	if err != nil {
		return nil, err
	}
	path, err := r.write("nginx.conf", nginxConfig(addr, r.addresses()))
	if err != nil {
		return nil, err
	}
	return r.throughProxy(addr), r.start("nginx", addr, []string{"nginx", "-e", "stderr", "-p", r.dir, "-c", path})
}

// nginxConfig is nginx with what the free one has: a limit of requests at once without a queue, so it is eight times
// the workers, what they do in 0.4 s; and a retry at the next server. A lone server is listed twice, because nginx asks
// each one once: a second attempt helps in a brown-out and costs nothing when errors come at once. After a time limit
// there is none. max_fails takes a bad server out of several for a second.
func nginxConfig(addr string, endpoints []string) string {
	list, fails := endpoints, "max_fails=5 fail_timeout=1s"
	if len(list) == 1 {
		list, fails = []string{list[0], list[0]}, "max_fails=0"
	}
	var b strings.Builder
	fmt.Fprintf(&b, `daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr crit;
events { worker_connections 10000; }
http {
  access_log off;
  client_body_temp_path client_body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  upstream up {
    zone up 1m;
    least_conn;
`)
	for _, e := range list {
		fmt.Fprintf(&b, "    server %s max_conns=%d %s;\n", e, 8*workers/len(list), fails)
	}
	fmt.Fprintf(&b, `    keepalive 1000;
  }
  server {
    listen %s backlog=4096;
    location / {
      proxy_pass http://up;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_connect_timeout %s;
      proxy_read_timeout %[2]s;
      proxy_next_upstream error http_503;
      proxy_next_upstream_tries 2;
    }
  }
}
`, addr, seconds(attemptTimeout))
	return b.String()
}
