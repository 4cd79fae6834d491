package export

// stormRow is what is looked at first.
func stormRow() boardRow {
	return boardRow{title: "The storm at a glance", panels: append(stormTiles(), stormCurves()...)}
}

// stormTiles are the worst of the chosen services, one number each.
func stormTiles() []panel {
	tiles := []panel{
		{title: "Attempts per call", runbook: "RequestAmplification", unit: "none", exact: true,
			bound: bound{guard: timesLimit}, shows: []query{{"max(" + busy(timesSent) + ")", "worst"}},
			help: "The worst of the chosen services that have an attempt every two seconds. 1 is no extra load. Yellow is " +
				"more than the retry budget adds: something retries outside of it. Red is a storm: see below which service, and " +
				"its runbook."},
		{title: "Retry share", runbook: "HighRetryRate", unit: "percentunit", bound: bound{guard: shareLimit}, shows: []query{
			{"max(" + busy(retryShare) + ")", "worst"},
		}, help: "Retries among the attempts of the worst chosen service. Red is a storm: fix the service that fails, or " +
			"force its circuit open until it works again; do not add retries."},
		{title: "Calls that succeed", unit: "percentunit", max: 1, bound: bound{
			fixed: limit{warn: 0.99, bad: 0.95, below: true},
		}, shows: []query{{"min(" + busy(success) + ")", "worst"}},
			help: "The worst of the chosen services, after retries: what users see. If it falls, the row 'Why' says whether " +
				"the service fails or the policy refuses."},
		{title: "Goodput", unit: "reqps", shows: []query{
			{`sum(rate(` + of("abate_calls_total", `outcome="success"`) + `[$__rate_interval]))`, "calls"},
		}, help: "Calls that succeed per second, all chosen services together. A storm shows as goodput that falls while " +
			"attempts rise."},
		{title: "Circuits open", runbook: "CircuitBreakerOpen", unit: "none", bound: bound{fixed: limit{bad: 1}},
			shows: []query{{count(highest("service", "abate_circuit_breaker_state") + " == 2"), "services"}},
			help: "Services whose circuit is open in at least one instance. Calls to them are refused at once, and should " +
				"be: fix the service, the circuit closes by itself."},
		{title: "Budgets used up", runbook: "RetryBudgetExhausted", unit: "none", bound: bound{fixed: limit{bad: 1}},
			shows: []query{{count(total("service", "abate_retry_budget_balance") + " < 1"), "services"}},
			help: "Services that have no retry left to send. The budget is holding back a storm: fix the service, do not " +
				"raise the budget."},
		{title: "Requests shed", runbook: "ShedRate", unit: "reqps", bound: bound{fixed: limit{warn: 0.1}}, shows: []query{
			{"sum(rate(" + of("abate_shed_total") + "[$__rate_interval])) or vector(0)", "shed"},
		}, help: "Arriving requests that are refused because the service cannot do them. See the row 'What arrives' for " +
			"which; if CRITICAL ones are among them, add instances."},
		{title: "Overrides by hand", runbook: "OverrideInForce", unit: "none", bound: bound{fixed: limit{warn: 1}},
			shows: []query{{count(highest("service, override", "abate_override") + " == 1"), "services"}},
			help: "Circuit breakers that somebody has forced open, disabled or put into shadow. Each must be known to " +
				"whoever is on duty, and taken back after the emergency."},
	}
	for i := range tiles {
		tiles[i].kind, tiles[i].wide, tiles[i].high = tile, tileWide, tileHigh
	}
	return tiles
}

// stormCurves say which service, and since when.
func stormCurves() []panel {
	return half([]panel{
		{title: "Attempts per call, by service", runbook: "RequestAmplification", unit: "none", exact: true,
			bound: bound{guard: timesLimit}, shows: []query{{timesSent, "{{service}}"}},
			help: "Attempts sent for each call: retries, hedges and hidden retries on top of the first. A service that stays " +
				"above its yellow line retries outside the budget: look for a second layer that " +
				"retries, and at hidden retries below."},
		{title: "Retry share, by service", runbook: "HighRetryRate", unit: "percentunit", bound: bound{guard: shareLimit},
			shows: []query{{retryShare, "{{service}}"}},
			help: "Retries among attempts. It rises before users see errors: that is the time to look at the service. Red " +
				"for minutes is a storm: see its runbook."},
		{title: "What callers get", unit: "reqps", stack: true, shows: []query{
			{perSecond("outcome", "abate_calls_total"), "{{outcome}}"},
		}, help: "Calls by how they ended. Green is goodput. refused never reached the service: the policy said no, see " +
			"'Why the policy said no'. ignored says nothing about the service."},
		{title: "Calls that succeed, by service", runbook: "DependencyDegraded", unit: "percentunit", max: 1, bound: bound{
			fixed: limit{warn: 0.99, bad: 0.95, below: true},
		}, shows: []query{{success, "{{service}}"}},
			help: "After retries. A share that falls while the retry share rises is the beginning of a storm: fix that " +
				"service first."},
		{title: "Circuit breakers", runbook: "CircuitBreakerOpen", kind: timeline, unit: "none", shows: []query{
			{highest("service", "abate_circuit_breaker_state"), "{{service}}"},
		},
			words: []word{{0, "closed", "green"}, {1, "half-open", "yellow"}, {2, "open", "red"}},
			help: "The worst instance of each service. Open and closed by turns means that the service comes back and falls " +
				"again: give it a longer rampUp, or less load."},
		{title: "Extra attempts left in the budgets", runbook: "RetryBudgetExhausted", unit: "none", bound: bound{
			fixed: limit{bad: 1, below: true},
		}, shows: []query{{total("service", "abate_retry_budget_balance"), "{{service}}"}},
			help: "Retries and hedges that could be sent now, all instances together. At 0 the budget bounds a storm: fix " +
				"the service, do not raise the budget."},
		{title: "Attempts running", runbook: "ConcurrencySpike", unit: "none", shows: []query{
			{total("service", "abate_attempts_running"), "{{service}}"},
		}, help: "Attempts that are with the service now. If they climb while attempts per second do not, the service has " +
			"become slow: an attemptTimeout and a bulkhead bound that."},
		{title: "Calls running", runbook: "ConcurrencySpike", unit: "none", shows: []query{
			{total("service", "abate_calls_running"), "{{service}}"},
		}, help: "Calls that have begun and not ended, their waits included. If they climb and attempts running do not, " +
			"callers wait for permits, tokens and retries: see 'Calls in a retry' and 'Bulkheads'."},
	})
}

// half makes curves of the panels that are nothing else, two on a line.
func half(panels []panel) []panel { return sized(panels, panelWide) }

// third makes it three on a line.
func third(panels []panel) []panel { return sized(panels, thirdWide) }

func sized(panels []panel, wide int) []panel {
	for i := range panels {
		p := &panels[i]
		if p.kind == "" {
			p.kind = curves
		}
		p.wide, p.high = wide, panelHigh
	}
	return panels
}
