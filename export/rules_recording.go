package export

import (
	"fmt"
	"strings"
	"time"
)

// The recording rules are three families. Each has its members by the label "of", so that all services of all programs
// are looked at in three rules. Names are for good: alerts, runbooks and dashboards use them.
const (
	services   = "abate:service"   // what happens: per second, or a number
	thresholds = "abate:threshold" // where alerts begin, by the policy that each service is really under
	ratios     = "abate:ratio"     // what is compared with that
)

// member is one member of a family. Without of, the expression gives several that have their label.
type member struct{ of, expr string }

// recordings are the recording rules: what happens first, then the thresholds, then the ratios, which read both.
func recordings(t clockwork) []rule {
	return []rule{
		family(services, t, facts()),
		family(thresholds, t, limitsOfPolicies(t)),
		family(ratios, t, comparisons()),
	}
}

// family is the rule that records all members. A comment says what each is.
func family(name string, t clockwork, members []member) rule {
	parts := make([]string, len(members))
	for i, m := range members {
		parts[i] = m.expr
		if m.of != "" {
			parts[i] = fmt.Sprintf("label_replace(%s, \"of\", %q, \"\", \"\")", m.expr, m.of)
		}
	}
	return rule{Record: name, Expr: t.expr(either(parts))}
}

// either joins expressions in pairs, and pairs of pairs: what is joined one by one is looked at again with each.
func either(parts []string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	half := len(parts) / 2
	return "(" + either(parts[:half]) + "\nor " + either(parts[half:]) + ")"
}

// one is a member of a family, as an alert reads it.
func one(family, of string) string { return fmt.Sprintf("%s{of=%q}", family, of) }

// expr fills in what all expressions have in common: BY and ON are the labels that a service of a program has; W is the
// window, 5W and 60W several of them, M a minute, L how far back a closed circuit is looked for; TWO and TEN are as
// many things within a window, as a rate. PAGE, from which share of the instances on somebody is woken, stays.
func (c clockwork) expr(text string) string {
	const labels = "(cluster, namespace, job, service)"
	w := c.window()
	return strings.NewReplacer("BY", "by "+labels, "ON", "on "+labels, "[W]", "["+c.text(w)+"]",
		"[5W]", "["+c.text(5*w)+"]", "[60W]", "["+c.text(60*w)+"]", "[L]", "["+c.text(longestWait+2*w)+"]",
		"[M]", "["+c.text(time.Minute)+"]", "[3M]", "["+c.text(3*time.Minute)+"]", "OFFSET", "offset "+c.text(5*w),
		"SINCE", "offset "+c.text(time.Minute),
		"HALF", number(history*float64(60*w)/float64(c.scrape)), "TWO", number(c.perSecond(2)), "TEN",
		number(c.perSecond(10))).Replace(text)
}

// facts are what is read of all instances: one look at each series. What happens only in trouble is read of those
// instances that have something to tell, as abate_noticed_total: to find the same number of zeros costs as much as that
// of others, and nearly all are zeros. It is not there for a service of which all is well.
func facts() []member {
	const pair = "sum BY (rate(%s[W]))"
	perSecond := func(of, metric string) member { return member{of, fmt.Sprintf(pair, metric)} }
	return []member{
		perSecond("first_attempts", "abate_first_attempts_total"),
		perSecond("calls", "abate_calls_ended_total"),
		{"", "sum by (cluster, namespace, job, service, of) (rate(abate_noticed_total{of=~\"extra_attempts|retries|" +
			"failed_calls|budget_exhausted|shed|critical_shed\"}[W]))"},
		{"attempts_running", "sum BY (abate_attempts_running)"},
		{"instances", "count BY (abate_attempts_running)"},
		// Instances whose circuit was open at a scrape of the window: between two waits it is half-open, and still not
		// closed. One that nobody calls stays open for ever, and does not count. Where there are none it is 0, of the
		// services that this rule has recorded the last time.
		{"circuits_open", "(sum BY (max_over_time(abate_noticed_circuit_open[W]) * ignoring(of) " +
			"(rate(abate_noticed_total{of=\"calls\"}[W]) > bool 0)) or ON 0 * max BY (" + one(services, "instances") + "))"},
		// where alerts begin by the policy, where there are extra attempts to be compared with that
		{"", "max by (cluster, namespace, job, service, of) (abate_noticed_policy)"},
		{"fallback", "max BY (abate_policy_fallback)"},
		perSecond("arrivals", "abate_requests_arrived_total"),
		perSecond("critical_arrivals", "abate_critical_requests_arrived_total"),
		{"gates", "count BY (abate_requests_arrived_total)"},
		// What each instance sees, by how much arrives there: a handful of requests somewhere has any share.
		{"arriving_retries", "sum BY (abate_arriving_retry_ratio * rate(abate_requests_arrived_total[W]))"},
	}
}

// longestWait is how long a circuit may stay open, whatever its policy says, before somebody is told.
const longestWait = 10 * time.Minute

// limitsOfPolicies are where alerts begin. What concerns extra attempts each program has worked out of its policy (see
// budget.Limits), and tells while it has some; what is not there allows nothing to be said.
func limitsOfPolicies(t clockwork) []member {
	seconds := t.window().Seconds() * t.scale
	bank := one(services, "bank") + " / " + number(seconds)
	return []member{
		// extra_attempts: what may be added to a first attempt before an alert fires. storm: half-way between that and all
		// that there can be. retries: the share of retries among all attempts that is high.
		{"", "label_replace(" + services + "{of=~\"allowed_extra_attempts|allowed_retries|storm\"}, \"of\", \"$1\", " +
			"\"of\", \"(?:allowed_)?(.+)\")"},
		// a rate of extra attempts that is nothing yet: what time earns, and the bank within a window
		{"few", bank + " + ON " + one(services, "earned_per_second") + " or ON " + bank},
		// the time from which on an open circuit has been so for long, but for the two minutes that its alert waits: a
		// window, in which it is still seen open, and two waits, a minute at least
		{"circuit_due", fmt.Sprintf("time() + %s + %v * clamp(2 * max BY (abate_policy_circuit_breaker_max_wait_seconds), "+
			"60, %v) unless ON %s > 0", number(seconds-t.scale*openLasts.Seconds()), t.scale, longestWait.Seconds(),
			one(services, "circuits_open"))},
		{"forced_open_and_called", "max BY (abate_policy_circuit_breaker_forced_open) and ON " + one(services, "calls") +
			" > 0"},
	}
}

// comparisons are shares, and in what share of its instances a program is in trouble: a service may be well on the
// whole while one instance is not.
func comparisons() []member {
	of := func(a, b string) string { return fmt.Sprintf("%s / ON %s", one(services, a), one(services, b)) }
	sent := fmt.Sprintf("(%s + ON %s)", one(services, "first_attempts"), one(services, "extra_attempts"))
	// what is looked at over some time must be 0 before it is something
	dense := func(of, all string) string {
		return fmt.Sprintf("(%s or ON 0 * max BY (%s))", one(services, of), one(services, all))
	}
	return []member{
		{"amplification", sent + " / ON " + one(services, "first_attempts")},
		{"retries", one(services, "retries") + " / ON " + sent},
		{"excess", fmt.Sprintf("%s - ON %s * ON %s - ON %s", one(services, "extra_attempts"),
			one(thresholds, "extra_attempts"), one(services, "first_attempts"), one(thresholds, "few"))},
		{"failed_calls", of("failed_calls", "calls")},
		{"shed", dense("shed", "arrivals") + " / ON " + one(services, "arrivals")},
		{"critical_shed", of("critical_shed", "critical_arrivals")},
		{"arriving_retries", of("arriving_retries", "arrivals")},
		{"open_instances", of("circuits_open", "instances")},
		{"storming_instances", fmt.Sprintf("count BY ((rate(abate_noticed_total{of=\"many_extra_attempts\"}[W]) > ON "+
			"group_left () %s) > ignoring(of) rate(abate_noticed_total{of=\"first_attempts\"}[W]) * ON group_left () %s) "+
			"/ ON %s", one(thresholds, "few"),
			one(thresholds, "storm"), one(services, "instances"))},
		// fewer than ten calls in a window say nothing of an instance
		{"failing_instances", "count BY (rate(abate_noticed_total{of=\"failed_calls\"}[W]) > ignoring(of) 0.5 * " +
			"(rate(abate_noticed_total{of=\"calls\"}[W]) > TEN)) / ON " + one(services, "instances")},
		{"shedding_instances", "count BY (rate(abate_noticed_total{of=\"critical_shed\"}[W]) > ignoring(of) 0.05 * " +
			"(rate(abate_noticed_total{of=\"critical_arrivals\"}[W]) > TEN)) / ON " + one(services, "gates")},
		{"full_instances", "count BY (increase(abate_idempotency_forgotten_total[5W]) > 0 or sum without (result) " +
			"(increase(abate_idempotency_total{result=\"full\"}[5W])) > 0) / ON count BY (abate_idempotency_max_keys)"},
	}
}
