// Package contour reads Contour: HTTPProxy, and the caps that annotations of Services set. Contour's Envoy becomes a
// service of its own, with a call to each back end.
package contour

import (
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/source"
)

const (
	latest = "1.33"
	prefix = "projectcontour.io/"
)

// Recognise reports whether a document is an HTTPProxy, or a Service with annotations of Contour.
func Recognise(d source.Document) bool {
	r := d.Resource()
	return r.Kind == "HTTPProxy" && r.Group == "projectcontour.io" || r.Kind == "Service" && r.Group == "" && annotated(r)
}

func annotated(r source.Resource) bool {
	return slices.ContainsFunc(r.Root.Get("metadata", "annotations").Pairs(), func(p source.Pair) bool {
		return strings.HasPrefix(p.Key, prefix+"max-")
	})
}
