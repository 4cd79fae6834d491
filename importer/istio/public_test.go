package istio_test

import (
	"testing"

	"github.com/abate-go/abate/topology"
)

// A developer calls localhost through a forwarded port of the gateway; no service does.
func TestLocalhostAtAGatewayIsNoHostOfTheMesh(t *testing.T) {
	for host, want := range map[string]int{"localhost": 0, "web": 1} {
		f := read(t, "", `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [`+host+`]
  gateways: [public]
  http:
  - route: [{destination: {host: web}}]
    timeout: 3s
`)
		if len(f.Remarks) != want {
			t.Errorf("%s: %+v", host, f.Remarks)
		}
	}
}

// TestASidecarSendsAPublicNameToTheDestinationAndNotToTheGateway has a route that the gateway and all sidecars know.
func TestASidecarSendsAPublicNameToTheDestinationAndNotToTheGateway(t *testing.T) {
	for _, hosts := range []string{"[shop.example.com, web]", "[shop.example.com]"} {
		f := read(t, "", `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: public, namespace: shop}
spec: {selector: {istio: ingressgateway}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: `+hosts+`
  gateways: [public, mesh]
  http:
  - route: [{destination: {host: web}}]
    retries: {attempts: 3, retryOn: 5xx}
`)
		f.Services = append(f.Services, topology.Service{Name: "basket.shop"}, topology.Service{Name: "web.shop"})
		f.Calls = append(f.Calls, topology.Call{From: "basket.shop", To: "web.shop"})
		joined, _ := f.Join()
		tries := 0
		for _, c := range joined.Calls {
			if c.To == "istio-ingressgateway" {
				t.Errorf("hosts %s: %q calls the gateway through a sidecar", hosts, c.From)
			}
			if c.From == "basket.shop" {
				tries = c.Layers[0].Tries(topology.S503, topology.Safe).N
			}
		}
		if tries != 4 {
			t.Errorf("hosts %s: the sidecar of basket tries %d times, want 4", hosts, tries)
		}
	}
}

// An object whose file leaves its namespace out goes wherever kubectl is told, which may be that of the Gateway.
func TestAVirtualServiceWithoutANamespaceMayBeInThatOfItsGateway(t *testing.T) {
	for namespace, want := range map[string]int{"": 0, ", namespace: infra": 0, ", namespace: shop": 1} {
		f := read(t, "", `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: public, namespace: infra}
spec: {selector: {istio: ingressgateway}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web`+namespace+`}
spec:
  hosts: ["*"]
  gateways: [public]
  http:
  - route: [{destination: {host: web}}]
`)
		if len(f.Remarks) != want || want == 0 && f.Calls[0].From != "istio-ingressgateway" {
			t.Errorf("%q: %+v, from %s", namespace, f.Remarks, f.Calls[0].From)
		}
	}
}

func TestTheTimeoutOfAFilterIsNoneOfTheCallsThatPassIt(t *testing.T) {
	for patch, want := range map[string]int{
		"applyTo: HTTP_FILTER, patch: {value: {timeout: 10s}}":              0,
		"applyTo: HTTP_ROUTE, patch: {value: {route: {timeout: 10s}}}":      1,
		"applyTo: NETWORK_FILTER, patch: {value: {timeout: 10s}}":           1,
		"applyTo: HTTP_FILTER, patch: {value: {code: x-envoy-max-retries}}": 1,
	} {
		f := read(t, "", "apiVersion: networking.istio.io/v1alpha3\nkind: EnvoyFilter\nmetadata: {name: a}\nspec:\n"+
			"  configPatches: [{"+patch+"}]\n")
		if len(f.Remarks) != want {
			t.Errorf("%s: %+v", patch, f.Remarks)
		}
	}
}
