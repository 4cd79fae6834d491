package consul_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/importer/consul"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

func readHCL(t *testing.T, texts ...string) topology.Form {
	t.Helper()
	var docs []source.Document
	for _, text := range texts {
		d, remarks := source.HCL(source.Document{File: "c.hcl", Data: []byte(text)})
		if len(remarks) > 0 || !consul.Recognise(d) {
			t.Fatalf("not recognised: %v\n%s", remarks, text)
		}
		docs = append(docs, d)
	}
	return consul.Read(docs, source.Assume{})
}

func TestEntriesOfHCLSayWhatThoseOfJSONSay(t *testing.T) {
	const json = `{"Kind": "service-router", "Name": "orders", "Routes": [{"Match": {"HTTP": {"PathPrefix": "/v1"}},
 "Destination": {"RequestTimeout": "2s", "NumRetries": 2, "RetryOn": ["reset"], "RetryOnStatusCodes": [503]}}]}`
	want := without(read(t, json))
	for _, text := range []string{
		`Kind = "service-router"
Name = "orders"
Routes = [
  {
    Match { HTTP { PathPrefix = "/v1" } }
    Destination {
      RequestTimeout = "2s"
      NumRetries = 2
      RetryOn = ["reset"]
      RetryOnStatusCodes = [503]
    }
  },
]`,
		`kind = "service-router"
name = "orders"
routes {
  match { http { path_prefix = "/v1" } }
  destination { request_timeout = "2s", num_retries = 2, retry_on = ["reset"], retry_on_status_codes = [503] }
}`,
		`"Kind" = "service-router", "name" = "orders"
routes = [{ match = { http = { pathprefix = "/v1" } }
  destination = { RequestTimeout = "2s", numretries = 2, retryOn = ["reset"], RetryOnStatusCodes = [503] } }]`,
		`config_entries {
  bootstrap = [{ kind = "service-router", name = "orders", routes = [{ match { http { path_prefix = "/v1" } },
    destination { request_timeout = "2s", num_retries = 2, retry_on = ["reset"], retry_on_status_codes = [503] } }] }]
}`,
		`resource "consul_config_entry" "a" {
  name        = "orders"
  kind        = "service-router"
  config_json = jsonencode({ Routes = [{ Match = { HTTP = { PathPrefix = "/v1" } },
    Destination = { RequestTimeout = "2s", NumRetries = 2, RetryOn = ["reset"], RetryOnStatusCodes = [503] } }] })
}`,
		`resource "consul_config_entry_service_router" "a" {
  name = "orders"
  routes {
    match {
      http { path_prefix = "/v1" }
    }
    destination {
      request_timeout       = "2s"
      num_retries           = 2
      retry_on              = ["reset"]
      retry_on_status_codes = [503]
    }
  }
}`,
	} {
		if got := without(readHCL(t, text)); got != want {
			t.Errorf("%s\nsays\n%s\nwant\n%s", text, got, want)
		}
	}
}

// without returns a form without the places in it.
func without(f topology.Form) string {
	var b strings.Builder
	for line := range strings.Lines(string(f.YAML())) {
		at := strings.Index(line, "c.")
		if at < 0 {
			at = len(line)
		}
		b.WriteString(strings.TrimSpace(line[:at]) + "\n")
	}
	return b.String()
}

func TestAReferenceOfTerraformIsTheNameThatItMeans(t *testing.T) {
	f := readHCL(t, `resource "consul_config_entry" "web" {
  name = "web"
  kind = "service-defaults"
  config_json = jsonencode({ Protocol = "http" })
}`, `resource "consul_config_entry" "router" {
  name = consul_config_entry.web.name
  kind = "service-router"
  config_json = jsonencode({ Routes = [{ Destination = { NumRetries = var.n, RetryOn = ["5xx"] } }] })
}
resource "consul_config_entry" "lost" {
  name = var.service
  kind = "service-resolver"
  config_json = jsonencode({ RequestTimeout = "3s" })
}
resource "consul_config_entry" "elsewhere" {
  name = "stock"
  kind = "service-router"
  config_json = file("stock.json")
}`)
	if len(f.Policies) != 1 || f.Policies[0].Callees[0] != "web" || !f.Policies[0].Layer.Repeats[0].Tries.IsUnknown() {
		t.Errorf("%s", f.YAML())
	}
	var at []string
	for _, r := range f.Remarks {
		at = append(at, r.Rule+" "+r.At.String())
	}
	if got := strings.Join(at, ", "); got != "F702 c.hcl:4:71, F702 c.hcl:7:10, F702 c.hcl:14:17" {
		t.Errorf("remarks %s", f.Remarks)
	}
}

func TestAnHTTPRouteIsWhatItsGatewayRepeats(t *testing.T) {
	f := readHCL(t, `Kind = "http-route"
Name = "edge"
Parents = [{ Kind = "api-gateway", Name = "gateway" }]
Hostnames = ["shop.example.com"]
Rules = [
  {
    Matches = [{ Path = { Match = "prefix", Value = "/a" }, Method = "GET" },
      { Path { Match = "exact", Value = "/b" } }]
    Filters = { RetryFilter = { NumRetries = 4, RetryOn = ["5xx"] }, TimeoutFilter = { RequestTimeout = "3s" } }
    Services = [{ Name = "orders" }]
  },
  { Services = [{ Name = "stock" }] }
]`)
	if len(f.Calls) != 3 || len(f.Services) != 1 || f.Services[0].Name != "gateway" {
		t.Fatalf("%s", f.YAML())
	}
	first, last := f.Calls[0], f.Calls[2]
	l := first.Layers[0]
	if first.To != "orders" || l.Tries(topology.S503, topology.Unsafe).N != 5 ||
		l.Overall.String() != "3s (c.hcl:9:105)" || l.Match.Path != "/a*" || l.Match.Methods[0] != "GET" ||
		f.Calls[1].Layers[0].Match.Path != "/b" {
		t.Errorf("%s", f.YAML())
	}
	if last.To != "stock" || last.Layers[0].Tries(topology.Refused, topology.Safe).N != 1 ||
		last.Layers[0].Overall.String() != "15s (default of Consul 1.22; c.hcl:12:3)" {
		t.Errorf("%s", f.YAML())
	}
}

func TestWhatConfiguresNoCallsIsNoLayerAndNoRemark(t *testing.T) {
	f := readHCL(t, `resource "consul_config_entry" "a" {
  name = "${var.dc}-a"
  kind = "service-defaults"
  config_json = jsonencode({ Protocol = "http" })
}
resource "consul_config_entry_service_defaults" "b" {
  name = "b"
  upstream_config {
    defaults = { limits = { max_connections = 512 } }
    overrides {
      name = "c"
      mesh_gateway { mode = "remote" }
    }
  }
}`)
	if len(f.Policies) != 1 || len(f.Remarks) != 0 {
		t.Fatalf("%s %v", f.YAML(), f.Remarks)
	}
	// Whether a route of HTTP, with its limit of 15 s, stands there is said elsewhere.
	if l := f.Policies[0].Layer; l.Limits.Connections.V != 512 || !l.Overall.IsUnknown() {
		t.Errorf("%+v", l)
	}
}
