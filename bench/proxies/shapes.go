package main

import (
	"fmt"
	"strings"
	"time"
)

// shape is what the requests of a load are like.
type shape struct {
	what   string
	body   int     // bytes of a POST; 0 is a GET
	fields int     // beside Host
	anew   bool    // each request on a connection of its own
	limit  float64 // what abate may cost, in HAProxy's
}

// shapes are the loads of HTTP/1.1.
var shapes = []shape{
	{what: "GET", limit: 1},
	{what: "POST of 10 KB", body: 10 * kib, limit: 1.2},
	{what: "GET, each on a connection of its own", anew: true, limit: 1.2},
	{what: "GET with 40 fields", fields: 40, limit: 1.1},
}

// header lists the fields of a request.
func (s shape) header() []string {
	var all []string
	if s.anew {
		all = append(all, "Connection: close")
	}
	if s.body > 0 {
		all = append(all, "Content-Type: application/json")
	}
	for i := range s.fields {
		all = append(all, fmt.Sprintf("X-Field-%02d: %s", i, strings.Repeat("value ", 4)+"end"))
	}
	return all
}

// request is one of them as it goes over the connection.
func (s shape) request(addr string) []byte {
	method := "GET"
	if s.body > 0 {
		method = "POST"
	}
	lines := append([]string{method + " / HTTP/1.1", "Host: " + addr}, s.header()...)
	if s.body > 0 {
		lines = append(lines, fmt.Sprintf("Content-Length: %d", s.body))
	}
	return []byte(strings.Join(lines, "\r\n") + "\r\n\r\n" + strings.Repeat("x", s.body))
}

// script has wrk make them; "" if it does so by itself.
func (s shape) script() string {
	var text strings.Builder
	if s.body > 0 {
		fmt.Fprintf(&text, "wrk.method = \"POST\"\nwrk.body = string.rep(\"x\", %d)\n", s.body)
	}
	for _, line := range s.header() {
		name, value, _ := strings.Cut(line, ": ")
		fmt.Fprintf(&text, "wrk.headers[%q] = %q\n", name, value)
	}
	return text.String()
}

// shapeMode measures what a request of a shape costs.
func shapeMode(opt options, s shape) mode {
	m := loadMode(opt)
	m.title = fmt.Sprintf("%s, ", s.what) + m.title
	m.drive = func(l *lab, addr string, duration time.Duration) (loadResult, error) {
		return l.load(s, addr, duration)
	}
	own := []promise{
		{what: "CPU per request, full policy: " + s.what, metric: cpu, peer: haproxy, limit: s.limit},
		{what: "the same", metric: cpu, peer: envoy, limit: 0.5},
	}
	if s != shapes[0] {
		m.without, m.promises = []string{ingress, traced}, nil
	}
	m.promises = append(own, m.promises...)
	return m
}
