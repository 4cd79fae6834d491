package export

import (
	"fmt"
	"time"
)

// history is in more than how many of 60 windows something has to be known before it is what is usual.
const history = 30

// openLasts is how long the alert of an open circuit waits at least.
const openLasts = 2 * time.Minute

// concurrency alerts on calls that pile up: in a bulkhead that is nearly full, or without one far above what is usual.
// Each instance has a bulkhead of its own and refuses on its own. A full one must not be hidden by fifty that are not
// full. A small one is full for a moment now and then, and nearly always in some instance, so the same one must be full
// for a window. Four times the mean of an hour is more than a daily rhythm. A handful of calls is no problem. What is
// usual leaves the last minutes out, so that a spike is not compared with itself; of a service that is new, or was away
// for most of the hour, nobody knows yet. It is asked for once a window, not counted how often it was recorded: that
// differs with the interval of the group, which is not ours where somebody has changed it.
func concurrency() alert {
	running := one(levels, "attempts_running")
	return alert{
		name: "ConcurrencySpike", severity: warning, lasts: time.Minute, slow: true,
		expr: "label_replace(count BY (min_over_time(abate_bulkhead_running[W]) / abate_bulkhead_limit > 0.9), \"limit\", " +
			"\"bulkhead\", \"\", \"\")\nor (min BY (min_over_time(" + running + "[M])) > ON 4 * avg_over_time(" + running +
			"[60W] OFFSET) and ON " + running + " > 20 and ON count_over_time(" + running + "[60W:W] OFFSET) > " +
			number(history) + "\nunless ON max BY (abate_bulkhead_limit))",
		summary: `{{ if eq $labels.limit "bulkhead" }}The bulkhead of {{ $labels.service }} is full in {{ $value | ` +
			`humanize }} instances{{ else }}{{ $labels.service }} has {{ $value | humanize }} attempts in flight{{ end }}`,
		text: `{{ if eq $labels.limit "bulkhead" }}In {{ $value | humanize }} instances of the caller, calls to {{ ` +
			`$labels.service }} hold more than 90 % of the permits of the bulkhead. At 100 % further calls wait, and those ` +
			`that wait too long are refused.{{ else }}{{ $value | humanize }} attempts wait for {{ $labels.service }} to ` +
			`answer, more than four times the mean of the last hour. It has become slow, or it has more callers.{{ end }}`,
	}
}

// circuitOpen alerts on circuits that do not close again. The state is looked for over a window, in which a circuit
// that opens after every probe is seen open; one that was open for a moment is seen for a window too, and so the
// threshold is later by that. A service that comes back may be half-open and open again for two waits.
func circuitOpen() alert {
	open := "(" + byService(services, "circuits_open") + " > 0 and ON " + one(ratios, "circuit_due") + " <= time())"
	return alert{
		name: "CircuitBreakerOpen", lasts: openLasts,
		expr:    gradedByFallback(instances(open, "open_instances", ">= PAGE"), open),
		summary: "{{ $labels.service }} does not answer: its circuit stays open in {{ $value | humanize }} instances",
		text: "In {{ $value | humanize }} instances of {{ $labels.job }} the circuit of {{ $labels.service }} opens again " +
			"and again, and calls are refused without being sent. It closes by itself when the service answers. " +
			isPage("", "Callers get the fallback, or it is a few instances of many: then look at those, not at the service."),
	}
}

// failing alerts on calls of which most fail, whatever the circuit says: what fails at once opens none of kind
// adaptive. A circuit that stays open has an alert of its own, and one that is forced open was meant to be. Fewer than
// two that fail in a window are too few to wake somebody for.
func failing() alert {
	value := byService(ratios, "failed_calls")
	page := "(" + value + " > 0.5 and ON avg_over_time(" + one(services, "failed_calls") + "[5W]) > TWO) or " +
		instances(value, "failing_instances", ">= PAGE")
	const open = `ALERTS{alertname="CircuitBreakerOpen", alertstate="firing"`
	return alert{
		name: "DependencyFailing", lasts: 2 * time.Minute,
		expr: "(" + gradedByFallback(page, page+" or "+instances(value, "failing_instances", "> 0")) +
			")\nunless ON abate_noticed_override{override=\"forcedOpen\"}\nunless ON " +
			one(ratios, "forced_open_and_called") + "\nunless ON " + open + ", severity=\"" + critical +
			"\"}\nunless on (cluster, namespace, job, service, severity) " + open + "}",
		summary: "{{ $value | humanizePercentage }} of the calls to {{ $labels.service }} fail",
		text: "{{ $value | humanizePercentage }} of the calls of {{ $labels.job }} to {{ $labels.service }} fail, retries " +
			"included, and no circuit stays open. " + isPage("", "Callers get the fallback, or most fail in a few instances "+
			"of many: then look at those, not at the service. ") + "What the attempts come to says whether the service fails " +
			"or the policy refuses.",
	}
}

// overridden alerts on a circuit that is out of its own hands: by an override, or by a policy that forces it open. The
// policy's is meant to last, so nobody hears of it for four hours, and only if there are calls in each of them (in each
// long window, where that is more than an hour), even if only once in half an hour: one quiet minute in four hours
// proves nothing.
func overridden(t clockwork) alert {
	const waits, meant = 15 * time.Minute, 4 * time.Hour
	window := fmt.Sprintf("max_over_time(%s[60W]", one(ratios, "forced_open_and_called"))
	policy := window + ")"
	for at := 60 * t.window(); at < meant-waits; at += 60 * t.window() {
		policy += " and " + window + " offset " + t.text(at) + ")"
	}
	policy += " and " + window + " offset " + t.text(meant-waits) + ")"
	isPolicy := func(yes, no string) string {
		return `{{ if eq $labels.by "policy" }}` + yes + "{{ else }}" + no + "{{ end }}"
	}
	return alert{
		name: "OverrideInForce", severity: warning, lasts: waits,
		expr: "sum by (cluster, namespace, job, service, override) (abate_noticed_override)\nor label_replace(" +
			"label_replace(max BY (" + policy + ") > 0, \"override\", \"forcedOpen\", \"\", \"\"), \"by\"" +
			", \"policy\", \"\", \"\")",
		summary: isPolicy("{{ $labels.service }} is still switched off by the policy, and still called",
			"The circuit of {{ $labels.service }} is {{ $labels.override }} by hand"),
		text: isPolicy("The policy file says circuitBreaker.mode: forcedOpen for {{ $labels.service }}: {{ $labels.job }} "+
			"refuses every call, and for four hours there have been calls. It stays until the file is changed.",
			"Somebody has overridden the circuit of {{ $labels.service }} with {{ $labels.override }} in {{ $value | "+
				"humanize }} instances. The override stays until somebody removes it; a reload of the policy does not."),
	}
}

// heldBack alerts on a pace that is too slow for normal days. After an outage the queue is the purpose. Where the time
// between two tokens is about maxWait, every connection makes the next one wait that long, so the alert needs refusals
// too. An adaptive pace holds nobody back while all is well, and its waits are as long as its rounds: there any wait
// will do.
func heldBack() alert {
	const wait = "max BY (abate_pacing_wait_seconds)"
	return alert{
		name: "ConnectionsHeldBack", severity: warning, lasts: 5 * time.Minute,
		expr: wait + " > 0\nunless ON " + wait +
			" <= ON 0.9 * max BY (abate_policy_pacing_max_wait_seconds)\nand ON sum BY " +
			"(rate(abate_noticed_total{of=\"rate_limited\"}[W])) > 0",
		summary: "Connections to {{ $labels.service }} wait {{ $value | humanizeDuration }} for their token",
		text: "A new connection to {{ $labels.service }} waits {{ $value | humanizeDuration }} for its token, and some are " +
			"refused because they would wait longer than pacing.maxWait. The pace is too slow for the load; or it is " +
			"adaptive, " +
			"and connections have failed, or were refused for load.",
	}
}
