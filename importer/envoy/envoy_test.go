package envoy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/importer/envoy"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// file is an Envoy with one route, whose action has more keys, and one cluster with more keys.
func file(action, cluster string) string {
	return fmt.Sprintf(`node: {cluster: edge}
static_resources:
  listeners:
  - filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          route_config:
            virtual_hosts:
            - name: shop
              domains: ["*"]
              routes:
              - match: {prefix: /}
                route: {cluster: orders%s}
  clusters:
  - name: orders
    load_assignment:
      endpoints:
      - lb_endpoints:
        - endpoint: {address: {socket_address: {address: orders.shop, port_value: 8080}}}
%s`, action, cluster)
}

func read(t testing.TB, texts ...string) topology.Form {
	t.Helper()
	var all []source.Document
	for i, text := range texts {
		docs, remarks := source.YAML(fmt.Sprintf("edge%d/envoy.yaml", i), []byte(text))
		if len(remarks) > 0 {
			t.Fatalf("%v in\n%s", remarks, text)
		}
		for _, d := range docs {
			if !envoy.Recognise(d) {
				t.Fatalf("not recognised:\n%s", text)
			}
		}
		all = append(all, docs...)
	}
	return envoy.Read(all, source.Assume{})
}

// only returns the one layer that a form has.
func only(t testing.TB, f topology.Form) topology.Layer {
	t.Helper()
	if len(f.Calls) != 1 || len(f.Calls[0].Layers) != 1 {
		t.Fatalf("want one call with one layer in\n%s", f.YAML())
	}
	return f.Calls[0].Layers[0]
}

// The numbers were measured on Envoy 1.40: a back end that counts, one case for each word and outcome.
func TestEachWordRepeatsWhatEnvoyRepeats(t *testing.T) {
	columns := []topology.Outcome{topology.Hang, topology.ResetSent, topology.S500, topology.S503, topology.S504,
		topology.S409, topology.S408, topology.S429, topology.Refused}
	for word, want := range map[string][]int{
		"5xx":                    {3, 3, 3, 3, 3, 1, 1, 1, 3},
		"gateway-error":          {3, 3, 1, 3, 3, 1, 1, 1, 3},
		"reset":                  {3, 3, 1, 1, 1, 1, 1, 1, 3},
		"reset-before-request":   {1, 1, 1, 1, 1, 1, 1, 1, 3},
		"connect-failure":        {1, 1, 1, 1, 1, 1, 1, 1, 3},
		"refused-stream":         {1, 1, 1, 1, 1, 1, 1, 1, 1},
		"retriable-4xx":          {1, 1, 1, 1, 1, 3, 1, 1, 1},
		"retriable-status-codes": {1, 1, 1, 3, 3, 1, 1, 1, 1},
		`"connect-failure, 5xx"`: {3, 3, 3, 3, 3, 1, 1, 1, 3},
	} {
		l := only(t, read(t, file(", timeout: 10s, retry_policy: {num_retries: 2, per_try_timeout: 0.3s, "+
			"retriable_status_codes: [503, 504], retry_on: "+word+"}", "")))
		for i, o := range columns {
			for _, m := range []topology.Methods{topology.Safe, topology.Unsafe} {
				if got := l.Tries(o, m); got.N != want[i] || !got.Known {
					t.Errorf("%s, %v, %v: %+v tries, want %d", word, o, m, got, want[i])
				}
			}
		}
	}
}

func TestHangsTakeAsManyTriesAsFitIntoTheLimits(t *testing.T) {
	for name, c := range map[string]struct {
		action  string
		tries   int
		longest time.Duration
	}{
		"four of half a second": {", timeout: 5s, retry_policy: {retry_on: 5xx, num_retries: 3, per_try_timeout: 0.5s}", 4,
			2175 * time.Millisecond},
		"cut by the route": {", timeout: 1.2s, retry_policy: {retry_on: 5xx, num_retries: 5, per_try_timeout: 0.5s}",
			3, 1200 * time.Millisecond},
		"a try above the route": {", timeout: 0.4s, retry_policy: {retry_on: 5xx, num_retries: 3, per_try_timeout: 2s}", 1,
			400 * time.Millisecond},
		"no limit of a try": {", timeout: 1s, retry_policy: {retry_on: 5xx, num_retries: 3}", 1, time.Second},
		"no word for hangs": {", timeout: 4s, retry_policy: {retry_on: reset-before-request, num_retries: 3, " +
			"per_try_timeout: 1s}", 1, time.Second},
		"the default of the route": {"", 1, 15 * time.Second},
		"hedged, whatever the word": {", timeout: 2s, hedge_policy: {hedge_on_per_try_timeout: true}, " +
			"retry_policy: {retry_on: connect-failure, num_retries: 2, per_try_timeout: 0.3s}", 3, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			l := only(t, read(t, file(c.action, "")))
			if got := l.Tries(topology.Hang, topology.Safe).N; got != c.tries {
				t.Errorf("%d tries, want %d", got, c.tries)
			}
			got, ends := l.Longest(topology.Hang, topology.Safe)
			if want := c.longest; !ends || got < want-100*time.Millisecond || got > want+100*time.Millisecond {
				t.Errorf("at most %v, %v; want %v", got, ends, want)
			}
		})
	}
}

func TestValuesSayWhereTheyAreWrittenOrWhoseDefaultTheyAre(t *testing.T) {
	l := only(t, read(t, file(", retry_policy: {retry_on: 'reset,5xx'}", "    outlier_detection: {interval: 5s}\n")))
	for _, c := range []struct{ what, got, want string }{
		{"tries", l.Repeats[0].Tries.String(), "2 (default of Envoy 1.40; edge0/envoy.yaml:15:56)"},
		{"second word", l.Repeats[1].At.String(), "edge0/envoy.yaml:15:74"},
		{"overall", l.Overall.String(), "15s (default of Envoy 1.40; edge0/envoy.yaml:14:17)"},
		{"per try", l.PerTry.String(), ""},
		{"back-off", l.Backoff.First.String(), "25ms (default of Envoy 1.40; edge0/envoy.yaml:15:56)"},
		{"longest back-off", l.Backoff.Max.String(), "250ms (default of Envoy 1.40; edge0/envoy.yaml:15:56)"},
		{"jitter", l.Backoff.Jitter.V, "full"},
		{"retries in flight", l.Budget.Concurrent.String(), "3 (default of Envoy 1.40; edge0/envoy.yaml:17:5)"},
		{"requests", l.Limits.Requests.String(), "1024 (default of Envoy 1.40; edge0/envoy.yaml:17:5)"},
		{"connect", l.Connect.String(), "5s (default of Envoy 1.40; edge0/envoy.yaml:17:5)"},
		{"interval", l.Ejection.Interval.String(), "5s (edge0/envoy.yaml:22:35)"},
		{"ejected share", l.Ejection.MaxShare.String(), "0.1 (default of Envoy 1.40; edge0/envoy.yaml:22:24)"},
		{"cancels", l.Cancels.String(), "true (default of Envoy 1.40; edge0/envoy.yaml:14:17)"},
		{"overridable", l.Overridable.String(), "false (default of Envoy 1.40; edge0/envoy.yaml:8:11)"},
	} {
		if c.got != c.want {
			t.Errorf("%s is %q, want %q", c.what, c.got, c.want)
		}
	}
	if got := l.Gives(topology.Hang); got != topology.S504 {
		t.Errorf("after a hang its caller sees %v", got)
	}
}

func TestCapsAreThoseOfTheCluster(t *testing.T) {
	for _, c := range []struct{ cluster, concurrent, share string }{
		{"circuit_breakers: {thresholds: [{priority: HIGH, max_retries: 9}, {max_retries: 7}]}", "7", ""},
		{"circuit_breakers: {thresholds: [{max_retries: 4294967295}]}", "unbounded", ""},
		{"circuitBreakers: {thresholds: {retryBudget: {}}}", "3", "0.2"},
		{"circuit_breakers: {thresholds: [{retry_budget: {budget_percent: {value: 5}, min_retry_concurrency: 1}}]}", "1",
			"0.05"},
	} {
		l := only(t, read(t, file("", "    "+c.cluster+"\n")))
		if got := l.Budget.Concurrent.String(); !strings.HasPrefix(got, c.concurrent+" (") {
			t.Errorf("%s: %s at once, want %s", c.cluster, got, c.concurrent)
		}
		if got := l.Budget.Share.String(); !strings.HasPrefix(got, c.share) || c.share == "" && got != "" {
			t.Errorf("%s: share %s, want %s", c.cluster, got, c.share)
		}
	}
}

func TestARoutesPolicyReplacesThatOfItsHost(t *testing.T) {
	text := strings.Replace(file(", retry_policy: {retry_on: 5xx}", ""), "name: shop\n",
		"name: shop\n              retry_policy: {retry_on: 5xx, num_retries: 4}\n", 1)
	f := read(t, text)
	if l := only(t, f); l.Tries(topology.S500, topology.Safe).N != 2 {
		t.Errorf("%d tries, want 2", l.Tries(topology.S500, topology.Safe).N)
	}
	if len(f.Remarks) != 1 || f.Remarks[0].Rule != "F602" {
		t.Errorf("remarks %+v", f.Remarks)
	}
	f = read(t, strings.Replace(text, ", retry_policy: {retry_on: 5xx}}", "}", 1))
	l := only(t, f)
	if c := l.Tries(topology.S500, topology.Safe); c.N != 5 || c.By.Tries.Origin != topology.Inherited {
		t.Errorf("got %+v, want 5 tries, inherited", c)
	}
}

func TestOnlyTheMethodsNamedAreRepeated(t *testing.T) {
	l := only(t, read(t, file(", retry_policy: {retry_on: 5xx, retriable_request_headers: "+
		"[{name: ':method', string_match: {exact: GET}}]}", "")))
	if a, b := l.Tries(topology.S503, topology.Safe).N, l.Tries(topology.S503, topology.Unsafe).N; a != 2 || b != 1 {
		t.Errorf("%d and %d tries, want 2 and 1", a, b)
	}
}

// Measured on Envoy 1.40: a POST that hangs is sent again beside the first, although only GET is to be repeated.
func TestAHedgeDoesNotAskForTheMethod(t *testing.T) {
	l := only(t, read(t, file(", timeout: 2s, hedge_policy: {hedge_on_per_try_timeout: true}, retry_policy: "+
		"{retry_on: 5xx, per_try_timeout: 0.3s, retriable_request_headers: [{name: ':method', exact_match: GET}]}", "")))
	for o, want := range map[topology.Outcome]int{topology.Hang: 2, topology.S503: 1} {
		if got := l.Tries(o, topology.Unsafe).N; got != want {
			t.Errorf("%v of a POST: %d tries, want %d", o, got, want)
		}
	}
}

func TestOnlyAnswersOfARateLimitAreRepeatedByTheirWord(t *testing.T) {
	l := only(t, read(t, file(", retry_policy: {retry_on: envoy-ratelimited, num_retries: 2}", "")))
	if got := l.Tries(topology.S429, topology.Safe); got.N != 1 || got.Known {
		t.Errorf("%+v, want at least 1, not known", got)
	}
}

func TestWhatHasNoEffectIsRemarked(t *testing.T) {
	for _, c := range []struct{ action, rule, text, fix string }{
		{", retry_policy: {retry_on: '5xxx'}", "F601", `"5xxx"`, "5xx"},
		{", retry_policy: {retry_on: canceled}", "F601", `"canceled"`, "cancelled"},
		{", retry_policy: {num_retries: 5}", "F602", "no retry_on", ""},
		{", retry_policy: {retry_on: 5xx, max_retries: 5}", "F601", "max_retries", "num_retries"},
		{", retry_policy: {retry_on: retriable-status-codes}", "F601", "no status codes", ""},
		{", retry_policy: {retry_on: 5xx, retriable_status_codes: [429]}", "F601", "lack retriable-status-codes", ""},
		{", retry_policy: {retry_on: 5xx, num_retries: many}", "F702", `"many"`, ""},
	} {
		f := read(t, file(c.action, ""))
		if len(f.Remarks) != 1 {
			t.Errorf("%s: remarks %+v", c.action, f.Remarks)
			continue
		}
		r := f.Remarks[0]
		if r.Rule != c.rule || !strings.Contains(r.Text, c.text) || !strings.Contains(r.Fix, c.fix) || r.At.Line != 15 {
			t.Errorf("%s: %+v", c.action, r)
		}
	}
}

func TestTemplatesAreUnknownAndTheRestIsRead(t *testing.T) {
	l := only(t, read(t, file(", timeout: '${T}', retry_policy: {retry_on: 5xx, num_retries: '${N}', per_try_timeout: 1s}",
		"")))
	if c := l.Tries(topology.S503, topology.Safe); c.Known || c.N != 1 {
		t.Errorf("got %+v, want at least 1, not known", c)
	}
	if !l.Overall.IsUnknown() || l.PerTry.V != time.Second {
		t.Errorf("overall %s, per try %s", l.Overall, l.PerTry)
	}
}

func TestCallersMayOverrideOnlyWhereTheirAddressIsInternal(t *testing.T) {
	with := func(manager string) string {
		return strings.Replace(file("", ""), "          route_config:", "          "+manager+"\n          route_config:", 1)
	}
	for _, c := range []struct {
		manager, version string
		want             bool
	}{
		{"use_remote_address: true", "", false},
		{"use_remote_address: true", "1.30", true},
		{"internal_address_config: {cidr_ranges: [{address_prefix: 10.0.0.0}]}", "", true},
	} {
		docs, _ := source.YAML("e.yaml", []byte(with(c.manager)))
		l := only(t, envoy.Read(docs, source.Assume{Versions: map[string]string{"envoy": c.version}}))
		if got, ok := l.Overridable.Get(); got != c.want || !ok {
			t.Errorf("%s of Envoy %q: %s", c.manager, c.version, l.Overridable)
		}
	}
}

func TestTheDeadVersionIsSaidAndNotRead(t *testing.T) {
	f := read(t,
		"static_resources:\n  clusters:\n  - name: a\n    hosts: [{socket_address: {address: a, port_value: 1}}]\n")
	if len(f.Remarks) != 1 || f.Remarks[0].Rule != "F606" || f.Remarks[0].At.Line != 4 || len(f.Calls) != 0 {
		t.Errorf("%s", f.YAML())
	}
}

func TestARouteAfterOneForEverythingIsRemarked(t *testing.T) {
	text := strings.Replace(file("", ""), "              - match: {prefix: /}",
		"              - match: {prefix: /}\n                route: {cluster: orders}\n              - match: {prefix: /a}",
		1)
	f := read(t, text)
	if len(f.Remarks) != 1 || f.Remarks[0].Rule != "F602" || !strings.Contains(f.Remarks[0].Text, ":14:17") {
		t.Errorf("%+v", f.Remarks)
	}
}
