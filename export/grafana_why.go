package export

import "github.com/abate-go/abate/internal/registry"

// whyRow separates what the service refused from what the policy refused.
func whyRow() boardRow {
	return boardRow{title: "Why", panels: half([]panel{
		{title: "Attempts by how they ended", unit: "reqps", stack: true, shows: []query{
			{perSecond("class", "abate_attempts_total"), "{{class}}"},
		}, help: "The services' own health, before retries hide it. failure and overload: go and look at the service. " +
			"ignored: given up, because the caller left or another copy was faster."},
		{title: "Attempts that fail, by service", unit: "percentunit", max: 1, bound: bound{guard: failingLimit},
			shows: []query{{share(
				perSecond("service", "abate_attempts_total", `class=~"failure|overload"`),
				perSecond("service", "abate_attempts_total", `class!="ignored"`)), "{{service}}"}},
			help: "Failures among attempts. Red is where the policy opens the circuit. The service with the highest share is " +
				"where the trouble is; the others wait for it."},
		{title: "Why the policy said no", unit: "reqps", stack: true, shows: []query{
			{perSecond("reason", "abate_call_refusals_total"), "{{reason}}"},
		}, help: "budget_exhausted and circuit_open are the storm being held back: fix the service, leave the policy " +
			"alone. bulkhead_full: the service is slow. deadline: the timeout leaves no room for retries. rate_limited: a " +
			"limit or a pace of ours. tree_exhausted: another service of the chain retries; no action."},
		{title: "Calls that a retry saved", unit: "percentunit", max: 1, shows: []query{
			{share(perSecond("service", "abate_retry_success_total"), perSecond("service", "abate_retries_total")),
				"{{service}}"},
		}, help: "Calls that succeeded after a retry, for each retry sent. Near 0 retries only add load: lower maxRetries, " +
			"or let the circuit open sooner."},
		{title: "Retries and what came of them", unit: "reqps", shows: []query{
			{`sum(rate(` + of("abate_retries_total") + `[$__rate_interval]))`, "retries sent"},
			{`sum(rate(` + of("abate_retry_success_total") + `[$__rate_interval]))`, "calls saved"},
			{`sum(rate(` + of("abate_retry_exhausted_total") + `[$__rate_interval]))`, "calls out of retries"}},
			help: "Calls out of retries failed with all that maxRetries allows: the failure lasts longer than the retries do, " +
				"and more of them will not help."},
		{title: "Calls in a retry", unit: "none", shows: []query{{total("service", "abate_active_retries"), "{{service}}"}},
			help: "Calls that wait for a retry or are in one. High for long means that many callers wait on a service that " +
				"does not answer: let them fail sooner, by a shorter timeout."},
		{title: "Waits before retries", kind: heat, unit: "s", shows: []query{buckets("abate_retry_delay_seconds")},
			help: "How long calls wait before a retry. A band at the top is a service that asks for pauses by Retry-After, or " +
				"an initialDelay and maxDelay too long for the callers' timeouts."},
		{title: "Hedges", unit: "reqps", shows: []query{
			{"sum(rate(" + of("abate_hedges_total") + "[$__rate_interval]))", "sent"},
			{perSecond("reason", "abate_hedges_denied_total") + " > 0", "not sent: {{reason}}"}},
			help: "Second copies of slow attempts. If nearly every call has one, the service is slow as a whole and hedging " +
				"is only load: switch it off. budget_exhausted is the bound at work; no action."},
		{title: "Retries that nobody asked for", unit: "reqps", shows: []query{
			{perSecond("service", "abate_hidden_retries_total"), "{{service}}"},
		}, help: "Attempts that something below the guard repeated by itself on a dead connection. If it is not near zero, " +
			"keep the client's idle timeout below the service's."},
		{title: "Fallbacks", unit: "reqps", shows: []query{{perSecond("service", "abate_fallbacks_total"), "{{service}}"}},
			help: "Callers that got the fallback instead of an error: they see a degraded answer. Find out why in the panels " +
				"above."},
	})}
}

// limitsRow is about what bounds calls besides the budget.
func limitsRow() boardRow {
	return boardRow{title: "Bulkheads, limits, circuits", panels: third(append(policyPanels(), []panel{
		{title: "Circuit changes", unit: "cps", stack: true, shows: []query{
			{perSecond("to", "abate_circuit_breaker_transitions_total"), "{{to}}"},
		}, help: "State changes of the circuit breakers. Many in a row mean that a service recovers and falls again: a " +
			"longer rampUp, or less load."},
		{title: "Attempts per call, last minute", unit: "none", exact: true, bound: bound{guard: timesLimit}, shows: []query{
			{highest("service", "abate_amplification_ratio"), "{{service}}"},
		}, help: "The worst instance of each service, as the instances count it themselves. If one is far above the " +
			"others, look at that instance: its policy may be an old one."},
	}...))}
}

// policyPanels are those that the policies of a guard have in the registry.
func policyPanels() (all []panel) {
	for _, policy := range registry.Guard {
		for _, p := range policy.Panels {
			var series string
			switch p.Aggregate {
			case registry.Sum:
				series = total("service", p.Metric)
			case registry.Worst:
				series = highest("service", p.Metric)
			case registry.Rate:
				series = perSecond("service", p.Metric)
			}
			if p.Of != "" {
				series = share(series, total("service", p.Of))
			}
			all = append(all, panel{title: p.Title, help: p.Help, runbook: p.Runbook, unit: p.Unit, max: p.Max,
				bound: bound{fixed: limit{warn: p.Warn, bad: p.Bad}}, shows: []query{{series, "{{service}}"}}})
		}
	}
	return all
}
