package istio

import (
	"fmt"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/envoywords"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

var routeKeys = []string{"name", "match", "redirect", "delegate", "rewrite", "timeout", "retries", "fault", "mirror",
	"mirrors",
	"mirrorPercent", "mirror_percent", "mirrorPercentage", "corsPolicy", "headers", "route", "directResponse"}

// route is one entry of http, with what a delegating route leaves it.
type route struct {
	name                    string
	node, match             source.Node
	timeout, retries, fault source.Node
	timeoutAt               topology.Position
	of                      resource // whose hosts and gateways it has
	namespace               string   // in which short names of destinations are looked up
}

// service reads a VirtualService. One without hosts is read where another delegates to it.
func (r *reader) service(v resource) {
	if len(v.Spec.Get("hosts").List()) == 0 {
		return
	}
	r.checkGateways(v)
	if v.inMesh() && r.bare(v.Namespace) {
		r.remark("F602", v.At, v.String()+" waypoint", "namespace "+v.Namespace+" is ambient and no file has it use a "+
			"waypoint, so nothing carries out these routes",
			"label the namespace, or the services: istio.io/use-waypoint: NAME")
	}
	all := source.Node{}
	for i, n := range v.Spec.Get("http").Items() {
		if all.Exists() {
			r.remark("F602", n.At(), fmt.Sprintf("%s http[%d]", v, i), "no request reaches this route: the one at "+
				all.At().String()+" takes all of them", "put it before that one, or remove it")
			break
		}
		own := route{fmt.Sprintf("%s, http[%d]", v, i), n, n.Get("match"), n.Get("timeout"), n.Get("retries"), n.Get("fault"),
			n.At(), v,
			v.Namespace}
		r.form.Remarks = append(r.form.Remarks, n.Unknown("Istio", own.name, routeKeys...)...)
		if to := n.Get("delegate"); to.Exists() {
			r.delegated(own, to)
			continue
		}
		r.route(own)
		if catchesAll(n.Get("match")) {
			all = n
		}
	}
}

// delegated reads the routes of the VirtualService that a route delegates to. What they leave out, the route says.
func (r *reader) delegated(outer route, to source.Node) {
	name, space := to.Get("name").Text(), to.Get("namespace").Text()
	if space == "" {
		space = outer.of.Namespace
	}
	for _, v := range r.index.delegates[full(name, space)] {
		for i, n := range v.Spec.Get("http").Items() {
			inner := outer
			inner.name, inner.node, inner.namespace = fmt.Sprintf("%s, http[%d]", v, i), n, v.Namespace
			for _, part := range []struct {
				into *source.Node
				key  string
			}{{&inner.match, "match"}, {&inner.timeout, "timeout"}, {&inner.retries, "retries"}, {&inner.fault, "fault"}} {
				if own := n.Get(part.key); own.Written() {
					*part.into = own
				}
			}
			r.route(inner)
		}
	}
}

func catchesAll(match source.Node) bool {
	all := match.List()
	if len(all) == 0 {
		return true
	}
	for _, m := range all {
		pairs := m.Pairs()
		if len(pairs) == 1 && pairs[0].Key == "uri" && pairs[0].Value.Get("prefix").Text() == "/" {
			return true
		}
	}
	return false
}

func (r *reader) layer(kind topology.Kind, name string, at topology.Position) topology.Layer {
	choice := "the routes of the sidecar"
	if kind == topology.Gateway {
		choice = "the routes of the gateway"
	}
	return topology.Layer{Kind: kind, Product: "istio", Version: r.version, Name: name, At: at, Choice: choice,
		Answers: envoywords.Answers(), Cancels: topology.DefaultOf(true, r.who, at),
		Overridable: topology.DefaultOf(false, r.who, at)}
}

// route makes policies and calls of one route: for each of its matches, destinations and gateways.
func (r *reader) route(x route) {
	if x.node.Get("redirect").Exists() || x.node.Get("directResponse").Exists() {
		return
	}
	l := r.layer(topology.SidecarOut, x.name, x.node.At())
	l.Overall = envoywords.Or(read(r, x.timeout, source.Duration), topology.DefaultOf(time.Duration(0), r.who, l.At))
	if upgrade := x.node.Get("websocketUpgrade"); upgrade.Text() == "true" { // nothing reads it; it says what it is for
		l.Upgrades = topology.Write(true, upgrade.At())
	}
	faulty := x.fault.Exists()
	if faulty && (x.retries.Exists() || x.timeout.Exists()) {
		r.remark("F602", x.fault.At(), x.name+" fault",
			"a route with a fault has neither retries nor a timeout, whatever it says",
			"remove the fault where the route must be protected")
	}
	blank := l // without retries, for mirrors
	if faulty {
		l.Overall = topology.DefaultOf(time.Duration(0), r.who+" for a route with a fault", x.fault.At())
		off := topology.DefaultOf(1, r.who+" for a route with a fault", x.fault.At())
		l.Repeats = []topology.Repeat{envoywords.Off(off, "fault", off.At)}
	}
	for _, d := range x.node.Get("route").Items() {
		to := d.Get("destination")
		layer := l
		rule, _ := r.rule(to.Get("host").Text(), x.namespace)
		hashed := r.limits(&layer, rule, to.Get("subset").Text(), to.Get("port", "number").Text())
		if !faulty {
			r.retries(&layer, x.retries, !hashed || len(x.node.Get("route").Items()) > 1)
		}
		r.emit(x, to, layer, false)
	}
	for _, m := range append(x.node.Get("mirrors").Items(), x.node.Get("mirror")) {
		to := m
		if m.Get("destination").Exists() {
			to = m.Get("destination")
		}
		if to.Get("host").Exists() {
			blank.Name, blank.At, blank.Overall = x.name+", mirror", m.At(), value[time.Duration]{}
			r.emit(x, to, blank, true)
		}
	}
}

// emit adds a layer to the form: for the sidecars as a policy, for gateways as calls of theirs.
func (r *reader) emit(x route, to source.Node, l topology.Layer, mirror bool) {
	host := to.Get("host")
	if t := source.Template(host.Text()); t != "" {
		r.remark("F702", host.At(), x.name+" destination", "the destination is a template: "+t,
			"pass the file as it is rendered")
		return
	}
	if host.Text() == "" {
		return
	}
	for _, m := range matches(x.match) {
		one := l
		one.Match = m.Match
		if subset := to.Get("subset").Text(); subset != "" {
			one.Match.Other = strings.TrimPrefix(one.Match.Other+", subset "+subset, ", ")
		}
		gateways := m.gateways
		if len(gateways) == 0 {
			gateways = x.of.gatewaysOf()
		}
		if len(gateways) == 0 {
			r.forSidecars(x, host.Text(), m, one, mirror)
		}
		for _, g := range gateways {
			if g.Text() == "mesh" {
				r.forSidecars(x, host.Text(), m, one, mirror)
				continue
			}
			r.forGateway(x, g, host.Text(), one, mirror)
		}
	}
}

// forSidecars adds a policy for each host under which sidecars know the route.
func (r *reader) forSidecars(x route, destination string, m match, l topology.Layer, mirror bool) {
	if mirror || r.bare(x.of.Namespace) {
		return // whose copies these are is not known; nothing carries out the route
	}
	callers := m.callers
	if exported := x.of.Spec.Get("exportTo").Texts(); len(callers) == 0 && len(exported) == 1 && exported[0] == "." &&
		x.of.Namespace != "" {
		callers = []string{"*." + x.of.Namespace}
	}
	r.lead(x, destination)
	for _, callees := range x.callees(destination) {
		r.form.Policies = append(r.form.Policies, topology.Policy{Callees: callees, Callers: callers, Namespace: x.namespace,
			Layer: l})
	}
}

// lead says that calls of the hosts of a route reach its destination.
func (r *reader) lead(x route, destination string) {
	for _, h := range x.of.Spec.Get("hosts").Texts() {
		if !strings.Contains(h, "*") && source.Template(h) == "" {
			r.form.Leads = append(r.form.Leads, topology.Lead{From: source.Qualified(h, x.of.Namespace),
				To: []string{source.Qualified(destination, x.namespace)}, Namespace: x.namespace, At: x.node.At(), Route: true})
		}
	}
}

// callees returns the names under which sidecars call what a route sends to a destination: a list for each service that
// these may be.
func (x route) callees(destination string) [][]string {
	var others [][]string
	itself := false
	hosts := x.of.Spec.Get("hosts").Texts()
	for _, h := range hosts {
		switch {
		case strings.Contains(h, "*") || source.Template(h) != "" || resolve(h, x.of.Namespace) == resolve(destination,
			x.namespace):
			itself = true
		case isPublic(h) && x.of.atGateway():
			itself = true // the name of the gateway; a sidecar that has the route too sends past it, to the destination
		case len(hosts) == 1:
			others = append(others, []string{source.Qualified(h, x.of.Namespace), source.Qualified(destination, x.namespace)})
		default:
			others = append(others, []string{source.Qualified(h, x.of.Namespace)})
		}
	}
	if itself {
		others = append(others, []string{destination})
	}
	return others
}
