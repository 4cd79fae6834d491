package export

import (
	"fmt"
	"time"

	"github.com/abate-go/abate/policy/pacing"
	"github.com/abate-go/abate/policyfile"
)

// concurrency alerts on calls that pile up: in a bulkhead that is nearly full, or without one far above what is usual.
func concurrency(service string, p *policyfile.Policy, t clockwork) alert {
	a := alert{name: "ConcurrencySpike", severity: warning, lasts: 2 * time.Minute}
	if p.Bulkhead.Enabled() {
		// Each instance has a bulkhead of its own and refuses on its own. A full one must not be hidden by fifty that
		// are not full. A small one is full for a moment now and then, and nearly always in some instance, so the same
		// one must be full for a window.
		a.lasts = time.Minute
		a.expr = fmt.Sprintf("count by (job, service) (min_over_time(abate_bulkhead_running{%[1]s}[%[2]s]) / "+
			"abate_bulkhead_limit{%[1]s} > 0.9)", service, t.text(window))
		a.summary = "The bulkhead of {{ $labels.service }} is full in {{ $value | humanize }} instances"
		a.text = "In {{ $value | humanize }} instances of the caller, calls to {{ $labels.service }} hold more than 90 % " +
			"of the permits of the bulkhead. At 100 % further calls wait, and those that wait too long are refused."
		return a
	}
	// Four times the mean of an hour is more than a daily rhythm. A handful of calls is no problem.
	a.expr = fmt.Sprintf("abate:attempts_running:sum{%[1]s} > 4 * abate:attempts_running:avg1h{%[1]s}\nand "+
		"abate:attempts_running:sum{%[1]s} > 20", service)
	a.summary = "{{ $labels.service }} has {{ $value | humanize }} attempts in flight"
	a.text = "{{ $value | humanize }} attempts wait for {{ $labels.service }} to answer, more than four times the mean " +
		"of the last hour. It has become slow, or it has more callers."
	return a
}

// circuitOpen alerts on a circuit that does not close again. The state is looked for over a window, in which a circuit
// that opens after every probe is seen open; one that was open for a moment is seen for a window too, and so lasts is
// longer by that. A service that comes back may be half-open and open again for two waits.
func circuitOpen(service string, p *policyfile.Policy) alert {
	a := alert{
		name:     "CircuitBreakerOpen",
		severity: critical,
		lasts: window + min(max(2*p.CircuitBreaker.MaxWaitDurationInOpenState, time.Minute), 10*time.Minute).Truncate(
			time.Second),
		expr:    "abate:circuit_open:instances{" + service + "} > 0",
		summary: "{{ $labels.service }} does not answer: its circuit stays open",
		text: "In {{ $value | humanize }} instances of the caller the circuit of {{ $labels.service }} opens again and " +
			"again, and calls are refused without being sent. It closes by itself when the service answers.",
	}
	if p.Fallback.Enabled() { // callers get an answer
		a.severity = warning
		a.summary += ", callers get the fallback"
	}
	return a
}

// failing alerts on calls of which most fail, whatever the circuit says: what fails at once opens none of kind
// adaptive. A circuit that stays open has an alert of its own, and one that is forced open by hand was meant to be.
// Fewer than two calls in a window are too few to wake somebody for.
func failing(service string, p *policyfile.Policy, t clockwork) alert {
	a := alert{
		name: "DependencyFailing", severity: critical, lasts: 2 * time.Minute,
		expr: fmt.Sprintf("abate:call_failures:ratio_rate1m{%[1]s} > 0.5\nand avg_over_time(abate:calls:rate1m{%[1]s}"+
			"[%[2]s]) > %[3]s\nunless on (job, service) abate_override{override=\"forcedOpen\", %[1]s} == 1\n"+
			"unless on (job, service) ALERTS{alertname=\"CircuitBreakerOpen\", alertstate=\"firing\", %[1]s}",
			service, t.text(5*window), number(t.perSecond(2))),
		summary: "{{ $value | humanizePercentage }} of the calls to {{ $labels.service }} fail",
		text: "{{ $value | humanizePercentage }} of the calls to {{ $labels.service }} fail, retries included, and no " +
			"circuit stays open. What the attempts come to says whether the service fails or the policy refuses.",
	}
	if p.Fallback.Enabled() { // callers get an answer
		a.severity = warning
		a.summary += ", callers get the fallback"
	}
	return a
}

// forcedOpen alerts on a policy that forces its circuit open. Somebody wanted that, so nobody is woken. But calls that
// are refused for hours are still being made, even if only once in half an hour: one quiet minute in four hours proves
// nothing.
func forcedOpen(service string, t clockwork) alert {
	return alert{
		name:     "CircuitForcedOpen",
		severity: warning,
		lasts:    4 * time.Hour,
		expr:     "max_over_time(abate:circuit_open:instances{" + service + "}[" + t.text(60*window) + "]) > 0",
		summary:  "{{ $labels.service }} is still switched off by the policy, and still called",
		text: "The policy file says circuitBreaker.mode: forcedOpen for {{ $labels.service }}: {{ $value | humanize }} " +
			"instances of the caller refuse every call, and there are calls. It stays until the file is changed.",
	}
}

func overridden(service string) alert {
	return alert{
		name:     "OverrideInForce",
		severity: warning,
		lasts:    15 * time.Minute,
		expr:     "sum by (job, service, override) (abate_override{" + service + "}) > 0",
		summary:  "The circuit of {{ $labels.service }} is {{ $labels.override }} by hand",
		text: "Somebody has overridden the circuit of {{ $labels.service }} with {{ $labels.override }} in {{ $value | " +
			"humanize }} instances. The override stays until somebody removes it; a reload of the policy does not.",
	}
}

// heldBack alerts on a pace that is too slow for normal days. After an outage the queue is the purpose. Where the time
// between two tokens is about maxWait, every connection makes the next one wait that long, so the alert needs refusals
// too. An adaptive pace holds nobody back while all is well, and its waits are as long as its rounds: there any wait
// will do.
func heldBack(service string, p *pacing.Config) alert {
	longest, through := 0.9*p.MaxWait.Seconds(), "lets "+number(p.PerSecond)+" a second through in each instance"
	if p.Adapts() {
		longest, through = 0, "is adaptive: connections have failed, or were refused for load"
	}
	return alert{
		name: "ConnectionsHeldBack", severity: warning, lasts: 5 * time.Minute,
		expr: fmt.Sprintf("max by (job, service) (abate_pacing_wait_seconds{%[1]s}) > %[2]s\nand on (job, service) "+
			"abate:refusals:rate1m{reason=\"rate_limited\", %[1]s} > 0",
			service, number(longest)),
		summary: "Connections to {{ $labels.service }} wait {{ $value | humanizeDuration }} for their token",
		text: fmt.Sprintf("A new connection to {{ $labels.service }} waits {{ $value | humanizeDuration }} for its token, "+
			"and is refused if it would wait longer than %v. The pacing %s.", p.MaxWait, through),
	}
}

// deadLetters alerts at once: the first dead letter counts, even if a process gave it up before its first scrape, so
// that the series begins with it. The hour keeps a failed scrape from making an old series look new.
func deadLetters(service string, t clockwork) alert {
	return alert{
		name: "DeadLetterArrival", severity: warning,
		expr: fmt.Sprintf("sum by (job, service, topic) (\n  (%[1]s unless last_over_time(%[1]s[%[3]s] offset %[2]s))\n  "+
			"or increase(%[1]s[%[2]s])\n) > 0",
			"abate_kafka_dead_letters_total{"+service+"}", t.text(5*window), t.text(60*window)),
		summary: "{{ $labels.topic }} has new dead letters",
		text: "About {{ $value | humanize }} messages of {{ $labels.topic }} have been given up and are in its " +
			"dead-letter topic. Somebody has to look at them.",
	}
}

// letterFlood alerts at once, because consumers look at a window before they hold anything.
func letterFlood(service string) alert {
	return alert{
		name: "DeadLetterFlood", severity: warning,
		expr: fmt.Sprintf("max by (job, service) (abate_kafka_flood_share{%[1]s})\nand (max by (job, service) "+
			"(abate_kafka_flood_holding{%[1]s}) > 0)", service),
		summary: "Messages for {{ $labels.service }} are held, because too many would be dead letters",
		text: "{{ $value | humanizePercentage }} of the messages for {{ $labels.service }} would become dead letters, " +
			"so they wait in the last retry topic. Look at the service and at what was deployed last. When the cause is " +
			"fixed, the messages are delivered automatically.",
	}
}

// arrivingRetries alerts on a storm that others make. A gate that has had fewer than two requests a second asks nobody
// to stop.
func arrivingRetries(service string, p *policyfile.Protection) alert {
	return alert{
		name: "ArrivingRetries", severity: warning, lasts: 2 * time.Minute,
		expr: fmt.Sprintf("abate:arriving_retries:ratio_rate1m{%[1]s} > %[2]s\nand abate:arrivals:rate1m{%[1]s} > 2",
			service, number(p.Shed.MaxRetryShare)),
		summary: "{{ $labels.service }} gets {{ $value | humanize }} retries for each first attempt",
		text: fmt.Sprintf("Callers of {{ $labels.service }} send {{ $value | humanize }} retries for each first attempt; "+
			"above %s answers ask them to stop. The service fails, or something on the way to it does.",
			number(p.Shed.MaxRetryShare)),
	}
}

func shedSome(service string) alert {
	return alert{
		name:     "ShedRate",
		severity: warning,
		lasts:    5 * time.Minute,
		expr:     "abate:shed:ratio_rate1m{" + service + "} > 0.05",
		summary:  "{{ $labels.service }} refuses {{ $value | humanizePercentage }} of its requests",
		text: "{{ $labels.service }} cannot handle all requests, and refuses {{ $value | humanizePercentage }} of them " +
			"with 503, the least important first.",
	}
}

func shedCritical(service string) alert {
	return alert{
		name:     "ShedRate",
		severity: critical,
		lasts:    2 * time.Minute,
		expr:     "abate:critical_shed:ratio_rate1m{" + service + "} > 0.05",
		summary:  "{{ $labels.service }} refuses {{ $value | humanizePercentage }} of its critical requests",
		text: "{{ $labels.service }} is so overloaded that it refuses {{ $value | humanizePercentage }} even of the " +
			"requests with the priorities CRITICAL and CRITICAL_PLUS.",
	}
}

// keysWillNotFit alerts long before the store of idempotency keys is full. At the mean rate of an hour, it would hold
// more keys by the end of the retention than there is room for. Each instance has a store of its own.
func keysWillNotFit(service string, t clockwork) alert {
	return alert{
		name: "IdempotencyKeysFull", severity: warning, lasts: 5 * time.Minute,
		expr: fmt.Sprintf("max by (job, service) (\n  sum without (result) (rate(abate_idempotency_total{result=\"run\", "+
			"%[1]s}[%[2]s]))\n"+
			"  * abate_idempotency_retention_seconds{%[1]s} / abate_idempotency_max_keys{%[1]s}\n) > 0.8", service,
			t.text(60*window)),
		summary: "{{ $labels.service }} will not have room for its idempotency keys",
		text: "At the rate of the last hour, {{ $labels.service }} would have to remember {{ $value | " +
			"humanizePercentage }} of the idempotency keys that it has room for. When the store is full, finished requests " +
			"are forgotten early and their repeats are done again, or new requests are refused.",
	}
}

// keysDoNotFit alerts when the store is full.
func keysDoNotFit(service string, t clockwork) alert {
	return alert{
		name: "IdempotencyKeysFull", severity: critical,
		expr: fmt.Sprintf("sum by (job, service) (increase(abate_idempotency_forgotten_total{%[1]s}[%[2]s])) > 0\n"+
			"or sum by (job, service) (increase(abate_idempotency_total{result=\"full\", %[1]s}[%[2]s])) > 0", service,
			t.text(5*window)),
		summary: "There is no room for the idempotency keys of {{ $labels.service }}",
		text: "The store of idempotency keys of {{ $labels.service }} is full: {{ $value | humanize }} finished requests " +
			"were forgotten early, whose repeats would be done again, or new ones refused with 503.",
	}
}
