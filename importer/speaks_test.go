package importer_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/importer/source"
)

// speaks returns what the service orders speaks as files say it, written one behind the other as "NAME\nTEXT".
func speaks(files ...string) string {
	var given []importer.File
	for _, f := range files {
		name, text, _ := strings.Cut(f, "\n")
		given = append(given, importer.File{Name: name, Data: []byte(text)})
	}
	form, _ := importer.Read(given, source.Assume{})
	joined, _ := form.Join()
	for _, s := range joined.Services {
		if first, _, _ := strings.Cut(s.Name, "."); first == "orders" {
			return s.Speaks.String()
		}
	}
	return "no service"
}

func kubernetes(ports string) string {
	return "k.yaml\napiVersion: v1\nkind: Service\nmetadata:\n  name: orders\nspec:\n  ports: [" + ports + "]\n"
}

func pod(container string) string {
	return "d.yaml\nkind: Pod\nmetadata: {name: orders}\nspec: {containers: [{name: x, " + container + "}]}\n"
}

func envoy(options string) string {
	return "envoy.yaml\nstatic_resources:\n  listeners: [{filter_chains: [{filters: [{typed_config: {\"@type\": " +
		"type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, " +
		"route_config: {virtual_hosts: [{domains: [\"*\"], routes: [{match: {prefix: /}, route: {cluster: orders}}]}]}}" +
		"}]}]}]\n" +
		"  clusters: [{name: orders, typed_extension_protocol_options: {" + options + "}}]\n"
}

func TestFilesSayWhetherAServiceSpeaksGRPC(t *testing.T) {
	const assumed = "http (assumed: no file says that orders speaks gRPC)"
	const api = "metadata: {name: orders}\nspec:\n"
	for _, c := range []struct{ want, file string }{
		{"grpc (k.yaml:6:18)", kubernetes("{name: grpc-api, port: 1}")},
		{"grpc (k.yaml:6:41)", kubernetes("{name: http, port: 1}, {name: grpc, port: 2}")},
		{"grpc (k.yaml:6:37)", kubernetes("{name: http, appProtocol: kubernetes.io/h2c}")},
		{"grpc (k.yaml:6:18)", kubernetes("{name: http2}")},
		{"http (k.yaml:6:18)", kubernetes("{name: http-web, port: 1}, {name: http-metrics}, {name: metrics}")},
		{assumed, kubernetes("{name: http, port: 1}, {name: admin, port: 2}")},
		{assumed, kubernetes("{port: 1}")},
		{"grpc (k.yaml:5:58)", "k.yaml\napiVersion: v1\nkind: Service\nmetadata:\n  name: orders\n" +
			"  annotations: {projectcontour.io/upstream-protocol.h2c: api}\n"},
		{"grpc", "d.yaml\nkind: Deployment\napiVersion: apps/v1\nmetadata: {name: orders}\nspec:\n  template:\n" +
			"    metadata: {annotations: {dapr.io/app-protocol: grpc}}\n"},
		{"grpc (k.yaml:6:34)", kubernetes("{port: 80, targetPort: grpc}")},
		{"grpc (k.yaml:6:36)", kubernetes("{name: http, targetPort: grpc}")},
		{"grpc (k.yaml:6:18)", kubernetes("{name: grpc, appProtocol: tcp}")},
		{"grpc (k.yaml:6:18)", kubernetes("{name: grpc, appProtocol: https}")},
		{"grpc (k.yaml:6:18)", kubernetes("{name: http-grpc}")},
		{"grpc (d.yaml:3:46)", pod("ports: [{name: grpc, containerPort: 1}]")},
		{"grpc (d.yaml:3:54)", pod("readinessProbe: {grpc: {port: 1}}")},
		{assumed, pod("ports: [{name: web, containerPort: 1}], readinessProbe: {httpGet: {port: 1}}")},
		{"grpc", "g.yaml\nkind: GRPCRoute\napiVersion: gateway.networking.k8s.io/v1\n" + api +
			"  parentRefs: [{name: g}]\n  rules: [{backendRefs: [{name: orders, port: 1}]}]\n"},
		{"http (assumed", "g.yaml\nkind: HTTPRoute\napiVersion: gateway.networking.k8s.io/v1\n" + api +
			"  parentRefs: [{name: g}]\n  rules: [{backendRefs: [{name: orders, port: 1}]}]\n"},
		{"grpc", "nginx.conf\nevents {}\nhttp { server { listen 80; location / { grpc_pass grpc://orders:1; } } }\n"},
		{"http (assumed", "nginx.conf\nevents {}\nhttp { server { listen 80; location / { proxy_pass http://orders:1; } } " +
			"}\n"},
		{"grpc", "haproxy.cfg\ndefaults\n  mode http\nbackend b\n  server a orders:80 proto h2\n"},
		{"grpc (kong.yaml:2:27)", "kong.yaml\n_format_version: \"3.0\"\nservices: [{name: o, url: \"grpc://orders:1\"}]\n"},
		{"http (assumed", "kong.yaml\n_format_version: \"3.0\"\nservices: [{name: grpc, host: orders}]\n"},
		{"grpc", "traefik.yaml\nhttp:\n  routers: {o: {rule: \"Host(`o`)\", service: o}}\n  services: {o: {loadBalancer: " +
			"{servers: [{url: \"h2c://orders:1\"}]}}}\n"},
		{"grpc", "contour.yaml\nkind: HTTPProxy\napiVersion: projectcontour.io/v1\n" + api +
			"  virtualhost: {fqdn: o}\n  routes: [{services: [{name: orders, port: 1, protocol: h2c}]}]\n"},
		{"grpc (c.yaml:5:13)", "c.yaml\nkind: ServiceDefaults\napiVersion: consul.hashicorp.com/v1alpha1\n" + api +
			"  protocol: grpc\n---\nkind: ServiceResolver\napiVersion: consul.hashicorp.com/v1alpha1\n" + api +
			"  requestTimeout: 1s\n"},
		{"grpc", "compose.yaml\nservices:\n  a: {image: x, environment: {ORDERS: \"grpc://orders:1\"}}\n" +
			"  orders: {image: y}\n"},
		{"grpc (envoy.yaml", envoy("h2: {explicit_http_config: {http2_protocol_options: {}}}")},
		{"grpc (envoy.yaml", envoy("h: {use_downstream_protocol_config: {http2_protocol_options: {}}}")},
		{"http (assumed", envoy("h1: {explicit_http_config: {http_protocol_options: {}}}")},
	} {
		if got := speaks(c.file); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s, want %s:\n%s", got, c.want, c.file)
		}
	}
}

func TestATopologyFileCanSayNothingButWhatAServiceSpeaks(t *testing.T) {
	if got := speaks("t.yaml\nservices: [{name: orders, speaks: grpc}]\n"); !strings.HasPrefix(got, "grpc (t.yaml") {
		t.Errorf("%q", got)
	}
}

func TestWhereFilesDescribeServicesOfGRPCNobodyKnowsWhichTheyAre(t *testing.T) {
	const proto = "api/orders.proto\nsyntax = \"proto3\";\nservice Orders {}\n"
	if got := speaks(proto, kubernetes("{port: 1}")); got != "" {
		t.Errorf("%q of a service of which no file says what it speaks", got)
	}
	if got := speaks(proto, kubernetes("{name: http, port: 1}")); !strings.HasPrefix(got, "http (k.yaml") {
		t.Errorf("%q of a service with a port for HTTP", got)
	}
}
