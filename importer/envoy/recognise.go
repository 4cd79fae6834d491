// Package envoy reads Envoy: bootstrap files, dumps of a running Envoy (/config_dump) and files of xDS resources, in
// YAML and JSON. Keys may be in snake_case or camelCase.
//
// An Envoy becomes a service of its own, with a call to each of its clusters; each route to a cluster is a layer of
// that call. What Envoy does where a file says nothing was measured on Envoy 1.40.
package envoy

import (
	"strings"

	"github.com/abate-go/abate/importer/source"
)

const typeKey = "@type"

// Recognise reports whether a document is a configuration of Envoy, or a dump of one.
func Recognise(d source.Document) bool {
	root := d.Root
	if get(root, "static_resources").IsMap() || get(root, "dynamic_resources").IsMap() {
		return true
	}
	if get(root, "admin", "address", "socket_address").IsMap() || strings.Contains(root.Get(typeKey).Text(), "/envoy.") {
		return true
	}
	for _, list := range []string{"configs", "resources"} {
		for _, item := range root.Get(list).Items() {
			if strings.Contains(item.Get(typeKey).Text(), "/envoy.") {
				return true
			}
		}
	}
	return false
}

// get is Node.Get for keys in snake_case, which may be written in camelCase as well.
func get(n source.Node, path ...string) source.Node {
	for _, key := range path {
		n = n.Get(both(key))
	}
	return n
}

func both(key string) string {
	if camel := camelCase(key); camel != key {
		return key + "|" + camel
	}
	return key
}

func camelCase(key string) string {
	parts := strings.Split(key, "_")
	for i, p := range parts[1:] {
		if p != "" {
			parts[i+1] = strings.ToUpper(p[:1]) + p[1:]
		}
	}
	return strings.Join(parts, "")
}

// read is source.Scalar, whose remarks are added to others.
func read[T scalar](n source.Node, parse func(string) (T, error), remarks *remarks) value[T] {
	v, more := source.Scalar(n, parse)
	*remarks = append(*remarks, more...)
	return v
}
