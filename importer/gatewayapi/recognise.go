// Package gatewayapi reads the Gateway API of Kubernetes: gateways and their routes, with what Envoy Gateway's
// BackendTrafficPolicy and the API's own XBackendTrafficPolicy add.
//
// The API leaves every default to the product that serves a gateway. It is known by the controller of its class, by the
// name of the class, or because people say so (source.Assume); what is served by a product that this package does not
// know has unknown values, never guessed ones. Routes with annotations of Linkerd are read by package linkerd.
package gatewayapi

import (
	"strings"

	"github.com/abate-go/abate/importer/kong"
	"github.com/abate-go/abate/importer/source"
)

const (
	group      = "gateway.networking.k8s.io"
	envoyGroup = "gateway.envoyproxy.io"
)

// Recognise reports whether a document is an object of the Gateway API or of Envoy Gateway.
func Recognise(d source.Document) bool {
	r := d.Resource()
	switch r.Kind {
	case "Gateway", "GatewayClass", "HTTPRoute", "GRPCRoute":
		return r.Group == group
	case "RouteRetryFilter", "RouteTimeoutFilter":
		return r.Group == consulGroup
	case "BackendTrafficPolicy":
		return r.Group == envoyGroup
	case "Service", "KongIngress":
		return kong.Annotated(r)
	case "XBackendTrafficPolicy", "BackendTrafficPolicyX":
		return strings.HasPrefix(r.Group, "gateway.networking.")
	}
	return false
}
