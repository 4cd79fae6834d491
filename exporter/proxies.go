package exporter

import (
	"cmp"
	"strings"
	"time"

	"github.com/abate-go/abate/topology"
)

// Nginx writes a complete configuration: an upstream and a server for each service, told apart by their names.
func Nginx(routes []Route) []byte {
	t := &text{}
	routes = distinct(routes)
	t.line("events {}")
	t.line("http {")
	for i := range routes {
		r := &routes[i]
		l := &r.Layer
		endpoints := r.endpoints()
		t.line("  upstream %s {", r.label())
		for _, e := range endpoints {
			t.line("    server %s%s;", e, nginxEjection(&l.Ejection))
		}
		t.line("  }")
		t.line("  server {")
		t.line("    listen 127.0.0.1:8080;")
		t.line("    server_name %s;", r.asked())
		t.line("    location / {")
		t.line("      proxy_pass %s://%s;", map[bool]string{true: "https", false: "http"}[endpoints[0].tls], r.label())
		set(t, l.Connect, "      proxy_connect_timeout %s;", millis)
		set(t, l.PerTry, "      proxy_read_timeout %s;", millis)
		nginxRetries(t, l)
		t.line("    }")
		t.line("  }")
	}
	t.line("}")
	return []byte(t.String())
}

func nginxEjection(e *topology.Ejection) string {
	n := e.Consecutive.Or(0)
	if n == 0 {
		return ""
	}
	return " max_fails=" + show(n) + " fail_timeout=" + show(max(1, int(e.Base.Or(10*time.Second).Seconds()))) + "s"
}

func nginxRetries(t *text, l *topology.Layer) {
	tries, safeOnly := Tries(l)
	set(t, l.Overall, "      proxy_next_upstream_timeout %s;", millis)
	if tries < 2 {
		t.line("      proxy_next_upstream off;")
		return
	}
	words := []string{}
	if repeats(l, topology.Refused) || repeats(l, topology.ResetSent) {
		words = append(words, "error")
	}
	if repeats(l, topology.Hang) {
		words = append(words, "timeout")
	}
	for _, status := range statuses(l) {
		if status != "408" && status != "409" { // nginx has no word for them
			words = append(words, "http_"+status)
		}
	}
	if !safeOnly {
		words = append(words, "non_idempotent")
	}
	if len(words) == 0 {
		words = []string{"off"}
	}
	t.line("      proxy_next_upstream %s;", strings.Join(words, " "))
	t.line("      proxy_next_upstream_tries %d;", tries)
}

// HAProxy writes a complete configuration: a frontend that chooses by the host, and a backend for each service.
func HAProxy(routes []Route) []byte {
	t := &text{}
	routes = distinct(routes)
	t.line("defaults")
	t.line("  mode http")
	t.line("  option abortonclose") // for both sides: in one section alone it does nothing
	t.line("")
	t.line("frontend abate")
	t.line("  mode http")
	t.line("  bind 127.0.0.1:8080")
	t.line("  timeout client 1m")
	for i := range routes {
		t.line("  use_backend %s if { hdr(host) -i %s }", routes[i].label(), routes[i].asked())
	}
	for i := range routes {
		haproxyBackend(t, &routes[i])
	}
	return []byte(t.String())
}

func haproxyBackend(t *text, r *Route) {
	l := &r.Layer
	tries, safeOnly := Tries(l)
	t.line("")
	t.line("backend %s", r.label())
	t.line("  mode http")
	// HAProxy wants both. Without a limit of a try, that of all tries is the one that takes nothing from it.
	t.line("  timeout connect %s", millis(cmp.Or(l.Connect.Or(0), 5*time.Second)))
	t.line("  timeout server %s", millis(cmp.Or(l.PerTry.Or(0), l.Overall.Or(0), time.Minute)))
	t.line("  retries %d", tries-1)
	if words := haproxyWords(l); tries > 1 && len(words) > 0 {
		t.line("  retry-on %s", strings.Join(words, " "))
	}
	if methods := Listed(l); tries > 1 && len(methods) > 0 {
		t.line("  http-request disable-l7-retry unless { method %s }", strings.Join(methods, " "))
	} else if tries > 1 && safeOnly {
		t.line("  http-request disable-l7-retry if METH_POST")
		t.line("  http-request disable-l7-retry if { method PATCH PUT DELETE }")
	}
	endpoints := r.endpoints()
	for i, e := range endpoints {
		tls := ""
		if e.tls {
			tls = " ssl verify required ca-file @system-ca"
		}
		limit := ""
		if n := l.Limits.Requests.Or(0); n > 0 && n < topology.Unbounded {
			limit = " maxconn " + show(max(1, n/len(endpoints))) // HAProxy's is for each server
		}
		t.line("  server s%d %s%s%s", i+1, e, limit, tls)
	}
}

func haproxyWords(l *topology.Layer) []string {
	var words []string
	if repeats(l, topology.Refused) {
		words = append(words, "conn-failure")
	}
	if repeats(l, topology.ResetSent) {
		words = append(words, "empty-response")
	}
	if repeats(l, topology.Hang) {
		words = append(words, "response-timeout")
	}
	for _, status := range statuses(l) {
		if status != "409" && status != "429" {
			words = append(words, status)
		}
	}
	return words
}
