package behaviour_test

import (
	"embed"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/importer/spring"
	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/tests/behaviour"
	"github.com/abate-go/abate/tests/behaviour/backend"
	"github.com/abate-go/abate/topology"
)

//go:embed spring/pom.xml spring/src
var springFiles embed.FS

// springInstances are resilience4j's settings of a name. Each is tried with every failure that springFailures has.
var springInstances = []struct {
	name  string
	retry string // in one line of YAML
	limit string // of the time limiter, if there is one
}{
	{"default", "{}", ""},
	{"two", "{maxAttempts: 2, waitDuration: 10ms}", ""},
	{"one", "{maxAttempts: 1}", ""},
	{"five", "{max-attempts: 5, wait-duration: 5ms}", ""},
	{"wait", "{maxAttempts: 3, waitDuration: 300ms}", ""},
	{"exponential", "{maxAttempts: 4, waitDuration: 100ms, enableExponentialBackoff: true, " +
		"exponentialBackoffMultiplier: 2}", ""},
	{"capped", "{maxAttempts: 4, waitDuration: 100ms, enableExponentialBackoff: true, exponentialBackoffMultiplier: 10, " +
		"exponentialMaxWaitDuration: 200ms}", ""},
	{"random", "{maxAttempts: 4, waitDuration: 100ms, enableRandomizedWait: true, randomizedWaitFactor: 0.2}", ""},
	{"no-wait-no-growth", "{maxAttempts: 2, enableExponentialBackoff: true, exponentialBackoffMultiplier: 4}", ""},
	{"based", "{baseConfig: quick}", ""},
	{"based-otherwise", "{baseConfig: quick, maxAttempts: 2}", ""},
	{"of-servers", "{waitDuration: 10ms, retryExceptions: [" + springClient + "HttpServerErrorException]}", ""},
	{"of-io", "{waitDuration: 10ms, retryExceptions: [" + springClient + "ResourceAccessException]}", ""},
	{"unavailable", "{waitDuration: 10ms, retryExceptions: [" + springClient +
		"HttpServerErrorException$ServiceUnavailable, " + springClient + "HttpClientErrorException$TooManyRequests]}", ""},
	{"not-clients", "{waitDuration: 10ms, ignoreExceptions: [" + springClient + "HttpClientErrorException]}", ""},
	{"servers-not-500", "{waitDuration: 10ms, retryExceptions: [" + springClient + "HttpServerErrorException], " +
		"ignoreExceptions: [" + springClient + "HttpServerErrorException$InternalServerError]}", ""},
	{"limited", "{maxAttempts: 3, waitDuration: 10ms}", "{timeoutDuration: 400ms}"},
	{"limited-once", "{maxAttempts: 1}", "{timeoutDuration: 400ms}"},
	{"limited-default", "{maxAttempts: 2, waitDuration: 10ms}", "{cancelRunningFuture: true}"},
	{"limited-waits", "{maxAttempts: 3, waitDuration: 100ms, enableExponentialBackoff: true}", "{timeoutDuration: 300ms}"},
}

const springClient = "org.springframework.web.client."

var springFailures = []failure{{"500", topology.S500}, {"502", topology.S502}, {"503", topology.S503},
	{"429", topology.S429}, {"404", topology.S4xx}, {"refused", topology.Refused}, {"hang", topology.Hang}}

func TestResilience4jTriesAsTheImporterSays(t *testing.T) {
	var retries, limiters strings.Builder
	var cases []behaviour.Case
	for _, i := range springInstances {
		fmt.Fprintf(&retries, "      %s: %s\n", i.name, i.retry)
		if i.limit != "" {
			fmt.Fprintf(&limiters, "      %s: %s\n", i.name, i.limit)
		}
		for _, f := range springFailures {
			if f.outcome == topology.Hang && i.limit == "" {
				continue // the time limit of its client is in code
			}
			for _, method := range []string{"GET", "POST"} {
				cases = append(cases, behaviour.Case{Name: i.name + ", " + method + " " + f.command, Key: i.name + "/" + method,
					Method: method, Command: f.command, Outcome: f.outcome})
			}
		}
	}
	b := backend.Start(t, 1)
	form, p := startSpring(t, b, "resilience4j:\n  retry:\n    configs:\n"+
		"      quick: {maxAttempts: 4, waitDuration: 5ms}\n    instances:\n"+retries.String()+
		"  timelimiter:\n    instances:\n"+limiters.String())
	for i := range cases {
		name, _, _ := strings.Cut(cases[i].Key, "/")
		cases[i].Layer = policyOf(t, form, name)
	}
	behaviour.Run(t, p, cases)
}

// A breaker inside the retry counts tries and opens in the middle of a call; one outside counts calls, so that all
// tries of as many calls arrive.
func TestABreakerOfResilience4jStandsWhereTheImporterSays(t *testing.T) {
	for _, outside := range []bool{false, true} {
		t.Run(map[bool]string{false: "by default", true: "moved outside"}[outside], func(t *testing.T) {
			t.Parallel()
			b := backend.Start(t, 1)
			breakerOrder, retryOrder := "", ""
			if outside {
				breakerOrder, retryOrder = "    circuitBreakerAspectOrder: 1\n", "    retryAspectOrder: 2\n"
			}
			form, p := startSpring(t, b, "resilience4j:\n  circuitbreaker:\n"+breakerOrder+
				"    instances:\n      orders: {minimumNumberOfCalls: 3, slidingWindowSize: 10}\n  retry:\n"+retryOrder+
				"    instances:\n      orders: {maxAttempts: 5, waitDuration: 5ms}\n")
			l := policyOf(t, form, "orders")
			least, inside := l.Breaker.MinimumCalls.V, l.Breaker.InsideRetry.Or(false)
			if inside == outside {
				t.Fatalf("the importer says that the breaker is inside: %s", l.Breaker.InsideRetry)
			}
			want := least // tries
			if !inside {
				want = least * l.Tries(topology.S503, topology.Safe).N
			}
			var paths []string
			for i := range 2 * least { // one after the other
				paths = append(paths, fmt.Sprintf("/orders/%d/503", i))
				if _, err := p.Send(t.Context(), "GET", paths[i]); err != nil {
					t.Fatal(err)
				}
			}
			got := 0
			for _, path := range paths {
				got += len(b.Attempts(path))
			}
			if got != want {
				t.Errorf("%d tries of %d calls arrived, the importer says %d", got, len(paths), want)
			}
		})
	}
}

func policyOf(t *testing.T, form topology.Form, callee string) *topology.Layer {
	t.Helper()
	for i := range form.Policies {
		if form.Policies[i].Callees[0] == callee {
			return &form.Policies[i].Layer
		}
	}
	t.Fatalf("the importer found no policy for %s", callee)
	return nil
}

// startSpring starts the application in the folder spring with a configuration, and returns what the importer says of
// it.
func startSpring(t *testing.T, b *backend.Backend, text string) (topology.Form, *behaviour.Product) {
	t.Helper()
	java := needs.Program(t, "java")
	project, err := fs.Sub(springFiles, "spring")
	if err != nil {
		t.Fatal(err)
	}
	folder := needs.Maven(t, "resilience4j", project,
		"compile", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=libs")
	docs, remarks := source.YAML("application.yaml", []byte(text))
	if len(docs) != 1 || len(remarks) > 0 || !spring.Recognise(docs[0]) {
		t.Fatalf("the importer does not recognise the file: %v", remarks)
	}
	form := spring.Read(docs, source.Assume{Versions: map[string]string{"resilience4j": "2.3.0"}})
	process := newProcess(t, "spring")
	write(t, process.File("application.yaml"), []byte(text))
	address := freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	classes := filepath.Join(folder, "target", "classes") + string(filepath.ListSeparator) +
		filepath.Join(folder, "libs", "*")
	cmd := exec.Command(java, "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dport="+port,
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-Dorg.springframework.boot.logging.LoggingSystem=none",
		"-Dbackend="+b.Addresses[0], "-Ddead="+b.Dead[0], "-Dspring.config.location="+process.File("application.yaml"),
		"-cp", classes, "abate.Main")
	in, err := cmd.StdinPipe() // its end ends the application
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	start(t, process, cmd, address)
	return form, behaviour.Proxy(b, address, func(r *http.Response) int {
		tries, err := strconv.Atoi(r.Header.Get("X-Tries"))
		if err != nil {
			return 0
		}
		return tries
	})
}
