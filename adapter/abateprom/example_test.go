package abateprom_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abateprom"
)

// A service fails, its breaker opens, and the page that Prometheus scrapes says so. Series at zero are not printed
// here, nor those that show the policy.
func Example() {
	registry := prometheus.NewRegistry()
	metrics, err := abateprom.New(registry)
	if err != nil {
		fmt.Println(err)
		return
	}
	metrics.ShowPlainNames(false) // nobody here uses circuit_breaker_state without abate_
	policy := abate.DefaultPolicy()
	policy.CircuitBreaker.FailureThreshold = 3
	policy.CircuitBreaker.WaitDurationInOpenState = time.Minute
	policy.Backoff = "none"
	metrics.Adjust("payment-service", &policy) // policyfile.Load(path, metrics.Adjust) does it for all services
	guard, err := abate.New("payment-service", policy)
	if err != nil {
		fmt.Println(err)
		return
	}
	metrics.Add(guard)

	for range 2 {
		_, err = abate.Do(context.Background(), guard, func(context.Context) (string, error) {
			return "", errors.New("connection refused")
		})
	}
	fmt.Println(err)

	page := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(
		page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(page.Body.String()) {
		if !strings.HasPrefix(line, "#") && !strings.HasSuffix(line, " 0\n") && !strings.Contains(line, "delay") &&
			!strings.Contains(line, "abate_policy_") {
			fmt.Print(line)
		}
	}
	// Output:
	// payment-service: circuit open, call refused (consecutive failures, the last: connection refused)
	// abate_amplification_ratio{service="payment-service"} 3
	// abate_attempts_total{class="failure",service="payment-service"} 3
	// abate_call_refusals_total{reason="circuit_open",service="payment-service"} 2
	// abate_calls_ended_total{service="payment-service"} 2
	// abate_calls_failed_total{service="payment-service"} 2
	// abate_calls_total{outcome="failure",service="payment-service"} 1
	// abate_calls_total{outcome="refused",service="payment-service"} 1
	// abate_circuit_breaker_open{service="payment-service"} 1
	// abate_circuit_breaker_state{service="payment-service"} 2
	// abate_circuit_breaker_transitions_total{service="payment-service",to="open"} 1
	// abate_extra_attempts_total{service="payment-service"} 2
	// abate_first_attempts_total{service="payment-service"} 1
	// abate_noticed_circuit_open{service="payment-service"} 1
	// abate_noticed_policy{of="allowed_extra_attempts",service="payment-service"} 0.11000000000000001
	// abate_noticed_policy{of="allowed_retries",service="payment-service"} 0.07272727272727274
	// abate_noticed_policy{of="bank",service="payment-service"} 10
	// abate_noticed_policy{of="circuit_wait",service="payment-service"} 60
	// abate_noticed_policy{of="storm",service="payment-service"} 1.555
	// abate_noticed_total{of="calls",service="payment-service"} 2
	// abate_noticed_total{of="extra_attempts",service="payment-service"} 2
	// abate_noticed_total{of="failed_calls",service="payment-service"} 2
	// abate_noticed_total{of="many_failed_calls",service="payment-service"} 2
	// abate_noticed_total{of="unsent_calls",service="payment-service"} 1
	// abate_retries_total{service="payment-service"} 2
	// abate_retry_budget_balance{service="payment-service"} 8.1
}
