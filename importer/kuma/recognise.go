// Package kuma reads Kuma (and Kong Mesh): MeshRetry, MeshTimeout, MeshCircuitBreaker and Mesh, as objects of
// Kubernetes and in the universal form. Every mesh has policies that nobody wrote, which the written ones are laid
// over: 5 retries, a limit of 16 s for a try within one of 15 s for the call, and Envoy's cap of 3 retries in flight.
package kuma

import (
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/source"
)

const latest = "2.12"

var kinds = []string{"MeshRetry", "MeshTimeout", "MeshCircuitBreaker", "Mesh"}

// Recognise reports whether a document is a policy of Kuma.
func Recognise(d source.Document) bool {
	r := d.Resource()
	if r.Group == "kuma.io" {
		return slices.Contains(kinds, r.Kind)
	}
	kind := d.Root.Get("type").Text()
	return slices.Contains(kinds, kind) && d.Root.Get("name").Exists() && !d.Root.Get("apiVersion").Exists() &&
		(kind == "Mesh" || d.Root.Get("spec").IsMap())
}

// resource returns a document of either form as an object of Kubernetes.
func resource(d source.Document) source.Resource {
	r := d.Resource()
	if kind := d.Root.Get("type").Text(); r.Kind == "" && kind != "" {
		r.Kind, r.Name = kind, d.Root.Get("name").Text()
		if !r.Spec.Exists() {
			r.Spec = d.Root
		}
	}
	return r
}

// service returns the service that a target names. Universal names have the namespace in them: orders_shop_svc_8080.
func service(target source.Node) string {
	return named(target.Get("name").Text(), target)
}

func named(name string, target source.Node) string {
	if parts := strings.Split(name, "_"); len(parts) == 4 && parts[2] == "svc" {
		return parts[0] + "." + parts[1]
	}
	if name == "" { // chosen by labels
		for _, label := range []string{"kuma.io/display-name", "app", "app.kubernetes.io/name", "k8s.kuma.io/service-name"} {
			if v := target.Get("labels").Get(label).Text(); v != "" {
				return source.Qualified(v, target.Get("labels").Get("k8s.kuma.io/namespace").Text())
			}
		}
		if tag := target.Get("tags", "kuma.io/service").Text(); tag != "" {
			return named(tag, target)
		}
		return ""
	}
	return source.Qualified(name, target.Get("namespace").Text())
}
