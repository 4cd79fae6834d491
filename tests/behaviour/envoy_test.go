//go:build envoy

package behaviour_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/abate-go/abate/importer/envoy"
	"github.com/abate-go/abate/importer/envoywords"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/tests/behaviour"
	"github.com/abate-go/abate/tests/behaviour/backend"
	"github.com/abate-go/abate/topology"
)

// envoyFailures are what its words tell apart.
var envoyFailures = append([]failure{{"408", topology.S408}, {"409", topology.S409}}, failures...)

// envoyPolicies is how many policies are drawn. Each meets every failure by GET and by POST.
const envoyPolicies = 150

func TestEnvoyTriesAsTheImporterSays(t *testing.T) {
	program := envoyProgram(t)
	b := backend.Start(t, 1)
	random := rand.New(rand.NewPCG(5, 6))
	var routes strings.Builder
	var cases []behaviour.Case
	for i := range envoyPolicies {
		action := randomEnvoy(random)
		for _, cluster := range []string{"live", "dead"} {
			fmt.Fprintf(&routes, "              - match: {prefix: /%s%d/}\n                route: {cluster: %[1]s, %[3]s}\n",
				cluster, i, action)
		}
		for _, f := range envoyFailures {
			if f.outcome == topology.ResetSent && strings.Contains(action, "http3") {
				continue // an audit does not know which HTTP it is
			}
			cluster := map[bool]string{true: "dead", false: "live"}[f.outcome == topology.Refused]
			for _, method := range []string{"GET", "POST"} {
				cases = append(cases, behaviour.Case{Name: action + ", " + method + " " + f.command,
					Key: fmt.Sprintf("%s%d/%s", cluster, i, method), Method: method, Command: f.command, Outcome: f.outcome})
			}
		}
	}
	address := freeAddress(t)
	text := envoyBootstrap(address, b, routes.String())
	form := readEnvoy(t, text)
	for i := range cases {
		route, _, _ := strings.Cut(cases[i].Key, "/")
		cases[i].Layer = layerAt(t, form, "/"+route+"/*")
	}
	startEnvoy(t, program, text, address)
	behaviour.Run(t, behaviour.Proxy(b, address, envoyTries), cases)
}

// randomEnvoy draws what a route does but for its cluster. Its limit of all tries ends shortly before a try would begin
// if all before it hang: slowness only makes tries later, so the one before has nearly its whole time to arrive.
func randomEnvoy(r *rand.Rand) string {
	const try = 0.5 // s
	// Words that depend on a header of the answer are unknown to an audit.
	words := slices.DeleteFunc(envoywords.Known(), func(w string) bool {
		return w == "retriable-headers" || w == "envoy-ratelimited"
	})
	var on []string
	for range 1 + r.IntN(3) {
		on = append(on, words[r.IntN(len(words))])
	}
	action := fmt.Sprintf("timeout: %gs", try*float64(2+r.IntN(5))-0.1)
	if r.IntN(6) == 0 {
		action += ", hedge_policy: {hedge_on_per_try_timeout: true}"
	}
	policy := "retry_on: '" + strings.Join(on, ",") + "', retry_back_off: {base_interval: 0.001s}"
	line := func(times int, format string, args ...any) {
		if r.IntN(times) > 0 {
			policy += fmt.Sprintf(", "+format, args...)
		}
	}
	line(4, "num_retries: %d", r.IntN(5))
	line(3, "per_try_timeout: %gs", try)
	line(2, "retriable_status_codes: [503, 429]")
	if r.IntN(4) == 0 {
		policy += ", retriable_request_headers: [{name: ':method', string_match: {exact: GET}}]"
	}
	return action + ", retry_policy: {" + policy + "}"
}

// envoyProgram is where bench/arena has Envoy, or in the path. Whoever asks for these tests has it.
func envoyProgram(t *testing.T) string {
	t.Helper()
	for _, name := range []string{filepath.Join("..", "..", "bench", "out", "envoy", "bin", "envoy"), "envoy"} {
		if path, err := exec.LookPath(name); err == nil {
			absolute, err := filepath.Abs(path)
			if err != nil {
				t.Fatal(err)
			}
			return absolute
		}
	}
	t.Fatal("no Envoy in bench/out/envoy, nor in the path: make envoy-cases installs it")
	return ""
}

// envoyBootstrap is a configuration with two clusters: "live" answers, "dead" refuses connections.
func envoyBootstrap(address string, b *backend.Backend, routes string) string {
	var clusters strings.Builder
	for name, to := range map[string]string{"live": b.Addresses[0], "dead": b.Dead[0]} {
		fmt.Fprintf(&clusters, `  - name: %s
    connect_timeout: 1s
    circuit_breakers:
      thresholds: [{max_retries: 9999, max_requests: 9999, max_connections: 9999, max_pending_requests: 9999}]
    load_assignment:
      cluster_name: %[1]s
      endpoints: [{lb_endpoints: [{endpoint: {address: %s}}]}]
`, name, socketAddress(to))
	}
	return fmt.Sprintf(`static_resources:
  listeners:
  - address: %s
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": %s.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: edge
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {"@type": %[2]s.filters.http.router.v3.Router}
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              include_attempt_count_in_response: true
              routes:
%[3]s  clusters:
%[4]s`, socketAddress(address), "type.googleapis.com/envoy.extensions", routes, clusters.String())
}

func socketAddress(address string) string {
	host, port, _ := net.SplitHostPort(address)
	return fmt.Sprintf("{socket_address: {address: %s, port_value: %s}}", host, port)
}

func readEnvoy(t *testing.T, text string) topology.Form {
	t.Helper()
	docs, remarks := source.YAML("envoy.yaml", []byte(text))
	if len(docs) != 1 || len(remarks) > 0 || !envoy.Recognise(docs[0]) {
		t.Fatalf("the importer does not recognise the file: %v", remarks)
	}
	return envoy.Read(docs, source.Assume{})
}

func startEnvoy(t *testing.T, program, text, address string) {
	t.Helper()
	process := newProcess(t, "envoy")
	file := process.File("envoy.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, process, exec.Command(program, "-c", file, "--concurrency", "1", "--disable-hot-restart",
		"--log-level", "error"), address)
}

// envoyTries is what Envoy says in the header that include_attempt_count_in_response adds.
func envoyTries(r *http.Response) int {
	n, err := strconv.Atoi(r.Header.Get("X-Envoy-Attempt-Count"))
	if err != nil {
		return 0
	}
	return n
}
