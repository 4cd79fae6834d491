package istio

import (
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

type (
	scalar                   = topology.Scalar
	value[T topology.Scalar] = topology.Value[T]
)

type resource struct{ source.Resource }

func full(name, namespace string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// reader holds the resources of all files while policies are made of them.
type reader struct {
	version  value[string]
	who      string // whose defaults: "Istio 1.31"
	mesh     mesh
	virtual  []resource // VirtualServices
	rules    []resource // DestinationRules
	gateways []resource
	index    index
	spaces   []string        // namespaces that have resources of Istio
	ambient  map[string]bool // namespaces without sidecars
	waypoint map[string]bool // namespaces of which at least a part has a waypoint
	opaque   []string        // hosts of ServiceEntries of which sidecars see no requests
	form     topology.Form
	callers  map[string]int // gateways that are services, by name: their place among the form's
}

// Read returns what the documents, all of them recognised, say, and what Istio does besides.
func Read(docs []source.Document, assume source.Assume) topology.Form {
	r := &reader{callers: map[string]int{}, ambient: map[string]bool{}, waypoint: map[string]bool{}}
	for _, d := range docs {
		r.sort(d)
	}
	r.version = r.mesh.version
	if r.version.IsZero() || r.mesh.several || assume.Versions["istio"] != "" {
		r.version = assume.Version("istio", latest)
	}
	r.who = "Istio " + r.version.V
	r.index = r.indexed()
	r.conflicts()
	for _, v := range r.virtual {
		r.service(v)
	}
	r.rulesAlone()
	r.implicit(docs)
	r.form.Remarks = source.Distinct(r.form.Remarks)
	return r.form
}

// sort puts a document where it belongs.
func (r *reader) sort(d source.Document) {
	if m := meshOf(d); m.Exists() || isInstallation(d.Root) {
		r.mesh.read(d.Root, m)
		return
	}
	res := resource{d.Resource()}
	space := res.Namespace
	if res.Kind == "Namespace" {
		space = res.Name
	}
	r.waypoint[space] = r.waypoint[space] || waypoint(d.Root)
	r.ambient[space] = r.ambient[space] || isAmbient(d.Root)
	if !strings.HasPrefix(d.Root.Get("apiVersion").Text(), "networking.istio.io/") {
		return
	}
	if !slices.Contains(r.spaces, res.Namespace) {
		r.spaces = append(r.spaces, res.Namespace)
	}
	switch res.Kind {
	case "VirtualService":
		r.virtual = append(r.virtual, res)
	case "DestinationRule":
		r.rules = append(r.rules, res)
	case "Gateway":
		r.gateways = append(r.gateways, res)
	case "ServiceEntry":
		r.entry(res)
	case "EnvoyFilter":
		r.filter(res)
	case "Sidecar":
		r.sidecar(res)
	}
}

func (r *reader) remark(rule string, at topology.Position, subject, text, fix string) {
	r.form.Remarks = append(r.form.Remarks, topology.Remark{Rule: rule, At: at, Subject: subject, Text: text, Fix: fix})
}

// read is source.Scalar, whose remarks are added to the form's.
func read[T scalar](r *reader, n source.Node, parse func(string) (T, error)) value[T] {
	v, more := source.Scalar(n, parse)
	r.form.Remarks = append(r.form.Remarks, more...)
	return v
}

// resolve returns the service that a host means in a namespace: "orders.shop".
func resolve(host, namespace string) string {
	h := topology.Strip(host)
	if namespace != "" && !strings.Contains(h, ".") && h != "*" {
		return h + "." + namespace
	}
	return h
}

// gatewaysOf returns the gateways that a VirtualService is for; "mesh" are the sidecars.
func (v resource) gatewaysOf() []source.Node { return v.Spec.Get("gateways").List() }

// atGateway reports whether a VirtualService is for a gateway, whatever else it is for.
func (v resource) atGateway() bool {
	return slices.ContainsFunc(v.gatewaysOf(), func(n source.Node) bool { return n.Text() != "mesh" })
}

func (v resource) inMesh() bool {
	all := v.gatewaysOf()
	return len(all) == 0 || slices.ContainsFunc(all, func(n source.Node) bool { return n.Text() == "mesh" })
}

// bare reports whether nothing in a namespace carries out routes: it has no sidecars, and no waypoint.
func (r *reader) bare(namespace string) bool { return r.ambient[namespace] && !r.waypoint[namespace] }

// patterns returns a pattern for the services of each namespace that has resources of Istio and proxies, and one for
// those without a namespace where files leave that of such resources out.
func (r *reader) patterns() []string {
	var out []string
	for _, s := range r.spaces {
		if s == "" || !r.bare(s) {
			out = append(out, "*."+s)
		}
	}
	if len(r.spaces) == 0 {
		return []string{"*"}
	}
	return out
}
