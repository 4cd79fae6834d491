package export

// What a program asks of a service, and what it adds to that, by the program, or by one of its instances.
const (
	caller     = "job, service"
	oneOfThese = "job, instance, service"
)

// timesBy is how many attempts are sent for each call, by the labels.
func timesBy(by string) string {
	first := perSecond(by, "abate_first_attempts_total")
	return share("("+first+" + "+perSecond(by, "abate_extra_attempts_total")+")", first)
}

// failuresBy is the share of calls that fail, by the labels.
func failuresBy(by string) string {
	return share(perSecond(by, "abate_calls_failed_total"), perSecond(by, "abate_calls_ended_total"))
}

// worst keeps the ten that have most.
func worst(series string) string { return "topk(10, " + series + ")" }

// callersRow says who calls whom, who of the callers is the trouble, and which of its instances.
func callersRow() boardRow {
	const edge, instance = "{{job}} to {{service}}", "{{job}} {{instance}} to {{service}}"
	return boardRow{title: "Who calls whom", panels: half([]panel{
		{title: "Calls, by caller and service", unit: "reqps", shows: []query{
			{perSecond(caller, "abate_first_attempts_total"), edge},
		}, help: "First attempts: what each program asks of each service. One that asks for much more than usual is where " +
			"a " +
			"surge comes from. Choose a caller or an instance at the top, and the whole page is about it."},
		{title: "Attempts per call, by caller", runbook: "RequestAmplification", unit: "none", exact: true, shows: []query{
			{timesBy(caller), edge},
		}, help: "Which caller amplifies. 1 is no extra load. A caller that is far above the others retries without a " +
			"budget, or below its guard: give it a budget first."},
		{title: "Extra attempts, by caller", runbook: "RequestAmplification", unit: "reqps", stack: true, shows: []query{
			{perSecond(caller, "abate_extra_attempts_total"), edge},
		}, help: "Whose retries and hedges the load is made of. The largest band is whose retries to stop first."},
		{title: "Calls that fail, by caller", runbook: "DependencyFailing", unit: "percentunit", max: 1, shows: []query{
			{failuresBy(caller), edge},
		}, help: "If all callers of a service fail, it is the service. If one does, it is that caller, its policy, or its " +
			"way " +
			"to the service."},
		{title: "Instances whose circuit is open, by caller", runbook: "CircuitBreakerOpen", unit: "none", shows: []query{
			{total(caller, "abate_circuit_breaker_open"), edge},
		}, help: "All of them: the service does not answer. A few: look at those instances, not at the service."},
		{title: "Attempts per call, the ten worst instances", runbook: "RequestAmplification", unit: "none", exact: true,
			shows: []query{{worst(timesBy(oneOfThese)), instance}},
			help: "One bad instance of many does not show in a mean. Restart it, or take it out; then find out what is " +
				"different about it."},
		{title: "Calls that fail, the ten worst instances", runbook: "DependencyFailing", unit: "percentunit", max: 1,
			shows: []query{{worst(failuresBy(oneOfThese)), instance}},
			help: "An instance that fails alone has a node, a network or a configuration of its own that is bad: take it out " +
				"first, then look."},
		{title: "Requests shed, the ten worst instances", runbook: "ShedRate", unit: "percentunit", max: 1, shows: []query{
			{worst(share(perSecond(oneOfThese, "abate_requests_shed_total"), perSecond(oneOfThese,
				"abate_requests_arrived_total"))), "{{service}} {{instance}}"},
			{worst(share(perSecond(oneOfThese, "abate_critical_requests_shed_total"), perSecond(oneOfThese,
				"abate_critical_requests_arrived_total"))), "{{service}} {{instance}}, critical"}},
			help: "If one instance sheds and the others do not, requests are not spread evenly, or it is slower than they are."},
	})}
}
