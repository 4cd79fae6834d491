package importer

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// notRead are gateways and meshes whose objects no format reads, by the groups of these.
var notRead = []struct{ group, product string }{
	{"getambassador.io", "Emissary"}, {"gateway.solo.io", "Gloo"}, {"apisix.apache.org", "APISIX"},
	{"k8s.nginx.org", "NGINX Ingress Controller"}, {"appmesh.k8s.aws", "App Mesh"}, {"cilium.io", "Cilium"},
	{"policy.openservicemesh.io", "Open Service Mesh"}, {"zalando.org", "Skipper"}, {"flagger.app", "Flagger"},
	{"gateway.kgateway.dev", "kgateway"}, {"networking.gke.io", "GKE"}, {"gateway.nginx.org", "NGINX Gateway Fabric"},
}

// limits are keys that say how often a call is tried, or for how long.
var limits = regexp.MustCompile(`(?i)retr(y|ies)|time-?_?out`)

// routes are keys of the values of a chart that make a route of some gateway.
var routes = regexp.MustCompile(`^(?i:ingress|routes?|http_?routes?|virtual_?services?)$`)

// unread is one kind of object of a product that no format reads.
type unread struct {
	at    topology.Position
	text  string
	about string
	count int
}

// skip notes an object that sets retries or limits of time for a gateway or a mesh that an audit does not read.
func (r *reading) skip(d source.Document) {
	group, _, _ := strings.Cut(d.Root.Get("apiVersion").Text(), "/")
	kind := d.Root.Get("kind")
	if group == "helm.toolkit.fluxcd.io" && kind.Text() == "HelmRelease" && has(d.Root.Get("spec", "values"), routes, 0) {
		r.skipOne("Flux", kind, "rendered", "a route")
	}
	spec := d.Root.Get("spec")
	if kind.Text() == "Canary" { // whose analysis has limits of its own
		spec = spec.Get("service")
	}
	for _, p := range notRead {
		if p.group == group && has(spec, limits, 0) && !strings.Contains(kind.Text(), "BGP") { // which carries no requests
			r.skipOne(p.product, kind, "read", "retries or limits of time")
		}
	}
}

func (r *reading) skipOne(product string, kind source.Node, how, about string) {
	key := product + " " + kind.Text()
	if r.skipped == nil {
		r.skipped = map[string]*unread{}
	}
	if r.skipped[key] == nil {
		r.skipped[key] = &unread{at: kind.At(), text: kind.Text() + " of " + product + " is " + how, about: about}
		r.kinds = append(r.kinds, key)
	}
	r.skipped[key].count++
}

// has reports whether a node, or one below it, has a key of which an expression is true, with a value.
func has(n source.Node, key *regexp.Regexp, depth int) bool {
	if depth > 20 {
		return false
	}
	for _, p := range n.Pairs() {
		if p.Key == "networkPolicy" { // whose ingress is no route
			continue
		}
		v := p.Value
		says := v.Text() != "" || len(v.Pairs()) > 0 && v.Get("enabled").Text() != "false" || len(v.Items()) > 0
		if says && key.MatchString(p.Key) || has(v, key, depth+1) {
			return true
		}
	}
	return slices.ContainsFunc(n.Items(), func(item source.Node) bool { return has(item, key, depth+1) })
}

// notReadYet remarks what was skipped, once for each kind.
func (r *reading) notReadYet() {
	for _, kind := range r.kinds {
		u := r.skipped[kind]
		how := "this one has"
		if u.count > 1 {
			how = fmt.Sprintf("these %d have", u.count)
		}
		r.form.Remarks = append(r.form.Remarks, topology.Remark{Rule: "F702", At: u.at, Subject: "kind " + kind,
			Text: "no " + u.text + ", and " + how + " " + u.about,
			Fix: "audit what the product makes of them (helm template, a config_dump of Envoy), or say it under calls: in a " +
				"file of its own"})
	}
}

// mostNamed is how many folders of templates a remark names.
const mostNamed = 3

// notFilledIn remarks the folders of templates, all together: what is to be done about them is one thing.
func (r *reading) notFilledIn() {
	if r.templateAt == nil {
		return
	}
	text := "this file is a template and could not be read; so are others of its folder, if it has them"
	if further := r.templates[1:]; len(further) > 0 {
		named := further[:min(len(further), mostNamed)]
		text += ", and of " + strings.Join(named, ", ")
		if more := len(further) - len(named); more > 0 {
			text += fmt.Sprintf(" and %d further folder%s", more, map[bool]string{true: "s"}[more > 1])
		}
	}
	one := &r.form.Remarks[*r.templateAt]
	one.Rule, one.Subject, one.Text = "F702", "templates in "+r.templates[0], text
	one.Fix = "pass them as they are rendered: helm template … | abate audit -, kustomize build … | abate audit -"
}
