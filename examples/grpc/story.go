package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
)

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// logged prints what the guard does. A program of yours would hand it to its logger.
func logged(e abate.Event) {
	switch {
	case e.Kind == core.BreakerChanged:
		fmt.Printf("    client: circuit breaker %v, was %v: %s\n", e.To, e.From, e.Detail)
	case server.quiet.Load():
	case e.Kind == core.AttemptEnded && e.Err == nil && e.Class == abate.Ignored:
		fmt.Printf("    client: attempt %d given up, the other copy was quicker\n", e.Attempt)
	case e.Kind == core.AttemptEnded:
		fmt.Printf("    client: attempt %d ended after %v: %v\n", e.Attempt, e.Latency.Round(time.Millisecond),
			status.Code(e.Err))
	case e.Kind == core.RetryScheduled:
		fmt.Printf("    client: again in %v\n", e.Delay.Round(time.Millisecond))
	case e.Kind == core.HedgeSent:
		fmt.Printf("    client: it takes long, so here is a second copy: attempt %d\n", e.Attempt)
	}
}

// story calls the service in its good moments and its bad ones.
func story(conn *grpc.ClientConn, charge func(card, order string) (string, error)) {
	fmt.Println("1. The service fails twice. The caller notices nothing, and the card is charged once.")
	server.failing.Store(2)
	show(charge("card 1234", "order-1"))

	fmt.Println("\n2. The same order comes again. The answer is the one of the first time; the service has no work.")
	show(charge("card 1234", "order-1"))

	fmt.Println("\n3. An answer takes long. A second copy of the question gets one sooner.")
	server.slow.Store(1)
	balance := new(wrapperspb.StringValue)
	err := conn.Invoke(context.Background(), "/shop.Payment/Balance", wrapperspb.String("card 1234"), balance)
	show(balance.Value, err)

	fmt.Println("\n4. The service goes down, and 60 orders come.")
	server.failing.Store(math.MaxInt64)
	server.quiet.Store(true)
	orders(60, charge)

	fmt.Println("\n5. What Prometheus sees:")
	metrics()
}

func show(answer string, err error) { fmt.Printf("    caller: %q, %v\n", answer, err) }

// orders makes n calls, and prints how they ended.
func orders(n int, charge func(card, order string) (string, error)) {
	before, ends := server.calls.Load(), make(map[string]int)
	for i := range n {
		_, err := charge("card 1234", fmt.Sprint("order-", i+2))
		end := new(abate.Error)
		reason := "failed"
		if errors.As(err, &end) {
			reason = end.Reason.Error()
		}
		ends[fmt.Sprintf("%s (%v)", reason, status.Code(err))]++
	}
	fmt.Printf("    server: %d calls\n", server.calls.Load()-before)
	for _, end := range slices.Sorted(maps.Keys(ends)) {
		fmt.Printf("    caller: %d orders: %s\n", ends[end], end)
	}
}

// metrics prints some of what a scrape would show.
func metrics() {
	shown := []string{"grpc_client_retry_attempts_total", "grpc_client_retry_budget_exhausted_total", "abate_calls_total",
		"abate_call_refusals_total",
		"abate_hedges_total", "circuit_breaker_state", "abate_amplification_ratio"}
	for _, family := range must(prometheus.DefaultGatherer.Gather()) {
		if !slices.Contains(shown, family.GetName()) {
			continue
		}
		for _, m := range family.GetMetric() {
			if v := m.GetCounter().GetValue() + m.GetGauge().GetValue(); v != 0 {
				fmt.Printf("    %s{%s} %.3g\n", family.GetName(), labels(m), v)
			}
		}
	}
}

func labels(m *dto.Metric) string {
	var all []string
	for _, l := range m.GetLabel() {
		all = append(all, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	return strings.Join(all, ",")
}
