// Package ingress reads Kubernetes' Ingress: who is reached through it, and how often its controller tries.
//
// What an Ingress leaves out, its controller decides, so the controller has to be known: by the class of the Ingress
// and the IngressClass of that name, or by annotations that only one controller has. Known are ingress-nginx and
// Kong's. Behind others the calls are there, and nothing is said of what is repeated. One controller is one service of
// the form; the hosts of its rules are no names of it: who calls a host reaches one path of it, and not all that is
// behind it.
package ingress

import (
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/kong"
	"github.com/abate-go/abate/importer/source"
)

const (
	nginxPrefix = "nginx.ingress.kubernetes.io/"
	kongPrefix  = "konghq.com/"
)

// Recognise reports whether a document is an Ingress or an IngressClass, or has settings of a controller: a Service
// with annotations of Kong, a KongIngress, the ConfigMap of ingress-nginx.
func Recognise(d source.Document) bool {
	switch r := d.Resource(); r.Kind {
	case "Ingress":
		return r.Group == "networking.k8s.io" || r.Group == "extensions"
	case "IngressClass":
		return r.Group == "networking.k8s.io"
	case "KongIngress", "Service":
		return kong.Annotated(r)
	case "ConfigMap":
		return isConfiguration(r)
	}
	return false
}

// annotated reports whether an object has an annotation of a family.
func annotated(r source.Resource, prefix string) bool {
	return slices.ContainsFunc(r.Root.Get("metadata", "annotations").Pairs(), func(p source.Pair) bool {
		return strings.HasPrefix(p.Key, prefix)
	})
}
