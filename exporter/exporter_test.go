package exporter_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/exporter"
	"github.com/abate-go/abate/topology"
	"go.yaml.in/yaml/v3"
)

var here = topology.Position{File: "policy.yaml", Line: 1, Column: 1}

func w[T topology.Scalar](v T) topology.Value[T] { return topology.Write(v, here) }

func route() exporter.Route {
	return exporter.Route{Service: "payment", URLs: []string{"http://payment.shop:8080", "http://payment-2.shop:8080"},
		Layer: topology.Layer{
			PerTry: w(time.Second), Overall: w(3 * time.Second),
			Repeats: []topology.Repeat{
				{On: []topology.Outcome{topology.Refused, topology.ResetUnsent}, Tries: w(4)},
				{On: []topology.Outcome{topology.Hang, topology.S503, topology.S502, topology.Unavailable, topology.ResetSent},
					Methods: topology.Safe, Tries: w(4)},
			},
			Backoff: topology.Backoff{First: w(100 * time.Millisecond), Max: w(10 * time.Second), Multiplier: w(2.0),
				Jitter: w("full")},
			Budget: topology.Budget{Ratio: w(0.1)},
			Breaker: topology.Breaker{FailureRatio: w(0.5), MinimumCalls: w(20), Window: w(10 * time.Second),
				OpenFor: w(time.Second)},
			Ejection: topology.Ejection{Consecutive: w(5), Base: w(10 * time.Second)},
			Limits:   topology.Limits{Requests: w(50)},
		}}
}

func TestWhatIsWrittenHasTheSettingsOfTheFormat(t *testing.T) {
	for name, wants := range map[string][]string{
		"envoy": {"retry_on: connect-failure,refused-stream,reset-before-request,reset,unavailable,retriable-status-codes",
			"retriable_status_codes: [502, 503]", "num_retries: 3", "per_try_timeout: 1s", "timeout: 3s",
			"base_interval: 0.1s", "max_interval: 10s", "budget_percent: {value: 10}", "{exact: GET}", "consecutive_5xx: 5",
			"max_requests: 50"},
		"istio": {"attempts: 3", "perTryTimeout: 1s", "timeout: 3s", "reset,unavailable,502,503", "percent: 10",
			"consecutive5xxErrors: 5", "http2MaxRequests: 50"},
		"gateway-api": {"request: 3000ms", "backendRequest: 1000ms", "attempts: 3", "codes: [502, 503]", "port: 8080"},
		"linkerd": {`retry.linkerd.io/http: "502,503"`, `retry.linkerd.io/grpc: "unavailable"`, `limit: "3"`,
			"timeout.linkerd.io/request: 3000ms"},
		"grpc": {`"maxAttempts": 4`, `"timeout": "3s"`, `"initialBackoff": "0.1s"`, `"UNAVAILABLE"`, `"tokenRatio": 0.1`},
		"spring": {"maxAttempts: 4", "waitDuration: 100ms", "exponentialBackoffMultiplier: 2", "timeoutDuration: 1000ms",
			"failureRateThreshold: 50", "minimumNumberOfCalls: 20", "slidingWindowSize: 10", "maxConcurrentCalls: 50"},
		"nginx": {"server payment.shop:8080 max_fails=5 fail_timeout=10s;",
			"proxy_next_upstream error timeout http_502 http_503;",
			"proxy_next_upstream_tries 4;", "proxy_read_timeout 1000ms;", "proxy_next_upstream_timeout 3000ms;"},
		"haproxy": {"retries 3", "retry-on conn-failure empty-response response-timeout 502 503", "timeout server 1000ms",
			"disable-l7-retry if METH_POST", "server s2 payment-2.shop:8080 maxconn 25", "option abortonclose"},
	} {
		t.Run(name, func(t *testing.T) {
			got := string(written(t, name, []exporter.Route{route()}))
			for _, want := range wants {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in\n%s", want, got)
				}
			}
		})
	}
}

// HAProxy has to be told how long a server may take. A policy without a limit of an attempt must not get the least.
func TestHAProxyWaitsAsLongAsThePolicyLetsACallTake(t *testing.T) {
	none := topology.Assume(time.Duration(0), "none")
	for _, c := range []struct {
		perTry, overall topology.Value[time.Duration]
		want            string
	}{
		{topology.Assume(time.Second, ""), topology.Assume(3*time.Second, ""), "timeout server 1000ms\n"},
		{none, topology.Assume(3*time.Second, ""), "timeout server 3000ms\n"},
		{none, none, "timeout server 60000ms\n"},
		{topology.Value[time.Duration]{}, topology.Value[time.Duration]{}, "timeout server 60000ms\n"},
	} {
		r := route()
		r.Layer.PerTry, r.Layer.Overall, r.Layer.Connect = c.perTry, c.overall, none
		got := string(written(t, "haproxy", []exporter.Route{r}))
		if !strings.Contains(got, c.want) || !strings.Contains(got, "timeout connect 5000ms\n") {
			t.Errorf("no %q in\n%s", c.want, got)
		}
	}
}

func written(t *testing.T, name string, routes []exporter.Route) []byte {
	t.Helper()
	for _, f := range exporter.Formats {
		if f.Name == name {
			return f.Write(routes)
		}
	}
	t.Fatalf("no format %s", name)
	return nil
}

func TestYAMLAndJSONAreValid(t *testing.T) {
	odd := exporter.Route{Service: `Odd: "name" / {x}`, URLs: []string{"https://odd.example"}}
	for _, f := range exporter.Formats {
		data := f.Write([]exporter.Route{route(), odd})
		var err error
		switch f.Name {
		case "nginx", "haproxy":
			continue // tests/behaviour has them read by the real programs
		case "grpc":
			err = json.Unmarshal(data, &map[string]any{})
		default:
			d := yaml.NewDecoder(strings.NewReader(string(data)))
			for err == nil {
				err = d.Decode(&map[string]any{})
			}
			if err.Error() == "EOF" {
				err = nil
			}
		}
		if err != nil {
			t.Errorf("%s: %v\n%s", f.Name, err, data)
		}
	}
}

func TestNamesOfServicesAreOneWordInEveryFormat(t *testing.T) {
	for _, c := range []struct{ format, service, want string }{
		{"nginx", "a; b", "server_name a--b;"}, {"nginx", "*", "upstream service {"},
		{"haproxy", `say "x"`, "hdr(host) -i say--x }"}, {"haproxy", "Orders.shop:80", "hdr(host) -i Orders.shop:80 }"},
		{"envoy", "404", `cluster: "404"`}, {"istio", "Null", `metadata: {name: "null"}`}, {"spring", "1e3", `      "1e3":`},
		{"envoy", "orders", "cluster: orders\n"},
	} {
		r := route()
		r.Service = c.service
		if got := string(written(t, c.format, []exporter.Route{r})); !strings.Contains(got, c.want) {
			t.Errorf("%s of %q: no %q in\n%s", c.format, c.service, c.want, got)
		}
	}
}

func TestTheLossReportSaysWhatCameBack(t *testing.T) {
	before := route().Layer
	after := before
	after.Repeats = []topology.Repeat{{On: []topology.Outcome{topology.Refused, topology.Hang, topology.S503},
		Tries: w(4)}}
	after.Overall, after.Backoff.Max = topology.Value[time.Duration]{}, w(time.Second)
	after.Hedge.Copies = topology.DefaultOf(1, "x", here)
	rows := map[string]exporter.Row{}
	for _, r := range exporter.Compare(&before, &after) {
		rows[r.Setting] = r
	}
	for setting, want := range map[string]string{
		"tries of refused, 503 (safe methods)":                               "exact",
		"tries of reset-unsent, reset-sent, 502, UNAVAILABLE (safe methods)": "dropped",
		"tries of hang (safe methods)":                                       "approximated",
		"tries of hang, 503 (unsafe methods)":                                "added",
		"timeout":                                                            "dropped", "longest delay": "approximated",
		"hedges": "added", "first delay": "exact",
	} {
		if got := string(rows[setting].Kind); got != want {
			t.Errorf("%s is %q, want %q; rows %v", setting, got, want, rows)
		}
	}
}

// "a.b" and "a-b" are one word: two upstreams of one name, or two keys, and the program refuses the file or calls the
// wrong service.
func TestServicesWhoseNamesAreOneWordKeepApart(t *testing.T) {
	first, second, third := route(), route(), route()
	first.Service, second.Service, third.Service = "a.b", "a-b", "A b"
	for format, wants := range map[string][]string{
		"nginx":   {"upstream a-b {", "upstream a-b-2 {", "upstream a-b-3 {", "server_name a.b;", "server_name a-b-3;"},
		"haproxy": {"backend a-b\n", "backend a-b-2\n", "use_backend a-b-2 if { hdr(host) -i a.b }"},
		"envoy":   {"cluster: a-b\n", "cluster: a-b-2\n", "cluster_name: a-b-3\n"},
		"spring":  {"      a-b:\n", "      a-b-2:\n", "      a-b-3:\n"},
		"istio":   {"metadata: {name: a-b}", "metadata: {name: a-b-2}"},
	} {
		got := string(written(t, format, []exporter.Route{first, second, third}))
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", format, want, got)
			}
		}
	}
}

func TestTheMethodsThatAreRepeatedAreWrittenWhereAFormatListsThem(t *testing.T) {
	r := route()
	r.Layer.Repeats[1].Listed = []string{"PUT", "GET"}
	for format, want := range map[string]string{"envoy": "string_match: {exact: PUT}",
		"haproxy": "disable-l7-retry unless { method GET PUT }"} {
		if got := string(written(t, format, []exporter.Route{r})); !strings.Contains(got, want) ||
			strings.Contains(got, "HEAD") {
			t.Errorf("%s: no %q, or HEAD, in\n%s", format, want, got)
		}
	}
}

func TestWhatIsTheSameOfAllMethodsIsOneRow(t *testing.T) {
	layer := func(tries int, listed ...string) *topology.Layer {
		return &topology.Layer{Repeats: []topology.Repeat{{On: []topology.Outcome{topology.S503, topology.S502},
			Tries: w(tries), Listed: listed}}}
	}
	var got []string
	all := []string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "POST", "PATCH"}
	for _, r := range exporter.Compare(layer(3), layer(2, all...)) {
		got = append(got, r.String())
	}
	want := "tries of 502, 503 (all methods): 3 becomes 2; methods repeated: all methods"
	if s := strings.Join(got, "; "); s != want {
		t.Errorf("%s, want %s", s, want)
	}
}

// A ratio of 0, or more than a thousand tokens, would have gRPC refuse the whole config.
func TestGRPCTakesTheBudgetOfAnyPolicy(t *testing.T) {
	r := route()
	r.Layer.Budget = topology.Budget{Ratio: w(0.0004), Tokens: w(5000.0)}
	got := string(written(t, "grpc", []exporter.Route{r}))
	for _, want := range []string{`"tokenRatio": 0.001`, `"maxTokens": 1000`} {
		if !strings.Contains(got, want) {
			t.Errorf("without %s:\n%s", want, got)
		}
	}
}
