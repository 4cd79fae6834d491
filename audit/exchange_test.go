package audit_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/exporter"
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/importer/source"
)

// randomPolicy draws a policy file with one service.
func randomPolicy(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString("services:\n  orders:\n    upstreams: [\"http://orders.shop:8080\"")
	if r.IntN(2) == 0 {
		b.WriteString(", \"http://orders-2.shop:8080\"")
	}
	b.WriteString("]\n")
	line := func(format string, args ...any) {
		if r.IntN(3) > 0 {
			fmt.Fprintf(&b, "    "+format+"\n", args...)
		}
	}
	line("maxRetries: %d", r.IntN(6))
	line("attemptTimeout: %dms", 1+r.IntN(5000))
	line("timeout: %dms", 5000+r.IntN(20000))
	line("initialDelay: %dms", 1+r.IntN(500))
	line("maxDelay: %dms", 500+r.IntN(20000))
	line("multiplier: %d", 1+r.IntN(4))
	line("jitter: %s", []string{"full", "equal", "none"}[r.IntN(3)])
	line("retryOn: [%s]", []string{"gateway-error", "5xx, reset", "connect-failure", "timeout, \"503\"",
		"UNAVAILABLE"}[r.IntN(5)])
	line("retryBudget: {ratio: 0.%d, reserve: 0}", 1+r.IntN(9))
	line("circuitBreaker: {failureRateThreshold: 0.%d, minimumNumberOfCalls: %d}", 1+r.IntN(9), 1+r.IntN(100))
	line("bulkhead: {maxConcurrentCalls: %d}", 1+r.IntN(500))
	line("outlierDetection: {consecutiveFailures: %d}", 1+r.IntN(9))
	return b.String()
}

// What a format has taken once it takes without a loss: the loss report names everything that is lost.
func TestWhatCameBackFromAFormatComesBackTheSame(t *testing.T) {
	n := 300
	if testing.Short() {
		n = 30
	}
	for _, f := range exporter.Formats {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, 2))
			for range n {
				policy := randomPolicy(r)
				text, losses, err := audit.Export(f, importer.File{Name: "policy.yaml", Data: []byte(policy)},
					map[string][]string{"orders": {"http://orders.shop:8080"}})
				if err != nil {
					t.Fatalf("%v\n%s", err, policy)
				}
				if losses[0].Unread {
					t.Fatalf("what was written was not found again:\n%s\nof\n%s", text, policy)
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
	if !strings.Contains(said, "also repeats, and goes on: gateway envoy: 3 tries") {
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
