package export

import "slices"

// arrivalsRow is the receiving side: gates.
func arrivalsRow() boardRow {
	return boardRow{title: "What arrives", panels: half(slices.Concat(admission(), waits(), limits(), keys()))}
}

// admission is what gates let in and refuse.
func admission() []panel {
	return []panel{
		{title: "Requests let in", unit: "reqps", stack: true, shows: []query{
			{perSecond("priority", "abate_requests_admitted_total"), "{{priority}}"},
		}, help: "What the service really does, by how much it matters. While callers offer more, it should stay where it " +
			"is: if it falls, the service is drowning and its limit is too high."},
		{title: "Requests refused", unit: "reqps", stack: true, shows: []query{
			{perSecond("reason", "abate_requests_refused_total"), "{{reason}}"},
		}, help: "Requests that the service never saw. rate_limited: one caller is over its limit. overloaded and " +
			"deadline: see 'Shed, by why'. caller_left: they did not wait."},
		{title: "Shed, by why", runbook: "ShedRate", unit: "reqps", stack: true, shows: []query{
			{perSecond("reason", "abate_shed_total"), "{{reason}}"},
		}, help: "cpu and queue-delay mean that the service is busy: add instances. expired: its callers had given up " +
			"already. attempt: retries make it worse, look at who retries."},
		{title: "Shed, by priority", runbook: "ShedRate", unit: "reqps", stack: true, shows: []query{
			{perSecond("priority", "abate_shed_total"), "{{priority}}"},
		}, help: "SHEDDABLE going first is shedding at work. CRITICAL among them means that the service is too small for " +
			"its load: add instances now."},
		{title: "Retries among what arrives", runbook: "ArrivingRetries", unit: "percentunit",
			bound: bound{gate: arrivingLimit}, shows: []query{{highest("service", "abate_arriving_retry_ratio"), "{{service}}"}},
			help: "Retries to first attempts, as the worst instance sees them. Above the yellow line answers say not to " +
				"retry: a storm is under way, whatever its cause. Find the callers that retry."},
		{title: "Places in use", unit: "none", shows: []query{
			{total("service", "abate_concurrency_limit"), "{{service}} limit"},
			{total("service", "abate_concurrency_running"), "{{service}} running"},
			{total("service", "abate_concurrency_queued"), "{{service}} waiting"}},
			help: "An adaptive limit that sinks and stays low says that the service, or what it calls, has become slow. " +
				"Requests that wait for long mean that it cannot keep up."},
	}
}

// waits is how long requests wait at gates, and how long services take.
func waits() []panel {
	return []panel{
		{title: "Waits at the gate", kind: heat, unit: "s", shows: []query{buckets("abate_queue_delay_seconds")},
			help: "How long admitted requests waited. A band that moves up is a queue that builds: look at the latency of the " +
				"service."},
		{title: "Waits at the gate, 99 of 100", unit: "s", bound: bound{gate: queueLimit}, shows: []query{
			{tail("service", "abate_queue_delay_seconds"), "{{service}}"},
		}, help: "Above queueTarget for long the service is slower than its load asks for, and the oldest waiters are " +
			"refused: look at its latency first."},
		{title: "Time to answer, 99 of 100", unit: "s", bound: bound{gate: answerLimit}, shows: []query{
			{tail("service", "abate_request_duration_seconds"), "{{service}}"},
		}, help: "How long the service took, the wait at the gate left out. If it grows with the load, the concurrency " +
			"limit is too high."},
		{title: "How admitted requests ended", unit: "reqps", stack: true, shows: []query{
			{perSecond("class", "abate_requests_done_total"), "{{class}}"},
		}, help: "overload means that something below the service refused: look there. failure is the service's own."},
		{title: "Processor time", unit: "percentunit", max: 1, bound: bound{gate: cpuLimit}, shows: []query{
			{highest("service", "abate_shed_cpu_ratio"), "{{service}}"},
		}, help: "As shedding sees it, in the busiest instance. Above the red line requests are refused: add instances."},
	}
}

// limits is the rate limit of gates.
func limits() []panel {
	return []panel{
		{title: "Rate limit of arrivals", unit: "reqps", shows: []query{
			{perSecond("service", "abate_rate_limit_allowed_total"), "{{service}} let pass"},
			{perSecond("service", "abate_rate_limit_rejected_total"), "{{service}} refused"}},
			help: "If refusals grow while the service has room to spare, the limit is too low; if one caller makes most of " +
				"them, talk to that one."},
		{title: "Buckets of the rate limit", unit: "none", shows: []query{
			{total("service", "abate_rate_limit_keys"), "{{service}} buckets"},
			{perSecond("service", "abate_rate_limit_shared_total"), "{{service}} requests without one, per second"}},
			help: "At maxKeys new keys share one bucket: raise it, or choose a coarser key."},
	}
}

// keys is the idempotency keys of gates, and what shadow modes would refuse.
func keys() []panel {
	return []panel{
		{title: "Idempotency keys", unit: "reqps", stack: true, shows: []query{
			{perSecond("result", "abate_idempotency_total"), "{{result}}"},
			{perSecond("service", "abate_idempotency_forgotten_total"), "{{service}} forgotten early"}},
			help: "replay got the answer of the first. mismatch and missing are faults of callers: talk to them. full: give " +
				"the store more room. away: look at Redis or the disk."},
		{title: "Room for idempotency keys", runbook: "IdempotencyKeysFull", unit: "none", shows: []query{
			{total("service", "abate_idempotency_keys"), "{{service}} keys"},
			{total("service", "abate_idempotency_max_keys"), "{{service}} room for"}},
			help: "When there is no room for a new key, finished ones are forgotten early, or new ones refused. Raise " +
				"maxMemory, or name a file, long before."},
		{title: "Retention of idempotency keys, in fact", runbook: "IdempotencyKeysFull", unit: "s", shows: []query{
			{lowest("service", "abate_idempotency_held_seconds"), "{{service}}"},
			{highest("service", "abate_idempotency_retention_seconds"), "{{service}} promised"}},
			help: "Below what is promised the store was full and forgot keys early: a repeat that comes later than this is " +
				"done again. Give it more room."},
		{title: "What shadow modes would refuse", unit: "reqps", shows: []query{
			{perSecond("reason", "abate_shed_shadow_total"), "shedding: {{reason}}"},
			{perSecond("service", "abate_rate_limit_shadow_total"), "rate limit of {{service}}"}},
			help: "Requests that passed only because of shadow. If they are the right ones, take shadow away."},
	}
}

// clientsRow is what HTTP and gRPC clients count by route and method.
func clientsRow() boardRow {
	return boardRow{title: "HTTP and gRPC clients", folded: true, panels: third([]panel{
		{title: "Requests by status", unit: "reqps", stack: true, shows: []query{
			{perSecond("status", "abate_http_client_requests_total"), "{{status}}"},
		}, help: "What callers got, a request counted once whatever its attempts; 0 is no answer at all. If 0 and 5xx " +
			"grow, 'Why the policy said no' has those that the policy refused."},
		{title: "Requests that fail, by service", unit: "percentunit", max: 1, bound: bound{
			fixed: limit{warn: 0.01, bad: 0.05},
		}, shows: []query{{share(
			perSecond("service", "abate_http_client_requests_total", `status=~"0|5.."`),
			perSecond("service", "abate_http_client_requests_total")), "{{service}}"}},
			help: "No answer or 5xx, after retries. Red is what users notice: fix the service, or give them a fallback."},
		{title: "Time to answer, by service, 99 of 100", unit: "s", bound: bound{guard: patienceLimit}, shows: []query{
			{tail("service", "abate_http_client_request_duration_seconds"), "{{service}}"},
		}, help: "All attempts and the waits between them included. If it grows and the service's own latency does not, " +
			"calls wait for retries or for a permit."},
		{title: "Requests in the air", unit: "none", shows: []query{
			{total("service", "abate_http_client_concurrent_requests"), "{{service}}"},
		}, help: "If it climbs while requests per second do not, the service has become slow and callers pile up: a " +
			"bulkhead bounds that."},
		{title: "HTTP attempts after the first", unit: "reqps", stack: true, shows: []query{
			{perSecond("attempt", "abate_http_client_retry_attempts_total"), "attempt {{attempt}}"},
		}, help: "The extra load, by the attempt's number. High numbers mean that failures last longer than the retries: " +
			"fewer retries, not more."},
		{title: "gRPC attempts after the first", unit: "reqps", stack: true, shows: []query{
			{"sum by (status) (rate(abate_grpc_client_retry_attempts_total[$__rate_interval]))", "{{status}}"},
			{"sum(rate(abate_grpc_client_retry_budget_exhausted_total[$__rate_interval]))", "not sent: budget used up"}},
			help: "Of all services, by how they ended. If OK is a small part of them, retries do not help: lower maxRetries, " +
				"or let the circuit open sooner."},
	})}
}
