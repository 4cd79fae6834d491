package export

import (
	"fmt"
	"strings"
	"time"
)

// history is how much of an hour has to be known before it is what is usual.
const history = 30 * time.Minute

// by is what everything is summed by: the program that calls, and the service that it calls. The instances of a program
// share a policy; two programs that call the same service may have two.
const by = "sum by (job, service) "

// recordings are the recording rules. Names are for good: alerts and dashboards use them. They are called after the
// window that they have at scale 1.
func recordings(t clockwork) []rule {
	list := []struct{ name, expr string }{
		{"abate:attempts:rate1m", by + "(rate(abate_attempts_total[W]))"},
		{"abate:retries:rate1m", by + "(rate(abate_retries_total[W]))"},
		// Retries, hedges, and what a client below the guard repeated by itself.
		{"abate:extra_attempts:rate1m", by + "(rate(abate_retries_total[W])) + " + by + "(rate(abate_hedges_total[W])) + " +
			by + "(rate(abate_hidden_retries_total[W]))"},
		// Attempts are counted when they end and the others when they begin, so that this can fall below zero for a moment.
		{"abate:first_attempts:rate1m", "clamp_min(abate:attempts:rate1m - abate:retries:rate1m - " + by +
			"(rate(abate_hedges_total[W])), 0)"},
		{"abate:amplification:ratio_rate1m", "(abate:first_attempts:rate1m + abate:extra_attempts:rate1m) / " +
			"abate:first_attempts:rate1m"},
		{"abate:retry_share:ratio_rate1m", "abate:retries:rate1m / (abate:first_attempts:rate1m + " +
			"abate:extra_attempts:rate1m)"},
		// Of the retries, how many saved their call. It falls when retries stop helping.
		{"abate:retry_success:ratio_rate1m", by + "(rate(abate_retry_success_total[W])) / abate:retries:rate1m"},
		{"abate:attempt_failures:ratio_rate1m", by + `(rate(abate_attempts_total{class=~"failure|overload"}[W])) / ` +
			`abate:attempts:rate1m`},
		{"abate:calls:rate1m", by + "(rate(abate_calls_total[W]))"},
		{"abate:call_failures:ratio_rate1m", by + `(rate(abate_calls_total{outcome=~"failure|overload|refused"}[W])) / ` +
			`abate:calls:rate1m`},
		{"abate:refusals:rate1m", "sum by (job, service, reason) (rate(abate_call_refusals_total[W]))"},
		// Instances whose circuit was open at a scrape of the window: between two waits it is half-open, and still not
		// closed. One that nobody calls stays open for ever, one in shadow refuses nothing, and one that is forced open
		// by hand says nothing of the service: none of them counts.
		{"abate:circuit_open:instances", by + "(((max_over_time(circuit_breaker_state[W]) == bool 2) unless ignoring " +
			"(override) abate_override{override=~\"shadow|forcedOpen\"} == 1)" +
			" * (sum without (outcome) (rate(abate_calls_total[W])) > bool 0))"},
		{"abate:attempts_running:sum", by + "(abate_attempts_running)"},
		// What is usual: the last minutes are left out, so that a spike is not compared with itself. Of a service that
		// is new, or was away for most of the hour, nobody knows yet. Windows are counted, not samples: those of two
		// files are twice as many.
		{"abate:attempts_running:avg1h",
			fmt.Sprintf("avg_over_time(abate:attempts_running:sum[H] offset L) and "+
				"count_over_time(abate:attempts_running:sum[H:W] offset L) >= %d", history/window)},
		{"abate:arrivals:rate1m", by + "(rate(abate_requests_admitted_total[W])) + " + by +
			"(rate(abate_requests_refused_total[W]))"},
		// What each instance sees, by how much arrives there: a handful of requests somewhere has any share.
		{"abate:arriving_retries:ratio_rate1m", by + "(abate_arriving_retry_ratio * (sum without (priority) " +
			"(rate(abate_requests_admitted_total[W])) + sum without (reason) (rate(abate_requests_refused_total[W])))) / " +
			"abate:arrivals:rate1m"},
		{"abate:shed:ratio_rate1m", by + "(rate(shed_total[W])) / abate:arrivals:rate1m"},
		{"abate:critical_shed:ratio_rate1m", by + `(rate(shed_total{priority=~"CRITICAL.*"}[W])) / (` +
			by + `(rate(shed_total{priority=~"CRITICAL.*"}[W])) + ` +
			by + `(rate(abate_requests_admitted_total{priority=~"CRITICAL.*"}[W])))`},
	}
	times := strings.NewReplacer("[W]", "["+t.text(window)+"]", "[H]", "["+t.text(60*window)+"]", "[H:W]",
		"["+t.text(60*window)+":"+t.text(window)+"]", "offset L", "offset "+t.text(5*window))
	rules := make([]rule, len(list))
	for i, r := range list {
		rules[i] = rule{Record: r.name, Expr: times.Replace(r.expr)}
	}
	return rules
}
