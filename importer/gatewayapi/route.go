package gatewayapi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/envoywords"
	"github.com/abate-go/abate/importer/kong"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// parent is what a route is attached to: a gateway, or a service whose callers' sidecars have the route.
type parent struct {
	gateway source.Resource
	section string
	mesh    bool
	service string
	space   string
	at      topology.Position
	product value[string]
	who     string // whose defaults: "Envoy Gateway 1.9"; empty when nobody knows
	version value[string]
}

// titles are the products as their defaults are named, and the newest version that is known here.
var titles = map[string][2]string{istio: {"Istio", "1.31"}, envoyGateway: {"Envoy Gateway", "1.9"},
	consul: {"Consul", "1.22"}, kongController: {"Kong Ingress Controller", kong.ControllerVersion}}

// route reads one HTTPRoute or GRPCRoute.
func (r *reader) route(o source.Resource) {
	if linkerd(o) {
		return
	}
	for _, ref := range o.Spec.Get("parentRefs").Items() {
		p := r.parent(o, ref)
		if p.product.V == "linkerd" {
			continue
		}
		for i, rule := range o.Spec.Get("rules").Items() {
			r.rule(o, p, rule, i)
		}
	}
}

// linkerd reports whether a route has annotations that package linkerd reads.
func linkerd(o source.Resource) bool {
	return slices.ContainsFunc(o.Root.Get("metadata", "annotations").Pairs(), func(p source.Pair) bool {
		return strings.HasPrefix(p.Key, "retry.linkerd.io/") || strings.HasPrefix(p.Key, "timeout.linkerd.io/")
	})
}

func (r *reader) parent(o source.Resource, ref source.Node) parent {
	p := parent{at: ref.At(), section: ref.Get("sectionName").Text(),
		space: cmp.Or(ref.Get("namespace").Text(), o.Namespace)}
	switch kind := ref.Get("kind").Text(); kind {
	case "", "Gateway":
		p.gateway = r.gateway(ref.Get("name").Text(), p.space)
		p.product = r.product(p.gateway)
	default: // Service, ServiceEntry
		p.mesh, p.service = true, ref.Get("name").Text()
		p.product = r.told()
		if r.assume.Implementation == "" {
			p.product = value[string]{}
			if r.runsIstio() {
				p.product = topology.Assume(istio, "there is a Gateway of Istio")
			}
			for _, mesh := range []string{istio, "linkerd"} {
				if r.assume.Versions[mesh] != "" {
					p.product = topology.Assume(mesh, "its version was told on the command line")
				}
			}
		}
	}
	if title, known := titles[p.product.V]; known {
		p.version = r.assume.Version(p.product.V, title[1])
		p.who = title[0] + " " + p.version.V
	}
	if p.who == "" && p.product.V != "linkerd" {
		r.unknownProduct(p)
	}
	return p
}

// unknownProduct remarks once for each class that nobody knows what serves it, or what that does by itself.
func (r *reader) unknownProduct(p parent) {
	class := p.gateway.Spec.Get("gatewayClassName").Text()
	what := "gateways of class " + class
	switch {
	case p.mesh:
		what = "routes of services"
	case class == "":
		what = "gateway " + p.gateway.Name
	}
	if r.noted[what] {
		return
	}
	r.noted[what] = true
	if p.product.V != "" {
		r.remark("F702", p.at, what, "the defaults of "+p.product.V+", which serves "+what+
			", are not known here, so what it repeats is unknown", "say in a topology file what it repeats")
		return
	}
	r.remark("F702", p.at, what, "which product serves "+what+" is not known, so what it repeats is unknown",
		"say which (--assume implementation=istio, envoy-gateway or consul), or in a topology file what it repeats")
}

// rule makes calls, or policies of sidecars, of one rule: a layer for each of its matches and back ends.
func (r *reader) rule(o source.Resource, p parent, rule source.Node, i int) {
	l := topology.Layer{Kind: topology.Gateway, Product: cmp.Or(p.product.V, "gateway-api"), Version: p.version,
		Name: fmt.Sprintf("%s, rules[%d]", o, i), At: rule.At(), Choice: "the routes of the gateway"}
	if o.Kind == "GRPCRoute" {
		l.Speaks = topology.Write(topology.SpeaksGRPC, o.At)
	}
	if p.mesh {
		l.Kind, l.Choice = topology.SidecarOut, "the routes of the sidecar"
	}
	if p.who != "" {
		l.Answers, l.Cancels = envoywords.Answers(), topology.DefaultOf(true, p.who, l.At)
		l.Overridable = topology.DefaultOf(false, p.who, l.At)
	}
	switch p.product.V {
	case istio:
		r.ofIstio(&l, p, rule)
	case envoyGateway:
		r.ofEnvoyGateway(&l, o, p, rule)
	case consul:
		r.ofConsul(&l, o, p, rule)
	case kongController:
		r.ofKong(&l, rule)
	default:
		r.ofOthers(&l, rule)
	}
	for _, f := range rule.Get("filters").Items() {
		if f.Get("type").Text() == "RequestRedirect" || f.Get("requestRedirect").Exists() {
			return
		}
		if to := f.Get("requestMirror", "backendRef"); to.Exists() {
			copied := topology.Layer{Kind: l.Kind, Product: l.Product, Version: l.Version, Name: l.Name + ", mirror", At: f.At()}
			r.emit(o, p, to, copied, true)
		}
	}
	for _, m := range source.RouteMatches(rule.Get("matches")) {
		one := l
		one.Match = m
		one.Match.Host = strings.Join(o.Spec.Get("hostnames").Texts(), ", ")
		for _, to := range rule.Get("backendRefs").Items() {
			if to.Get("weight").Text() == "0" {
				continue
			}
			target := one
			if p.product.V == kongController && !p.mesh {
				target = r.behindKong(one, to.Get("name").Text(), cmp.Or(to.Get("namespace").Text(), o.Namespace))
			}
			r.budgetOf(&target, cmp.Or(to.Get("namespace").Text(), o.Namespace), to.Get("name").Text())
			r.emit(o, p, to, target, false)
		}
	}
}

// emit adds a layer to the form.
func (r *reader) emit(o source.Resource, p parent, to source.Node, l topology.Layer, mirror bool) {
	name := to.Get("name")
	if t := source.Template(name.Text()); t != "" {
		r.remark("F702", name.At(), l.Name+" backendRefs", "the back end is a template: "+t,
			"pass the file as it is rendered")
		return
	}
	if name.Text() == "" {
		return
	}
	space := cmp.Or(to.Get("namespace").Text(), o.Namespace)
	callee := source.Qualified(name.Text(), space)
	if p.mesh {
		if !mirror {
			callees, called := []string{callee}, source.Qualified(p.service, p.space)
			if called != callee {
				callees = []string{called, callee}
			}
			r.form.Leads = append(r.form.Leads, topology.Lead{From: called, To: []string{callee}, At: l.At, Route: true})
			r.form.Policies = append(r.form.Policies, topology.Policy{Callees: callees, Namespace: space, Layer: l})
		}
		return
	}
	from := r.service(p.gateway, p.at, p.who, o.Spec.Get("hostnames").Texts())
	r.form.Calls = append(r.form.Calls, topology.Call{From: from, To: callee, At: l.At, Detached: mirror,
		Layers: []topology.Layer{l}})
}
