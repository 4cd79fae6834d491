//go:build !race

package audit_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/exporter"
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/importer/source"
)

// policies is how many random policies a test draws: more if ABATE_POLICIES says so.
func policies(t *testing.T, usual int) int {
	text := os.Getenv("ABATE_POLICIES")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// names of services that a random policy may have, and where they are.
var names = []string{"orders", "payment.shop", "stock-v2"}

func urlsOf(name string, endpoints int) []string {
	host, _, _ := strings.Cut(name, ".")
	urls := []string{"http://" + host + ".shop:8080", "http://" + host + "-2.shop:8080"}
	return urls[:endpoints]
}

// randomPolicy draws a policy file with one to three services. Values of the policy file that have a range are drawn
// from all of it, small ones more often.
func randomPolicy(r *rand.Rand) (policy string, urls map[string][]string) {
	var b strings.Builder
	b.WriteString("services:\n")
	urls = map[string][]string{}
	for _, name := range names[:1+r.IntN(r.IntN(len(names))+1)] {
		urls[name] = urlsOf(name, 1+r.IntN(2))
		fmt.Fprintf(&b, "  %s:\n    upstreams: [%s]\n", name, strings.Join(urls[name], ", "))
		randomService(r, &b)
	}
	return b.String(), urls
}

func randomService(r *rand.Rand, b *strings.Builder) {
	line := func(format string, args ...any) {
		if r.IntN(3) > 0 {
			fmt.Fprintf(b, "    "+format+"\n", args...)
		}
	}
	few := func(most int) int { return r.IntN(1 + r.IntN(most)) } // 0 to most-1, small ones more often
	line("maxRetries: %d", []int{r.IntN(6), few(101)}[r.IntN(2)])
	most := 5000 + few(86_395_000) // milliseconds
	attempt := 1 + few(5000)
	line("attemptTimeout: %dms", attempt)
	line("timeout: %dms", most)
	delay := 1 + few(3_600_000)
	line("initialDelay: %dms\n    maxDelay: %dms", delay, delay+few(86_400_000-delay))
	line("multiplier: %g", 1+float64(few(990))/10)
	line("backoff: %s", []string{"exponential", "linear", "fixed", "none"}[r.IntN(4)])
	line("jitter: %s", []string{"full", "equal", "decorrelated", "factor\n    jitterFactor: 0.37", "none"}[r.IntN(5)])
	line("retryOn: [%s]", some(r, retryWords, 5))
	if r.IntN(4) == 0 {
		line("neverRetryOn: [%s]", some(r, retryWords, 2))
	}
	line("retryMethods: [%s]", some(r, []string{"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "POST", "PATCH",
		"/shop.Stock/*"}, 6))
	line("retryBudget: {%s}", []string{fmt.Sprintf("ratio: %g, reserve: %d", float64(1+few(10_000))/10_000, r.IntN(2)),
		"disabled: true", fmt.Sprintf("kind: adaptive, maxRatio: 0.%d", 1+r.IntN(9)),
		fmt.Sprintf("kind: tokens, maxTokens: %d, depositPerSuccess: 0.%d", 1+few(1000), 1+r.IntN(9))}[r.IntN(4)])
	window := []string{fmt.Sprintf("slidingWindow: %ds, minimumNumberOfCalls: %d", 1+few(600), 1+few(1000)),
		fmt.Sprintf("slidingWindow: %d, minimumNumberOfCalls: %d", 100+few(900), 1+few(100))}[r.IntN(2)]
	line("circuitBreaker: {%s}", []string{"disabled: true", fmt.Sprintf("kind: thresholds, failureThreshold: %d",
		1+few(500)),
		fmt.Sprintf("kind: thresholds, failureRateThreshold: %g, %s, waitDurationInOpenState: %dms",
			float64(1+r.IntN(100))/100, window, 1+few(8000))}[r.IntN(3)])
	line("bulkhead: {maxConcurrentCalls: %d}", 1+few(100_000))
	line("outlierDetection: {%s}", []string{"disabled: true", fmt.Sprintf(
		"consecutiveFailures: %d, baseEjectionTime: %ds",
		1+r.IntN(9), 1+few(3600))}[r.IntN(2)])
	if r.IntN(4) == 0 {
		line("hedge: {maxHedges: %d, delay: %dms}", 1+r.IntN(3), 1+few(attempt))
	}
}

var retryWords = []string{"408", "409", "429", "500", "502", "503", "504", "5xx", "gateway-error", "connect-failure",
	"reset", "timeout", "error", "UNAVAILABLE", "RESOURCE_EXHAUSTED", "INTERNAL", "UNKNOWN", "DEADLINE_EXCEEDED",
	"CANCELLED", "ABORTED"}

// some draws one to most of the words, each once, as a list.
func some(r *rand.Rand, words []string, most int) string {
	drawn := make([]string, 0, most)
	for _, i := range r.Perm(len(words))[:1+r.IntN(most)] {
		drawn = append(drawn, fmt.Sprintf("%q", words[i]))
	}
	return strings.Join(drawn, ", ")
}

// What a format has taken once it takes without a loss: the loss report names everything that is lost.
func TestWhatCameBackFromAFormatComesBackTheSame(t *testing.T) {
	n := policies(t, 150)
	if testing.Short() {
		n = policies(t, 30)
	}
	for _, f := range exporter.Formats {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, 2))
			for range n {
				policy, urls := randomPolicy(r)
				text, losses, err := audit.Export(f, importer.File{Name: "policy.yaml", Data: []byte(policy)}, urls)
				if err != nil {
					t.Fatalf("%v\n%s", err, policy)
				}
				for _, l := range losses {
					if l.Unread {
						t.Fatalf("%s was not found again:\n%s\nof\n%s", l.Service, text, policy)
					}
				}
				again := audit.Again(f, text)
				for _, row := range again {
					if row.Kind != exporter.Exact {
						t.Fatalf("%s: %s\n%s\nof\n%s", row.Kind, row, text, policy)
					}
				}
			}
		})
	}
}

func TestImportTakesOneLayerAndNamesTheOthers(t *testing.T) {
	text, losses, err := audit.Import(file(two), "shop", source.Assume{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"orders":`, "maxRetries: 3", `retryOn: ["503"]`, "timeout: 1m0s"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(string(text), `"db":`) {
		t.Errorf("the policy of shop has calls of another service:\n%s", text)
	}
	said := audit.LossText(losses)
	if !strings.Contains(said, "beside the policy, this still repeats the same calls, until it is switched off where it "+
		"stands: gateway envoy: 3 tries (") {
		t.Errorf("the gateway is not named:\n%s", said)
	}
	if _, _, err := audit.Import(file("calls: [{from: a, to: b}]"), "", source.Assume{}); err == nil {
		t.Error("files without retries make a policy")
	}
}

func TestServicesOfOneMachineAreToldApartInTheLossReport(t *testing.T) {
	const policy = "services:\n  a: {maxRetries: 2, attemptTimeout: 1s, upstreams: [\"http://127.0.0.1:1\"]}\n" +
		"  b: {maxRetries: 3, attemptTimeout: 2s, upstreams: [\"http://127.0.0.1:2\"]}\n"
	for _, f := range exporter.Formats {
		text, losses, err := audit.Export(f, importer.File{Name: "policy.yaml", Data: []byte(policy)},
			map[string][]string{"a": {"http://127.0.0.1:1"}, "b": {"http://127.0.0.1:2"}})
		if err != nil || len(losses) != 2 || losses[0].Unread || losses[1].Unread {
			t.Errorf("%s: %v, %+v", f.Name, err, losses)
		}
		if f.Name == "nginx" && !strings.Contains(string(text), "server 127.0.0.1:2") {
			t.Errorf("the addresses are not in what was written:\n%s", text)
		}
	}
}

func TestMethodsThatAFormatCannotListAreALoss(t *testing.T) {
	const policy = "services:\n  a: {maxRetries: 2, retryMethods: [PUT, GET], retryOn: [\"503\"]}\n"
	want := map[string]string{"envoy": "exact", "haproxy": "exact", "istio": "GET, PUT becomes all methods"}
	for _, f := range exporter.Formats {
		_, losses, err := audit.Export(f, importer.File{Name: "policy.yaml", Data: []byte(policy)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range losses[0].Rows {
			if row.Setting == "methods repeated" && want[f.Name] != "" && string(row.Kind) != want[f.Name] &&
				!strings.HasSuffix(row.String(), want[f.Name]) {
				t.Errorf("%s: %s (%s), want %s", f.Name, row, row.Kind, want[f.Name])
			}
			if row.Setting == "methods repeated" {
				delete(want, f.Name)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("no row of methods in %v", want)
	}
}

// Istio's sidecars connect to their own application again, which loads nobody and nobody has to switch off.
func TestImportNamesNoLayerThatOnlyConnectsToItsOwnApplication(t *testing.T) {
	_, losses, err := audit.Import(file(`services: [{name: orders}]
calls:
- from: shop
  to: orders
  layers:
  - {kind: client, product: x, repeats: [{on: ["503"], tries: 4}]}
  - {kind: sidecar-out, product: dapr, repeats: [{on: ["503"], tries: unbounded}]}
  - {kind: sidecar-in, product: istio, repeats: [{on: [refused, reset-unsent], tries: 3}]}
`), "shop", source.Assume{})
	if err != nil || len(losses) != 1 || len(losses[0].Others) != 1 ||
		!strings.HasPrefix(losses[0].Others[0], "sidecar-out dapr: tries without a limit (") {
		t.Errorf("%+v, %v", losses, err)
	}
}
