package abateprom_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/shed"
)

// names are the metrics there are. Alerts and dashboards use them: a change here breaks somebody's.
var names = []string{
	"abate_active_retries", "abate_amplification_ratio", "abate_arriving_retry_ratio",
	"abate_attempt_rate_limit", "abate_attempts_running", "abate_attempts_total", "abate_bulkhead_limit",
	"abate_bulkhead_queued", "abate_bulkhead_running", "abate_call_refusals_total", "abate_calls_ended_total",
	"abate_calls_failed_total", "abate_calls_running", "abate_calls_total", "abate_circuit_breaker_held",
	"abate_circuit_breaker_open", "abate_circuit_breaker_state", "abate_circuit_breaker_transitions_total",
	"abate_concurrency_limit", "abate_concurrency_queued", "abate_concurrency_running",
	"abate_critical_requests_arrived_total", "abate_critical_requests_shed_total", "abate_dlq_replay_batch",
	"abate_dlq_replay_eta_seconds", "abate_dlq_replay_messages", "abate_dlq_replay_running",
	"abate_extra_attempts_total", "abate_fallbacks_total", "abate_first_attempts_total",
	"abate_hedges_denied_total", "abate_hedges_total", "abate_hidden_retries_total",
	"abate_http_client_concurrent_requests", "abate_http_client_request_duration_seconds",
	"abate_http_client_requests_total", "abate_http_client_retry_attempts_total", "abate_idempotency_total",
	"abate_kafka_dead_letters_total", "abate_kafka_delivered_total", "abate_kafka_drain_eta_seconds",
	"abate_kafka_drain_limit", "abate_kafka_draining", "abate_kafka_duplicates_total",
	"abate_kafka_flood_held_total", "abate_kafka_flood_holding", "abate_kafka_flood_share",
	"abate_kafka_foreign_total", "abate_kafka_forward_failures_total", "abate_kafka_handler_duration_seconds",
	"abate_kafka_head_age_seconds", "abate_kafka_lag", "abate_kafka_lateness_seconds",
	"abate_kafka_normal_rate", "abate_kafka_oldest_handler_seconds", "abate_kafka_parked_keys",
	"abate_kafka_parked_total", "abate_kafka_partitions", "abate_kafka_paused_partitions",
	"abate_kafka_paused_seconds", "abate_kafka_pauses_total", "abate_kafka_stuck_handlers_total",
	"abate_noticed_circuit_open", "abate_noticed_override", "abate_noticed_policy", "abate_noticed_total",
	"abate_override", "abate_pacing_per_second", "abate_pacing_wait_seconds", "abate_policy_changes_total",
	"abate_policy_circuit_breaker_max_wait_seconds", "abate_policy_max_extra_attempts",
	"abate_policy_pacing_max_wait_seconds", "abate_policy_retry_budget_failing_ratio",
	"abate_policy_retry_budget_ratio", "abate_policy_retry_budget_reserve", "abate_policy_shed_max_retry_share",
	"abate_queue_delay_seconds", "abate_rate_limit_allowed_total", "abate_rate_limit_keys",
	"abate_rate_limit_rejected_total", "abate_rate_limit_shadow_total", "abate_rate_limit_shared_total",
	"abate_redis_duration_seconds", "abate_redis_errors_total", "abate_redis_fallback_total",
	"abate_request_duration_seconds", "abate_requests_admitted_total", "abate_requests_arrived_total",
	"abate_requests_done_total", "abate_requests_refused_total", "abate_requests_shed_total",
	"abate_retries_total", "abate_retry_budget_balance", "abate_retry_delay_seconds",
	"abate_retry_exhausted_total", "abate_retry_success_total", "abate_shed_cpu_ratio",
	"abate_shed_shadow_total", "abate_shed_total", "abate_throttle_rejection_ratio", "circuit_breaker_state",
	"http_client_concurrent_requests", "http_client_request_duration_seconds", "http_client_requests_total",
	"http_client_retry_attempts_total", "rate_limit_allowed_total", "rate_limit_rejected_total", "shed_total",
}

// everything is metrics with all of their series.
func everything(t testing.TB) fixture {
	m := metrics(t)
	p := retrying(2)
	p.RetryBudget = budget.Config{Kind: budget.Ratio}
	p.Bulkhead = bulkheadOf(10)
	p.CircuitBreaker = opening().CircuitBreaker
	p.Throttle.K, p.RateLimit.Config, p.Pacing.PerSecond = 2, once.Config, 10
	_ = failing(m.guard(t, "payment-service", p), 0)
	_ = failing(m.guard(t, "mail-service", retrying(2)), 0)
	if err := m.guard(t, "quote-service", p).Override(abate.OverrideShadow); err != nil {
		t.Fatal(err)
	}
	e := m.Endpoint("payment-service", "/charges/{id}")
	e.Began()
	e.Retried(2)
	e.Ended(503, 0)
	m.gate(t, "payment-service", inbound.Protection{
		RateLimit: once, Shed: shed.Config{Concurrency: shed.Gradient, CPU: 0.9},
	})
	m.ObserveRedis("take", 0, nil)
	m.RedisFallback("limit")
	m.consume("payment-service")
	return m
}

func TestAllMetricsAreThere(t *testing.T) {
	found, err := everything(t).registry.Gather()
	if err != nil || len(found) != len(names) {
		t.Fatalf("%v, %d metrics, want %d", err, len(found), len(names))
	}
	for i, family := range found { // in the order of their names
		if family.GetName() != names[i] {
			t.Errorf("metric %d is %s, want %s", i, family.GetName(), names[i])
		}
		if help := family.GetHelp(); !strings.HasSuffix(help, ".") || len(help) < 20 || strings.Contains(help, "  ") {
			t.Errorf("the help of %s does not help: %q", family.GetName(), help)
		}
	}
}

func TestPromtoolAcceptsTheMetrics(t *testing.T) {
	promtool := needs.Program(t, "promtool", "prometheus")
	page := httptest.NewRecorder()
	everything(t).handler().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	check := func(page string) (string, error) {
		run := exec.CommandContext(t.Context(), promtool, "check", "metrics")
		var said bytes.Buffer
		run.Stdin, run.Stdout, run.Stderr = strings.NewReader(page), &said, &said
		err := run.Run()
		return said.String(), err
	}
	if said, err := check(page.Body.String()); err != nil || said != "" {
		t.Errorf("%v\n%s", err, said)
	}
	if _, err := check("# TYPE a_total gauge\na_total 1\n"); err == nil {
		t.Error("promtool accepts anything")
	}
}

func TestAServiceIsThereBeforeItsFirstCall(t *testing.T) {
	m := metrics(t)
	m.guard(t, "s", abate.Policy{})
	m.Endpoint("s", "/")
	m.scrape(t).want(t, map[string]float64{
		`abate_calls_total{outcome="failure",service="s"}`:                       0,
		`abate_call_refusals_total{reason="circuit_open",service="s"}`:           0,
		`abate_retry_success_total{service="s"}`:                                 0,
		`abate_amplification_ratio{service="s"}`:                                 1,
		`http_client_concurrent_requests{service="s"}`:                           0,
		`http_client_retry_attempts_total{attempt="2",endpoint="/",service="s"}`: 0,
	})
}
