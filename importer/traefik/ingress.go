package traefik

import (
	"strings"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// chosen is the annotation by which an Ingress names middlewares: "shop-again@kubernetescrd".
const chosen = "traefik.ingress.kubernetes.io/router.middlewares"

// isIngress reports whether a document is an Ingress with middlewares. Others repeat nothing.
func isIngress(d source.Document) bool {
	r := d.Resource()
	return r.Kind == "Ingress" && r.Group == "networking.k8s.io" && r.Annotation(chosen).Text() != ""
}

// ingress reads an Ingress: each path is a router.
func (c *configuration) ingress(root source.Node, in func(name, namespace string) string) {
	middlewares := plains(root.Get("metadata", "annotations").Get(chosen).Texts())
	spec := root.Get("spec")
	add := func(n source.Node, match topology.Match) {
		to := in(n.Get("service", "name").Text(), "")
		if n.Get("service", "name").Text() == "" || source.Template(to) != "" {
			return
		}
		if c.services[to] == nil {
			c.services[to] = &group{at: n.At(), hosts: []string{strings.ToLower(to)}, servers: 1}
		}
		name := in(root.Get("metadata", "name").Text(), "")
		c.routers = append(c.routers, router{name: name + " " + match.Host + match.Path, match: match, at: n.At(),
			middlewares: middlewares, services: []string{to}})
	}
	for _, rule := range spec.Get("rules").Items() {
		for _, p := range rule.Get("http", "paths").Items() {
			m := topology.Match{Host: rule.Get("host").Text(), Path: p.Get("path").Text()}
			if p.Get("pathType").Text() != "Exact" {
				m.Path += "*"
			}
			add(p.Get("backend"), m)
		}
	}
	add(spec.Get("defaultBackend"), topology.Match{})
}
