package abateotel_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abateotel"
)

// A function fails once, and the trace says what the policy made of that. A program gives its own provider to
// otel.SetTracerProvider, and New an empty Config.
func Example() {
	spans := tracetest.NewInMemoryExporter()
	telemetry, err := abateotel.New(abateotel.Config{TracerProvider: trace.NewTracerProvider(trace.WithSyncer(spans))})
	if err != nil {
		fmt.Println(err)
		return
	}
	policy := abate.DefaultPolicy()
	policy.InitialDelay, policy.Jitter = 5*time.Millisecond, "none"
	telemetry.Adjust("ledger", &policy) // metrics; policyfile.Load(path, telemetry.Adjust) does it for all services
	guard, err := abate.New("ledger", policy)
	if err != nil {
		fmt.Println(err)
		return
	}
	telemetry.Add(guard)

	tries := 0
	answer, err := abateotel.Do(context.Background(), telemetry, guard, func(context.Context) (string, error) {
		if tries++; tries == 1 {
			return "", errors.New("connection refused")
		}
		return "booked", nil
	})
	fmt.Println(answer, err)
	for _, span := range spans.GetSpans() {
		fmt.Printf("%s %q\n", span.Name, span.Status.Description)
		for _, event := range span.Events {
			fmt.Println("·", event.Name, event.Attributes[1].Key, event.Attributes[1].Value.Emit())
		}
	}
	// Output:
	// booked <nil>
	// attempt ledger "connection refused"
	// attempt ledger ""
	// call ledger ""
	// · abate.retry.scheduled abate.retry.delay 0.005
}
