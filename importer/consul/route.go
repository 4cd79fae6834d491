package consul

import (
	"fmt"
	"strings"

	"github.com/abate-go/abate/importer/envoywords"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// httpRoute reads the rules of an http-route: calls of its gateways to the services of each.
func (r *reader) httpRoute(name string, spec source.Node) {
	for _, parent := range get(spec, "Parents").List() {
		gateway, known := r.name(get(parent, "Name"))
		if !known || gateway == "" {
			continue
		}
		r.gateway(gateway, spec.At())
		for i, rule := range get(spec, "Rules").List() {
			l := r.layer(fmt.Sprintf("http-route %s, Rules[%d]", name, i), rule.At())
			l.Kind, l.Choice = topology.Gateway, "the routes of the gateway"
			filters := get(rule, "Filters")
			l.Overall = r.timeout(get(get(filters, "TimeoutFilter"), "RequestTimeout"), rule.At())
			r.form.Remarks = append(r.form.Remarks,
				envoywords.ConsulRetries(&l, get(filters, "RetryFilter"), r.who)...)
			for _, m := range routeMatches(get(rule, "Matches")) {
				l.Match = m
				l.Match.Host = strings.Join(get(spec, "Hostnames").Texts(), ", ")
				r.calls(gateway, get(rule, "Services"), l)
			}
		}
	}
}

// gateway adds a gateway to the form the first time.
func (r *reader) gateway(name string, at topology.Position) {
	if !r.gateways[name] {
		r.gateways[name] = true
		r.form.Services = append(r.form.Services, topology.Service{Name: name, At: at,
			AnswersWith: topology.DefaultOf("same", r.who, at), Cancels: topology.DefaultOf(true, r.who, at)})
	}
}

func (r *reader) calls(gateway string, services source.Node, l topology.Layer) {
	for _, to := range services.List() {
		if callee, known := r.name(get(to, "Name")); known && callee != "" {
			r.form.Calls = append(r.form.Calls, topology.Call{From: gateway, To: callee, At: l.At,
				Layers: []topology.Layer{l}})
		}
	}
}

// routeMatches returns the alternatives of a rule; without any, all requests are its.
func routeMatches(matches source.Node) []topology.Match {
	all := make([]topology.Match, 0, len(matches.List()))
	for _, n := range matches.List() {
		var m topology.Match
		path := get(n, "Path")
		switch value := get(path, "Value").Text(); get(path, "Match").Text() {
		case "exact":
			m.Path = value
		case "prefix":
			m.Path = value + "*"
		case "regex":
			m.Path = "~" + value
		}
		if method := get(n, "Method").Text(); method != "" {
			m.Methods = []string{method}
		}
		var other []string
		for _, kind := range []string{"Headers", "Query"} {
			for _, h := range get(n, kind).List() {
				other = append(other, strings.ToLower(kind)+" "+get(h, "Name").Text())
			}
		}
		m.Other = strings.Join(other, ", ")
		all = append(all, m)
	}
	if len(all) == 0 {
		return []topology.Match{{}}
	}
	return all
}
