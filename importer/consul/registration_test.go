package consul_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/importer/consul"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// registration is how an agent registers a service whose sidecar has upstreams.
const registration = `service {
  name = "report"
  connect { sidecar_service { proxy {
    upstreams {
      destination_name = "expense"
      config {
        protocol           = "http"
        connect_timeout_ms = 5000
        limits { max_connections = 3, max_pending_requests = 4, max_concurrent_requests = 5 }
        passive_health_check { interval = "20s", max_failures = 10 }
      }
    }
    upstreams { destination_name = "db", config { protocol = "tcp" } }
    upstreams { destination_type = "prepared_query", destination_name = "nearest" }
  } } }
}
`

func TestAnUpstreamOfAServiceIsACallWithTheLimitsOfItsSidecar(t *testing.T) {
	inJSON := `{"services": [{"Name": "report-proxy", "Kind": "connect-proxy", "Proxy":
 {"DestinationServiceName": "report",
  "Upstreams": [{"DestinationName": "expense", "Config": {"Protocol": "http", "ConnectTimeoutMs": 5000,
    "Limits": {"MaxConnections": 3, "MaxPendingRequests": 4, "MaxConcurrentRequests": 5},
    "PassiveHealthCheck": {"Interval": "20s", "MaxFailures": 10}}},
    {"DestinationName": "db", "Config": {"Protocol": "tcp"}}]}}]}`
	for name, f := range map[string]topology.Form{"HCL": readHCL(t, registration), "JSON": read(t, inJSON)} {
		if len(f.Calls) != 2 || len(f.Calls[1].Layers) != 0 || f.Calls[1].To != "db" {
			t.Fatalf("%s: %s", name, f.YAML())
		}
		c := f.Calls[0]
		l := c.Layers[0]
		got := fmt.Sprintln(c.From, c.To, l.Connect.V, l.Overall.V, l.Overall.Origin == topology.Default, l.Speaks.V,
			l.Limits.Connections.V, l.Limits.Pending.V, l.Limits.Requests.V, l.Ejection.Consecutive.V, l.Ejection.Interval.V)
		if want := "report expense 5s 15s true http 3 4 5 10 20s\n"; got != want {
			t.Errorf("%s: %swant %s", name, got, want)
		}
	}
}

func TestHowManyInstancesAPassiveHealthCheckTakesOut(t *testing.T) {
	const defaults = `{"Kind": "service-defaults", "Name": "web", "UpstreamConfig": {"Defaults": {"Limits": ` +
		`{"MaxConnections": 3}, "PassiveHealthCheck": {"MaxFailures": 3%s}}}}`
	for more, want := range map[string]string{
		``:                            "3 0.1",
		`, "MaxEjectionPercent": 100`: "3 1",
		`, "MaxEjectionPercent": 100, "EnforcingConsecutive5xx": 100`: "3 1",
		`, "MaxEjectionPercent": 100, "EnforcingConsecutive5xx": 0`:   "0 0",
	} {
		l := read(t, fmt.Sprintf(defaults, more)).Policies[0].Layer
		if got := fmt.Sprint(l.Ejection.Consecutive.V, l.Ejection.MaxShare.V); got != want {
			t.Errorf("%s: %s, want %s", more, got, want)
		}
	}
}

func TestWithoutItsProtocolNobodyKnowsHowLongAnUpstreamIsWaitedFor(t *testing.T) {
	limits := strings.ReplaceAll(registration, `protocol           = "http"`, "")
	if l := readHCL(t, limits).Calls[0].Layers[0]; !l.Overall.IsUnknown() {
		t.Errorf("%v", l.Overall)
	}
	known := `config_entries { bootstrap = [{ kind = "service-defaults", name = "expense", protocol = "http" }] }`
	if l := readHCL(t, limits, known).Calls[0].Layers[0]; l.Overall.V != 15*time.Second {
		t.Errorf("%v", l.Overall)
	}
}

// A sidecar that passes bytes on has taken the connection before it finds nobody, and answers no status.
func TestAnUpstreamOfTCPAnswersNoStatus(t *testing.T) {
	const tcp = `service {
  name = "web"
  connect { sidecar_service { proxy { upstreams { 
    destination_name = "db"
    config { protocol = "tcp", limits { max_connections = 3 } } } } } }
}`
	l := readHCL(t, tcp).Calls[0].Layers[0]
	if len(l.Answers) != 1 || l.Answers[0] != (topology.Answer{After: topology.Refused, Gives: topology.ResetSent}) {
		t.Errorf("%+v", l.Answers)
	}
}

// What routes the requests of a service sets their limit, and what only guards them is no other way without one.
func TestAnUpstreamThatIsRoutedHasTheLimitOfTheRoute(t *testing.T) {
	for kind, more := range map[string]string{"service-router": `routes = [{ destination { request_timeout = "2s" } }]`,
		"service-splitter": "splits = [{ weight = 100 }]", "service-resolver": `request_timeout = "2s"`} {
		f := readHCL(t, registration, "kind = \""+kind+"\"\nname = \"expense\"\n"+more+"\n")
		l := f.Calls[0].Layers[0]
		if !l.Overall.IsZero() || len(l.Answers) > 0 || len(f.Policies) == 0 || f.Policies[0].Layer.Overall.Or(0) == 0 {
			t.Errorf("%s: %s", kind, f.YAML())
		}
	}
	if f := readHCL(t, "kind = \"service-splitter\"\nname = \"a\"\n", "kind = \"service-router\"\nname = \"a\"\n"); len(
		f.Policies) != 1 {
		t.Errorf("%s", f.YAML())
	}
}

func TestAServiceWithoutUpstreamsIsOfNoInterest(t *testing.T) {
	d, remarks := source.HCL(source.Document{Data: []byte(
		"service {\n  name = \"db\"\n  connect { sidecar_service { proxy { config { protocol = \"tcp\" } } } }\n}\n")})
	if len(remarks) > 0 || consul.Recognise(d) {
		t.Errorf("recognised, %v", remarks)
	}
}

// A job of Nomad registers services as an agent does.
func TestTheUpstreamsOfAJobOfNomadAreCalls(t *testing.T) {
	const job = `job "shop" {
  group "api" {
    service {
      name = "report"
      port = "9001"
      connect { sidecar_service { proxy { upstreams {
        destination_name = "expense"
        local_bind_port  = 8080
        config { connect_timeout_ms = 5000 }
      } } } }
    }
    task "api" { driver = "docker" }
  }
  group "expense" {
    service {
      name = "expense"
      connect { sidecar_service { proxy { upstreams { destination_name = "db" } } } }
    }
  }
}
`
	const inJSON = `{"Job": {"ID": "shop", "TaskGroups": [{"Services": [{"Name": "report", "Connect": {"SidecarService":
 {"Proxy": {"Upstreams": [{"DestinationName": "expense", "Config": {"connect_timeout_ms": 5000}}]}}}}]},
 {"Services": [{"Name": "expense",
  "Connect": {"SidecarService": {"Proxy": {"Upstreams": [{"DestinationName": "db"}]}}}}]}]}}`
	for name, f := range map[string]topology.Form{"HCL": readHCL(t, job), "JSON": read(t, inJSON)} {
		if len(f.Calls) != 2 || f.Calls[0].From != "report" || f.Calls[0].To != "expense" || f.Calls[1].To != "db" ||
			f.Calls[0].Layers[0].Connect.V != 5*time.Second {
			t.Errorf("%s: %s", name, f.YAML())
		}
	}
	if f := readHCL(t, strings.Replace(job, `"report"`, `"${var.name}"`, 1)); len(f.Calls) != 1 || len(f.Remarks) != 1 {
		t.Errorf("a name that is not known: %s", f.YAML())
	}
}

// What proxy-defaults says holds for every service that does not say another protocol.
func TestTheProtocolOfAllServicesStandsInProxyDefaults(t *testing.T) {
	limits := strings.ReplaceAll(registration, `protocol           = "http"`, "")
	const defaults = `{"Kind": "proxy-defaults", "Name": "global", "Config": {"protocol": "grpc"}}`
	const resource = "apiVersion: consul.hashicorp.com/v1alpha1\nkind: ProxyDefaults\nmetadata: {name: global}\n" +
		"spec: {config: {protocol: grpc}}\n"
	const own = `{"Kind": "service-defaults", "Name": "expense", "Protocol": "%s"}`
	for _, c := range []struct {
		more []string
		want string
	}{{nil, " true 0s"}, {[]string{defaults}, "grpc false 15s"}, {[]string{resource}, "grpc false 15s"},
		{[]string{defaults, fmt.Sprintf(own, "http")}, "http false 15s"},
		{[]string{fmt.Sprintf(own, "tcp"), defaults}, " false 0s"}} {
		docs, remarks := source.HCL(source.Document{Data: []byte(limits)})
		all := []source.Document{docs}
		for _, text := range c.more {
			more, also := source.YAML("more", []byte(text))
			all, remarks = append(all, more...), append(remarks, also...)
		}
		for _, d := range all {
			if !consul.Recognise(d) {
				t.Errorf("not recognised: %v", c.more)
			}
		}
		l := consul.Read(all, source.Assume{}).Calls[0].Layers[0]
		if got := fmt.Sprintln(l.Speaks.V, l.Overall.IsUnknown(), l.Overall.V); got != c.want+"\n" || len(remarks) > 0 {
			t.Errorf("%v: %s, want %s; %v", c.more, got, c.want, remarks)
		}
	}
}

func TestPartsInEnvoysOwnJSONAreSaid(t *testing.T) {
	for text, want := range map[string]string{
		strings.Replace(registration, `protocol           = "http"`, `envoy_listener_json = "{}"`, 1): "EnvoyListenerJSON",
		strings.Replace(registration, "upstreams {", "config { envoy_public_listener_json = \"{}\" }\n upstreams {",
			1): "EnvoyPublicListenerJSON",
		"kind = \"proxy-defaults\"\nname = \"global\"\nconfig { envoy_public_listener_json = " +
			"\"{}\" }\n": "proxy-defaults EnvoyPublic",
		"kind = \"service-defaults\"\nname = \"web\"\nupstream_config { defaults { envoy_cluster_json = " +
			"\"{}\" } }\n": "upstream * EnvoyClusterJSON",
	} {
		if f := readHCL(t, text); len(f.Remarks) != 1 || f.Remarks[0].Rule != "F702" ||
			!strings.Contains(f.Remarks[0].Subject, want) {
			t.Errorf("%s: %+v", text, f.Remarks)
		}
	}
	const more = "kind = \"proxy-defaults\"\nname = \"global\"\n" +
		"config { envoy_extra_static_clusters_json = \"{}\" }\n"
	if f := readHCL(t, registration, more); len(f.Remarks) > 0 {
		t.Errorf("%+v", f.Remarks)
	}
}

func TestARouteWithoutAConditionLeavesNothingForTheRest(t *testing.T) {
	for more, want := range map[string]int{"": 1, `match { http { path_prefix = "/a" } }`: 2} {
		f := readHCL(t, "kind = \"service-router\"\nname = \"a\"\n"+
			"routes = [{ destination { request_timeout = \"4s\" }\n"+more+"\n}]\n")
		if len(f.Policies) != want {
			t.Errorf("%q: %s", more, f.YAML())
		}
	}
}
