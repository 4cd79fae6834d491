// Package linkerd reads Linkerd: the annotations of Services and routes (2.16 and later), its own HTTPRoute, and
// ServiceProfile. What it repeats it repeats in the sidecar of whoever calls. It cannot repeat a connection that fails.
package linkerd

import (
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/source"
)

const (
	ownGroup = "policy.linkerd.io"
	latest   = "2.19"
)

// Recognise reports whether a document is an object of Linkerd, or one of Kubernetes with annotations for it.
func Recognise(d source.Document) bool {
	r := d.Resource()
	switch r.Kind {
	case "ServiceProfile":
		return r.Group == "linkerd.io"
	case "HTTPRoute":
		return r.Group == ownGroup || annotated(r)
	case "GRPCRoute", "Service":
		return annotated(r)
	}
	return false
}

func annotated(r source.Resource) bool { return has(r, isOurs) }

func has(r source.Resource, is func(source.Pair) bool) bool {
	return slices.ContainsFunc(r.Root.Get("metadata", "annotations").Pairs(), is)
}

func isOurs(p source.Pair) bool {
	return isRetry(p) || isTimeout(p) || strings.HasPrefix(p.Key, accrual)
}

func isRetry(p source.Pair) bool { return strings.HasPrefix(p.Key, retryPrefix) }

func isTimeout(p source.Pair) bool { return strings.HasPrefix(p.Key, timeoutPrefix) }
