package spring

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// prefixes are where the gateway's keys stand: since 2025.0 below the kind of server.
var prefixes = []string{"spring.cloud.gateway", "spring.cloud.gateway.server.webflux",
	"spring.cloud.gateway.server.webmvc",
	"spring.cloud.gateway.mvc"}

const gatewayName = "Spring Cloud Gateway"

// gateway reads the routes, and reports whether there are some.
func (a *application) gateway() bool {
	found := false
	for _, prefix := range prefixes {
		g := a.root.get(prefix)
		for _, r := range g.kid("routes").items() {
			if a.route(g, r) {
				found = true
			}
		}
	}
	return found
}

// route makes the call of one route, and reports whether it leads to a service.
func (a *application) route(g, r *tree) bool {
	uri := r.kid("uri")
	if uri == nil {
		return false
	}
	address := a.address(uri.text)
	scheme, rest, _ := strings.Cut(address, "://")
	if scheme == "no" || strings.HasPrefix(address, "forward:") {
		return false
	}
	to := source.Callee(address)
	if scheme == "lb" && source.Template(rest) == "" {
		to, _, _ = strings.Cut(strings.ToLower(rest), "/")
	}
	name := "route " + r.value("id")
	if to == "" {
		a.remark("F702", uri.here, name+" uri", "where "+uri.text+" leads could not be read",
			"give the placeholder a default, or write a "+
				"line under calls: for it")
		return false
	}
	if to == "localhost-"+a.address("${server.port:}") { // its own pages
		return false
	}
	call := topology.Call{From: a.service, To: to, At: r.at}
	filters := append(filtersOf(g.kid("default-filters"), "default-filters"), filtersOf(r.kid("filters"), name)...)
	match := matchOf(r.kid("predicates"))
	for i, f := range filters {
		if f.name == "Retry" {
			call.Layers = append(call.Layers, a.retryFilter(g, r, filters, i, match))
		}
	}
	if len(call.Layers) == 0 {
		l := a.plain(g, r, match, r.at)
		a.around(filters, len(filters), &l)
		call.Layers = []topology.Layer{l}
	}
	for i := range call.Layers { // one route of all; its filters apply one around the other
		call.Layers[i].Name = name
		call.Layers[i].Choice = "gateway " + a.service + ", filter " + strconv.Itoa(i+1)
	}
	a.form.Calls = append(a.form.Calls, call)
	return true
}

// plain is a layer with the route's limits of time.
func (a *application) plain(g, r *tree, match topology.Match, at topology.Position) topology.Layer {
	limit := func(key string, byDefault time.Duration) topology.Value[time.Duration] {
		if v := scalar(a.form, r.kid("metadata").kid(key), duration); !v.IsZero() {
			return v
		}
		v := scalar(a.form, g.kid("httpclient").kid(key), duration)
		switch {
		case v.IsZero():
			return topology.DefaultOf(byDefault, gatewayName, at)
		case v.Origin == topology.Written:
			return topology.Inherit(v.V, v.At, "httpclient")
		}
		return v
	}
	return topology.Layer{Kind: topology.Gateway, Product: "spring-cloud-gateway", At: at, Match: match,
		PerTry: limit("response-timeout", 0), Connect: limit("connect-timeout", 45*time.Second),
		Cancels: topology.DefaultOf(true, gatewayName, at),
		Answers: []topology.Answer{{After: topology.Hang, Gives: topology.S504}}}
}

// filter is one filter of a route: its name, and its arguments by name or in their order.
type filter struct {
	name  string
	of    string // the route, or the default filters
	at    topology.Position
	args  *tree
	words []*tree
}

// filtersOf reads a list of filters, each "Name=a,b" or {name, args}.
func filtersOf(list *tree, of string) []filter {
	var out []filter
	for _, item := range list.items() {
		if name := item.kid("name"); name != nil {
			out = append(out, filter{name: name.text, of: of, at: item.at, args: item.kid("args")})
			continue
		}
		name, rest, _ := strings.Cut(item.text, "=")
		f := filter{name: strings.TrimSpace(name), of: of, at: item.here}
		if rest != "" {
			for word := range strings.SplitSeq(rest, ",") {
				f.words = append(f.words, &tree{text: strings.TrimSpace(word), at: item.at, here: item.here, set: true})
			}
		}
		out = append(out, f)
	}
	return out
}

// shortcut is the order of the arguments of Retry in its short form.
var shortcut = []string{"retries", "statuses", "methods", "backoff.firstBackoff", "backoff.maxBackoff",
	"backoff.factor",
	"backoff.basedOnPreviousValue"}

// arg returns an argument of Retry by its name.
func (f *filter) arg(name string) *tree {
	if f.args != nil {
		return f.args.get(name)
	}
	if i := slices.Index(shortcut, name); i >= 0 && i < len(f.words) {
		return f.words[i]
	}
	return nil
}

// matchOf reads which requests a route is for.
func matchOf(predicates *tree) topology.Match {
	var m topology.Match
	for _, p := range predicates.items() {
		name, rest, _ := strings.Cut(p.text, "=")
		if n := p.kid("name"); n != nil {
			name = n.text
			rest = ""
			for _, arg := range []string{"pattern", "patterns", "methods"} {
				if words := p.kid("args").kid(arg).words(); len(words) > 0 {
					rest = words[0].text
				}
			}
		}
		switch first, _, _ := strings.Cut(rest, ","); strings.TrimSpace(name) {
		case "Path":
			m.Path = strings.TrimSpace(first)
			if stem, ok := strings.CutSuffix(m.Path, "/**"); ok {
				m.Path = stem + "/*"
			}
		case "Host":
			m.Host = strings.TrimSpace(first)
		case "Method":
			m.Methods = strings.FieldsFunc(rest, func(r rune) bool { return r == ',' || r == ' ' })
		}
	}
	return m
}
