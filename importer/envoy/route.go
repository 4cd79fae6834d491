package envoy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/envoywords"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// table adds the routes of a RouteConfiguration.
func (o *output) table(t table) {
	for _, host := range get(t.config, "virtual_hosts").List() {
		routes := host.Get("routes").List()
		all := source.Node{}
		for i, r := range routes {
			if all.Exists() {
				o.remarks = append(o.remarks, topology.Remark{Rule: "F602", At: r.At(),
					Subject: fmt.Sprintf("virtual host %s routes[%d]", host.Get("name").Text(), i),
					Text:    "no request reaches this route: the one at " + all.At().String() + " takes all of them",
					Fix:     "put it before that one, or remove it"})
				break
			}
			o.route(t, host, r, i)
			if catchesAll(r.Get("match")) {
				all = r
			}
		}
		o.overshadowed(host, routes)
	}
}

// catchesAll reports whether a match is for every request.
func catchesAll(match source.Node) bool {
	pairs := match.Pairs()
	return len(pairs) == 1 && pairs[0].Key == "prefix" && pairs[0].Value.Text() == "/"
}

// overshadowed remarks a virtual host's policy that every route replaces.
func (o *output) overshadowed(host source.Node, routes []source.Node) {
	policy := get(host, "retry_policy")
	own := 0
	for _, r := range routes {
		if get(r, "route", "retry_policy").Exists() || !r.Get("route").Exists() {
			own++
		}
	}
	if policy.Exists() && own == len(routes) && own > 0 {
		o.remarks = append(o.remarks, topology.Remark{Rule: "F602", At: policy.At(),
			Subject: "virtual host " + host.Get("name").Text() + " retry_policy",
			Text:    "no route uses this policy: a route's own retry_policy replaces it whole, and each has one",
			Fix:     "remove it, or repeat its values in the routes"})
	}
}

// route adds one route to the calls of its clusters.
func (o *output) route(t table, host, r source.Node, i int) {
	action := r.Get("route")
	if !action.IsMap() {
		return // a redirect or an answer of Envoy's own
	}
	layer := o.layer(t, host, r, fmt.Sprintf("virtual host %s, routes[%d]", host.Get("name").Text(), i))
	for _, mirror := range get(action, "request_mirror_policies").List() {
		copied := topology.Layer{Kind: layer.Kind, Product: layer.Product, Version: layer.Version, At: mirror.At(),
			Name: layer.Name + ", mirror", Match: layer.Match}
		o.add(mirror.Get("cluster").Text(), copied, true)
	}
	if name := action.Get("cluster"); name.Exists() {
		if tmpl := source.Template(name.Text()); tmpl != "" {
			o.unread(name, "the cluster of this route is a template: "+tmpl, "pass the file as it is rendered")
			return
		}
		o.add(name.Text(), layer, false)
		return
	}
	for _, w := range get(action, "weighted_clusters", "clusters").List() {
		o.add(w.Get("name").Text(), layer, false)
	}
	if header := get(action, "cluster_header"); header.Exists() {
		o.unread(header, "the header "+header.Text()+" of a request says which cluster gets it",
			"say in a calls file which services this route is for")
	}
}

func (o *output) unread(n source.Node, text, fix string) {
	o.remarks = append(o.remarks, topology.Remark{Rule: "F702", At: n.At(), Subject: o.proxy.name + " cluster", Text: text,
		Fix: fix})
}

// layer returns what a route says, without what its cluster says.
func (o *output) layer(t table, host, r source.Node, name string) topology.Layer {
	p, action := o.proxy, r.Get("route")
	l := topology.Layer{Kind: p.kind, Product: "envoy", Version: p.version, Name: name, At: r.At(),
		Match: match(host, r.Get("match")), Choice: "the routes of " + p.name, Answers: envoywords.Answers(),
		Cancels: topology.DefaultOf(true, p.who, r.At()), Overridable: t.overridable}
	l.Overall = envoywords.Or(read(action.Get("timeout"), source.Duration, &o.remarks),
		topology.DefaultOf(envoywords.RouteTimeout, p.who, r.At()))
	if stream := get(action, "max_stream_duration", "max_stream_duration"); stream.Exists() && l.Overall.Or(1) == 0 {
		l.Overall = read(stream, source.Duration, &o.remarks)
	}
	l.Upgrades = upgrades(get(action, "upgrade_configs"), t.upgrades)
	hedge := get(action, "hedge_policy")
	if !hedge.Exists() {
		hedge = get(host, "hedge_policy")
	}
	l.Beside = read(get(hedge, "hedge_on_per_try_timeout"), source.Bool, &o.remarks)
	policy, outer := get(action, "retry_policy"), false
	if !policy.Exists() {
		policy, outer = get(host, "retry_policy"), true
	}
	if policy.Exists() {
		o.retries(&l, policy, name)
		if outer {
			inherit(&l, "virtual host "+host.Get("name").Text())
		}
	}
	return l
}

// upgrades reports whether requests may become connections that stay open: the route says it, or the listener.
func upgrades(all ...source.Node) (v value[bool]) {
	for _, configs := range all {
		for _, c := range configs.List() {
			if get(c, "upgrade_type").Exists() && c.Get("enabled").Text() != "false" {
				return topology.Write(true, c.At())
			}
		}
	}
	return v
}

// inherit marks what a route takes from its virtual host.
func inherit(l *topology.Layer, from string) {
	for i := range l.Repeats {
		inherited(&l.Repeats[i].Tries, from)
	}
	inherited(&l.PerTry, from)
	inherited(&l.Backoff.First, from)
	inherited(&l.Backoff.Max, from)
}

func inherited[T scalar](v *value[T], from string) {
	if v.Origin == topology.Written {
		v.Origin, v.Why = topology.Inherited, from
	}
}

// match returns what a route is for.
func match(host, m source.Node) topology.Match {
	var out topology.Match
	if domains := host.Get("domains").Texts(); !slices.Contains(domains, "*") {
		out.Host = strings.Join(domains, ", ")
	}
	switch prefix := m.Get(both("path_separated_prefix") + "|prefix").Text(); {
	case prefix != "" && prefix != "/":
		out.Path = prefix + "*"
	case m.Get("path").Exists():
		out.Path = m.Get("path").Text()
	case get(m, "safe_regex", "regex").Exists():
		out.Path = "~" + get(m, "safe_regex", "regex").Text()
	}
	var other []string
	for _, h := range m.Get("headers").List() {
		if methods := methodsOf(h); len(methods) > 0 {
			out.Methods = append(out.Methods, methods...)
			continue
		}
		word := "header "
		if get(h, "invert_match").Text() == "true" || get(h, "present_match").Text() == "false" {
			word = "no header "
		}
		other = append(other, word+h.Get("name").Text())
	}
	for _, q := range get(m, "query_parameters").List() {
		other = append(other, "query parameter "+q.Get("name").Text())
	}
	if m.Get("grpc").Exists() {
		other = append(other, "gRPC")
	}
	if get(m, "runtime_fraction").Exists() {
		other = append(other, "a share of the requests")
	}
	out.Other = strings.Join(other, ", ")
	return out
}

// methodsOf returns the method that a header matcher is for, if it is about the method.
func methodsOf(h source.Node) []string {
	if h.Get("name").Text() != ":method" || get(h, "invert_match").Text() == "true" {
		return nil
	}
	for _, exact := range []source.Node{get(h, "exact_match"), get(h, "string_match", "exact")} {
		if exact.Exists() {
			return []string{exact.Text()}
		}
	}
	return nil
}
