package lint

import (
	"fmt"

	"github.com/abate-go/abate/topology"
)

// Elsewhere says where people set what a layer does, if it is not where the layer stands: what a mesh does by itself,
// and numbers for which a kind of object has no key. It is empty for others.
func Elsewhere(l *topology.Layer, to string) string {
	by, n := mostTries(l, topology.AllMethods, anything)
	switch {
	case by == nil:
	case l.Product == "istio" && by.Tries.Origin == topology.Default && l.Kind == topology.SidecarOut:
		return fmt.Sprintf("in a VirtualService for %s (retries: {attempts: 0}) or "+
			"meshConfig.defaultHttpRetryPolicy", to)
	case l.Product == "kong-ingress-controller" && by.Tries.Origin == topology.Default:
		return "in an annotation of the Service " + to + ": konghq.com/retries"
	case l.Product == "ingress-nginx" && by.Tries.Origin == topology.Default && n == topology.Unbounded:
		return "in the annotation nginx.ingress.kubernetes.io/configuration-snippet: grpc_next_upstream_tries 3;"
	case l.Product == "linkerd" && n == topology.Unbounded:
		return "in annotations of the Service: retry.linkerd.io/http or grpc, and retry.linkerd.io/limit for the number; " +
			"a ServiceProfile has no key for one, and hides them"
	}
	return ""
}

// switchOff is the fix of a layer that is one too many.
func switchOff(l *topology.Layer, to string) string {
	fix := "switch the retries of " + name(l) + " off, "
	if at := Elsewhere(l, to); at != "" {
		return fix + at + "; keep those where it is known what may be repeated"
	}
	return fix + "and keep those of the layer that knows which calls may be repeated"
}

// fixAt adds to a fix where to make it.
func fixAt(fix string, l *topology.Layer, to string) string {
	if at := Elsewhere(l, to); at != "" {
		return fix + ": " + at
	}
	return fix
}
