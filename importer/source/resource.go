package source

import (
	"strings"

	"github.com/abate-go/abate/topology"
)

// Resource is an object of Kubernetes.
type Resource struct {
	Group, Kind     string // apiVersion without its version: "networking.istio.io", and "" for v1
	Name, Namespace string // Namespace is empty where the file leaves it out
	Root, Spec      Node
	At              topology.Position
}

// Resource returns the document as an object of Kubernetes. Its kind is empty for other documents.
func (d *Document) Resource() Resource {
	r := Resource{Kind: d.Root.Get("kind").Text(), Root: d.Root, Spec: d.Root.Get("spec"), At: d.Root.At()}
	if group, _, found := strings.Cut(d.Root.Get("apiVersion").Text(), "/"); found {
		r.Group = group
	}
	meta := d.Root.Get("metadata")
	r.Name, r.Namespace = meta.Get("name").Text(), meta.Get("namespace").Text()
	return r
}

// String is the kind and the name of the object: "VirtualService shop/orders".
func (r Resource) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Annotation returns an annotation of the object.
func (r Resource) Annotation(key string) Node { return r.Root.Get("metadata", "annotations").Get(key) }

// Qualified returns the short name of a service with its namespace, and other names as they are.
func Qualified(host, namespace string) string {
	if host == "" || strings.Contains(host, ".") || namespace == "" {
		return host
	}
	return host + "." + namespace
}
