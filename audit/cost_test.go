package audit_test

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/exporter"
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/topology"
	"go.yaml.in/yaml/v3"
)

// guarded has a breaker that opens soon, and a service that is slow to give up.
const guarded = `services:
  orders:
    maxRetries: 3
    attemptTimeout: 1s
    timeout: 8s
    retryOn: [timeout, connect-failure, "503"]
    retryMethods: [GET, HEAD]
    circuitBreaker: {kind: thresholds, failureThreshold: 5, waitDurationInOpenState: 1s}
`

func exported(t *testing.T, format, policy string) (exporter.Format, importer.File, []audit.Loss) {
	t.Helper()
	for _, f := range exporter.Formats {
		if f.Name == format {
			file := importer.File{Name: "policy.yaml", Data: []byte(policy)}
			_, losses, err := audit.Export(f, file, nil)
			if err != nil {
				t.Fatal(err)
			}
			return f, file, losses
		}
	}
	t.Fatalf("no format %s", format)
	return exporter.Format{}, importer.File{}, nil
}

func TestWhatALossCostsIsMeasuredInAnOutage(t *testing.T) {
	f, file, losses := exported(t, "istio", guarded)
	if err := audit.AddCosts(context.Background(), f, file, nil, losses); err != nil {
		t.Fatal(err)
	}
	costs := losses[0].Costs
	if len(costs) == 0 {
		t.Fatal("nothing was measured")
	}
	c := costs[0]
	if c.Written.Attempts > 0.5 || c.Exported.Attempts < 1 || c.Exported.InTime >= c.Written.InTime {
		t.Errorf("without a breaker and a budget it is no worse: %+v", c)
	}
	breaker := false
	for _, a := range c.Alone {
		breaker = breaker || a.Key == "circuitBreaker" && a.Storm.Attempts > 2*c.Written.Attempts
	}
	if !breaker {
		t.Errorf("the cost of the breaker alone is not said: %+v", c.Alone)
	}
	text := audit.LossText(losses)
	for _, want := range []string{"while it hangs", "as written: ", "as exported: ", "without circuitBreaker: ", "20s"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if testing.Short() { // it takes as long again
		return
	}
	_, _, again := exported(t, "istio", guarded)
	if err := audit.AddCosts(context.Background(), f, file, nil, again); err != nil ||
		!reflect.DeepEqual(again, losses) {
		t.Errorf("the second time it is another number: %v, %v", again, err)
	}
}

func TestALossThatChangesNothingInAnOutageCostsNothing(t *testing.T) {
	f, file, losses := exported(t, "haproxy", "services:\n  a: {maxRetries: 0, timeout: 2s, attemptTimeout: 2s, "+
		"retryBudget: {disabled: true}, circuitBreaker: {disabled: true}, ignoreZones: true}\n")
	if err := audit.AddCosts(context.Background(), f, file, nil, losses); err != nil {
		t.Fatal(err)
	}
	for _, c := range losses[0].Costs {
		if d := c.Written.Attempts - c.Exported.Attempts; d < -0.02 || d > 0.02 {
			t.Errorf("a difference where there is none: %+v", c)
		}
	}
	if text := audit.LossText(losses); len(losses[0].Costs) > 0 && !strings.Contains(text, "no difference") {
		t.Errorf("it is not said that there is no difference:\n%s", text)
	}
}

func TestOfManyServicesTheFirstArePlayedAndTheOthersNamed(t *testing.T) {
	if testing.Short() { // each service takes half a second of a processor
		return
	}
	policy := "services:\n"
	for i := range audit.MostCosts + 1 {
		policy += fmt.Sprintf("  s%d: {maxRetries: 1, attemptTimeout: 1s, timeout: 3s}\n", i)
	}
	f, file, losses := exported(t, "nginx", policy)
	if err := audit.AddCosts(context.Background(), f, file, nil, losses); err != nil {
		t.Fatal(err)
	}
	for i, l := range losses[:audit.MostCosts+1] {
		if played := len(l.Costs) > 0; played == (i == audit.MostCosts) || l.Unplayed == played {
			t.Errorf("service %d of %d: %+v", i+1, len(losses), l)
		}
	}
}

func TestAnInterruptedMeasurementIsAnError(t *testing.T) {
	f, file, losses := exported(t, "istio", guarded)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := audit.AddCosts(ctx, f, file, nil, losses); err != context.Canceled {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestWritesThatOnlyTheExportRepeatsAreWarnedOf(t *testing.T) {
	for format, warned := range map[string]bool{"istio": true, "linkerd": true, "gateway-api": true, "envoy": false,
		"haproxy": false} {
		_, _, losses := exported(t, format, guarded)
		got := audit.Warnings(format, losses)
		if (len(got) > 0) != warned {
			t.Errorf("%s: warnings %q, want some: %v", format, got, warned)
		}
		if warned && !strings.Contains(got[0], "POST and PATCH of orders after ") {
			t.Errorf("%s: %s", format, got[0])
		}
	}
	everything := strings.Replace(guarded, "[GET, HEAD]", "[GET, HEAD, POST, PATCH, PUT, DELETE, OPTIONS]", 1)
	for _, l := range func() []audit.Loss { _, _, l := exported(t, "istio", everything); return l }() {
		for _, o := range l.Repeats {
			if o == topology.S503.String() {
				t.Errorf("the policy repeats POST itself, and it is warned of it: %v", l.Repeats)
			}
		}
	}
}

// What the page of the audit shows is what the program says of the example's payment-service, and is played as it says.
func TestThePageSaysWhatLossesCost(t *testing.T) {
	page, err := os.ReadFile("../docs/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../examples/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	policy := map[string]any{}
	if err := yaml.Unmarshal(text, &policy); err != nil {
		t.Fatal(err)
	}
	const service = "payment-service"
	policy["services"] = map[string]any{service: policy["services"].(map[string]any)[service]}
	text, err = yaml.Marshal(map[string]any{"defaults": policy["defaults"], "services": policy["services"]})
	if err != nil {
		t.Fatal(err)
	}
	f, file, losses := exported(t, "istio", string(text))
	if err := audit.AddCosts(context.Background(), f, file, nil, losses); err != nil {
		t.Fatal(err)
	}
	_, costs, _ := strings.Cut(audit.LossText(losses), "  while it ")
	costs, _, _ = strings.Cut("  while it "+costs, "Costs are measured")
	if _, shown, _ := strings.Cut(string(page), "measured in the simulator (here `"+service); !strings.Contains(shown,
		"```\n"+costs+"```") {
		t.Errorf("the page does not show what is measured:\n%s", costs)
	}
	for _, sentence := range []string{
		fmt.Sprintf("one client with %v requests/s whose users wait %.0f s, and a service that is %.0f %% busy, works %d ms "+
			"on a request, and fails for %.0f s", audit.AssumedRate, audit.AssumedPatience.Seconds(),
			100*audit.AssumedUtilisation, audit.AssumedTime.Milliseconds(), audit.CostOutage.Seconds()),
		fmt.Sprintf("from the beginning of the outage to %.0f s after it", audit.CostAfter.Seconds()),
		[]string{3: "three runs each", 5: "five runs each"}[audit.CostRuns],
		"at most " + []string{3: "three", 4: "four", 5: "five"}[audit.MostCosts] + " services are played",
	} {
		if !strings.Contains(string(page), sentence) {
			t.Errorf("the page does not say %q", sentence)
		}
	}
}
