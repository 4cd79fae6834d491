package envoy_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/importer/envoy"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

const dump = `{"configs": [
 {"@type": "type.googleapis.com/envoy.admin.v3.BootstrapConfigDump",
  "bootstrap": {"node": {"id": "sidecar~10.0.0.1~checkout-1.shop~x", "cluster": "checkout.shop",
   "userAgentBuildVersion": {"version": {"majorNumber": 1, "minorNumber": 35}}}}},
 {"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump", "dynamicActiveClusters": [
  {"cluster": {"name": "outbound|8080||orders.shop.svc.cluster.local", "connectTimeout": "10s",
   "circuitBreakers": {"thresholds": [{"maxRetries": 4294967295}]}}},
  {"cluster": {"name": "inbound|9080||"}}]},
 {"@type": "type.googleapis.com/envoy.admin.v3.RoutesConfigDump", "dynamicRouteConfigs": [
  {"routeConfig": {"name": "8080", "virtualHosts": [{"name": "orders", "domains": ["orders"], "routes": [
   {"match": {"prefix": "/"}, "route": {"cluster": "outbound|8080||orders.shop.svc.cluster.local", "timeout": "0s",
    "retryPolicy": {"retryOn": "connect-failure,unavailable", "numRetries": 2,
      "hostSelectionRetryMaxAttempts": "5"}}}]}]}},
  {"routeConfig": {"name": "inbound", "virtualHosts": [{"name": "in", "domains": ["*"], "routes": [
   {"match": {"prefix": "/"}, "route": {"cluster": "inbound|9080||", "timeout": "0s",
    "retryPolicy": {"retryOn": "reset-before-request", "numRetries": 2}}}]}]}}]}]}`

func TestADumpOfASidecarIsTheCallsOfItsService(t *testing.T) {
	f := read(t, dump)
	if len(f.Calls) != 1 || f.Calls[0].From != "checkout.shop" || len(f.Policies) != 1 || len(f.Remarks) != 0 {
		t.Fatalf("got\n%s", f.YAML())
	}
	out, in := f.Calls[0].Layers[0], f.Policies[0].Layer
	if out.Kind != topology.SidecarOut || in.Kind != topology.SidecarIn || f.Policies[0].Callees[0] != "checkout.shop" {
		t.Errorf("layers %v and %v", out.Kind, in.Kind)
	}
	for _, c := range []struct {
		l    topology.Layer
		o    topology.Outcome
		want int
	}{{out, topology.Refused, 3}, {out, topology.Unavailable, 3}, {out, topology.S503, 1}, {in, topology.ResetUnsent, 3},
		{in, topology.ResetSent, 1}} {
		if got := c.l.Tries(c.o, topology.Unsafe).N; got != c.want {
			t.Errorf("%v, %v: %d tries, want %d", c.l.Kind, c.o, got, c.want)
		}
	}
	if out.Version.V != "1.35" || out.Budget.Concurrent.V != topology.Unbounded || out.Overall.Origin != topology.Written {
		t.Errorf("version %s, cap %s, overall %s", out.Version, out.Budget.Concurrent, out.Overall)
	}
	if joined, _ := f.Join(); joined.Calls[0].To != "orders.shop" {
		t.Errorf("joined to %s", joined.Calls[0].To)
	}
}

func TestFilesOfResourcesBelongToTheBootstrapOfTheirFolder(t *testing.T) {
	docs := func(name, text string) []source.Document {
		d, remarks := source.YAML(name, []byte(text))
		if len(d) != 1 || len(remarks) > 0 || !envoy.Recognise(d[0]) {
			t.Fatalf("%s: %v", name, remarks)
		}
		return d
	}
	var all []source.Document
	all = append(all, docs("gw/cds.yaml", `resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: pay
  circuit_breakers: {thresholds: {max_retries: 9}}
`)...)
	all = append(all, docs("gw/rds.yaml", `resources:
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: r
  virtual_hosts:
  - domains: [api.example.com]
    routes:
    - match: {prefix: /pay}
      route:
        weighted_clusters: {clusters: [{name: pay, weight: 9}, {name: pay2, weight: 1}]}
        request_mirror_policies: [{cluster: shadow}]
        retry_policy: {retry_on: 5xx}
`)...)
	all = append(all, docs("gw/envoy.yaml",
		"dynamic_resources: {cds_config: {path_config_source: {path: cds.yaml}}}\n")...)
	f := envoy.Read(all, source.Assume{})
	got := map[string]*topology.Call{}
	for i := range f.Calls {
		got[f.Calls[i].To] = &f.Calls[i]
	}
	if len(got) != 3 || len(f.Services) != 1 || f.Services[0].Name != "gw" ||
		f.Services[0].Aliases[0] != "api.example.com" {
		t.Fatalf("got\n%s", f.YAML())
	}
	if l := got["pay"].Layers[0]; l.Budget.Concurrent.V != 9 || l.Match.Path != "/pay*" ||
		l.Match.Host != "api.example.com" {
		t.Errorf("the layer of pay is %+v", l)
	}
	if l := got["shadow"].Layers[0]; !got["shadow"].Detached || l.Tries(topology.S503, topology.Safe).N != 1 {
		t.Errorf("the mirror is %+v", got["shadow"])
	}
}

func TestEndpointsThatAreAddressesAreOtherNamesOfTheCluster(t *testing.T) {
	text := file("", "    type: STATIC\n")
	f := read(t, strings.Replace(text, "orders.shop,", "10.1.2.3,", 1))
	if f.Calls[0].To != "orders" || len(f.Services) != 2 || f.Services[1].Aliases[0] != "10.1.2.3:8080" {
		t.Errorf("got\n%s", f.YAML())
	}
	if l := only(t, f); l.Endpoints.V != 1 {
		t.Errorf("%s endpoints", l.Endpoints)
	}
	f = read(t, strings.Replace(text, "orders.shop,", "127.0.0.1,", 1))
	if f.Calls[0].To != "edge-orders" || len(f.Services) != 1 {
		t.Errorf("got\n%s", f.YAML())
	}
}

func TestAnEnvoyThatIsNamedLikeWhatStandsBehindItHasANameOfItsOwn(t *testing.T) {
	f := read(t, strings.Replace(file("", ""), "orders.shop,", "edge,", 1))
	if f.Calls[0].To != "edge" || f.Calls[0].From != "edge-envoy" || f.Services[0].Name != "edge-envoy" {
		t.Errorf("got\n%s", f.YAML())
	}
}

func TestATCPProxyOnlyConnectsAgain(t *testing.T) {
	f := read(t, `static_resources:
  listeners:
    filter_chains:
      filters:
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy
          cluster: db
          max_connect_attempts: 4
`)
	l := only(t, f)
	if l.Tries(topology.Refused, topology.Unsafe).N != 4 || l.Tries(topology.ResetSent, topology.Safe).N != 1 {
		t.Errorf("%+v", l.Repeats)
	}
}

func TestOtherFilesAreNotRecognised(t *testing.T) {
	for _, text := range []string{"kind: Service\n", "admin: yes\n", "resources: [a.yaml, b.yaml]\n", "[1, 2]\n",
		"configs: {}\n"} {
		docs, _ := source.YAML("f", []byte(text))
		if envoy.Recognise(docs[0]) {
			t.Errorf("recognised %q", text)
		}
	}
}

func FuzzReadingDoesNotPanic(f *testing.F) {
	f.Add([]byte(file(", retry_policy: {retry_on: '5xx,bogus', retriable_status_codes: [429]}",
		"    outlier_detection: {}\n")))
	f.Add([]byte(dump))
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, _ := source.YAML("f.yaml", data)
		for _, d := range docs {
			envoy.Recognise(d)
		}
		joined, _ := envoy.Read(docs, source.Assume{}).Join()
		joined.YAML()
	})
}

func TestAnUpgradeIsThatOfTheRouteOrOfItsListener(t *testing.T) {
	const manager = "          route_config:\n"
	for _, c := range []struct{ action, manager, want string }{
		{", timeout: 0s, upgrade_configs: [{upgrade_type: websocket}]", "", "true (edge0/envoy.yaml:15:73)"},
		{", timeout: 0s, upgrade_configs: [{upgrade_type: websocket, enabled: false}]", "", ""},
		{", timeout: 0s", "          upgrade_configs: [{upgrade_type: websocket}]\n", "true (edge0/envoy.yaml:9:29)"},
		{", timeout: 0s", "", ""},
	} {
		text := strings.Replace(file(c.action, ""), manager, c.manager+manager, 1)
		if got := only(t, read(t, text)).Upgrades.String(); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.action, c.manager, got, c.want)
		}
	}
}
