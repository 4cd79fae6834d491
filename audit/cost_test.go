package audit_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/exporter"
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/topology"
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
