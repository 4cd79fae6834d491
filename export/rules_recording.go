package export

import (
	"fmt"
	"strings"
	"time"
)

// The recording rules are three families. Each has its members by the label "of", so that all services of all programs
// are looked at in few rules. Names are for good: alerts, runbooks and dashboards use them.
const (
	services = "abate:service" // what happens: per second, or a number; and where alerts begin by the policies
	levels   = "abate:level"   // the same of what changes slowly
	ratios   = "abate:ratio"   // what follows from that, and is compared
)

// member is one member of a family. Without of, the expression gives several that have their label.
type member struct{ of, expr string }

// recordings are the recording rules of the group that follows the scrape: what happens first, then the ratios, which
// read it.
func recordings(t clockwork) []rule {
	return []rule{family(services, t, facts()), family(ratios, t, comparisons(t))}
}

// slowRecordings are those of the group that is evaluated seldom.
func slowRecordings(t clockwork) []rule { return []rule{family(levels, t, slowFacts())} }

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
// window, 5W and 60W several of them, M a minute; [60W:W] looks once a window, however often what it reads is recorded;
// TWO and TEN are as many things within a window, as a rate. PAGE, from which share of the instances on somebody is
// woken, stays.
func (c clockwork) expr(text string) string {
	const labels = "(cluster, namespace, job, service)"
	w := c.window()
	return strings.NewReplacer("BY", "by "+labels, "ON", "on "+labels, "[W]", "["+c.text(w)+"]",
		"[5W]", "["+c.text(5*w)+"]", "[60W]", "["+c.text(60*w)+"]", "[60W:W]",
		"["+c.text(60*w)+":"+c.text(w)+"]", "OFFSET", "offset "+c.text(5*w),
		"[M]", "["+c.text(time.Minute)+"]", "[3M]", "["+c.text(3*time.Minute)+"]", "[25M]",
		"["+c.text(25*time.Minute)+"]", "SINCE 3M", "offset "+c.text(3*time.Minute), "SINCE 25M",
		"offset "+c.text(25*time.Minute), "SINCE", "offset "+c.text(time.Minute),
		"TWO", number(c.perSecond(2)), "TEN", number(c.perSecond(10))).Replace(text)
}

// facts are what is read of all instances at every evaluation: one look at each series. What happens only in trouble is
// read of those instances that have something to tell, as abate_noticed_: to find the same number of zeros costs as
// much as that of others, and nearly all are zeros. It is not there for a service of which all is well.
func facts() []member {
	const pair = "sum BY (rate(%s[W]))"
	perSecond := func(of, metric string) member { return member{of, fmt.Sprintf(pair, metric)} }
	return []member{
		perSecond("first_attempts", "abate_first_attempts_total"),
		{"", "sum by (cluster, namespace, job, service, of) (rate(abate_noticed_total{of=~\"extra_attempts|" +
			"extra_but_retries|failed_calls|unsent_calls|budget_exhausted|shed|critical_shed\"}[W]))"},
		// Instances whose circuit was open at a scrape of the window: between two waits it is half-open, and still not
		// closed. One that nobody calls stays open for ever, and does not count.
		{"circuits_open", "sum BY (max_over_time(abate_noticed_circuit_open[W]) * ignoring(of) " +
			"(rate(abate_noticed_total{of=\"calls\"}[W]) > bool 0))"},
		// where alerts begin by the policy, where there is something to be compared with that
		{"", "max by (cluster, namespace, job, service, of) (abate_noticed_policy)"},
		{"fallback", "max BY (abate_policy_fallback)"},
		perSecond("arrivals", "abate_requests_arrived_total"),
		// What each instance sees, by how much arrives there: a handful of requests somewhere has any share.
		{"arriving_retries", "sum BY (abate_noticed_arriving_retry_ratio * ignoring(of) " +
			"rate(abate_noticed_total{of=\"arrivals\"}[W]))"},
	}
}

// slowFacts are what is read of all instances and changes slowly, or is looked at over an hour.
func slowFacts() []member {
	return []member{
		{"attempts_running", "sum BY (abate_attempts_running)"},
		{"instances", "count BY (abate_attempts_running)"},
		{"gates", "count BY (abate_requests_arrived_total)"},
		{"critical_share", "sum BY (rate(abate_critical_requests_arrived_total[W])) / sum BY (rate(" +
			"abate_requests_arrived_total[W]))"},
		{"policies", "count by (cluster, namespace, job) (count by (cluster, namespace, job, hash) (abate_policy_info))"},
		// the room that the keys of a retention would take up at this rate, as a share of what there is, where it is most
		{"keys", "max BY (sum without (result) (rate(abate_idempotency_total{result=\"run\"}[5W])) * " +
			"abate_idempotency_retention_seconds / abate_idempotency_max_keys)"},
		{"full_instances", "count BY (increase(abate_idempotency_forgotten_total[5W]) > 0 or sum without (result) " +
			"(increase(abate_idempotency_total{result=\"full\"}[5W])) > 0) / ON count BY (abate_idempotency_max_keys)"},
	}
}

// longestWait is how long a circuit may stay open, whatever its policy says, before somebody is told.
const longestWait = 10 * time.Minute

// comparisons are shares, in what share of its instances a program is in trouble (a service may be well on the whole
// while one instance is not), and what else follows from the facts.
func comparisons(t clockwork) []member {
	of := func(a, b string) string { return fmt.Sprintf("%s / ON %s", one(services, a), one(services, b)) }
	bank := one(services, "bank") + " / " + number(t.window().Seconds()*t.scale)
	return append([]member{
		// a rate of extra attempts that is nothing yet: what time earns, and the bank within a window
		{"few", bank + " + ON " + one(services, "earned_per_second") + " or ON " + bank},
		{"amplification", "1 + " + of("extra_attempts", "first_attempts")},
		{"retries", fmt.Sprintf("(%s - ON %s or ON %[1]s) / ON (%[1]s + ON %[3]s)", one(services, "extra_attempts"),
			one(services, "extra_but_retries"), one(services, "first_attempts"))},
		{"excess", fmt.Sprintf("%s - ON %s * ON %s - ON (%s + ON %[5]s or ON %[4]s)", one(services, "extra_attempts"),
			one(services, "allowed_extra_attempts"), one(services, "first_attempts"), bank,
			one(services, "earned_per_second"))},
		// of the calls that begin; of those that wait for an answer all may end in one window
		{"failed_calls", fmt.Sprintf("clamp_max(%s / ON (%s + ON %s), 1)", one(services, "failed_calls"),
			one(services, "first_attempts"), one(services, "unsent_calls"))},
		{"shed", of("shed", "arrivals")},
		{"critical_shed", of("critical_shed", "arrivals") + " / ON " + one(levels, "critical_share")},
		{"arriving_retries", of("arriving_retries", "arrivals")},
		// fewer than ten calls in a window say nothing of an instance
		{"shedding_instances", "count BY (rate(abate_noticed_total{of=\"critical_shed\"}[W]) > ignoring(of) 0.05 * " +
			"(rate(abate_noticed_total{of=\"critical_arrivals\"}[W]) > TEN)) / ON " + one(levels, "gates")},
		{"circuit_due", circuitDue(t)},
		// Calls are shown for ten minutes after one was refused. One that is made once in half an hour has grown before it
		// is shown again: that they are there says it, at whatever rate.
		{"forced_open_and_called", "max BY (abate_policy_circuit_breaker_forced_open) and ON " +
			one(services, "unsent_calls")},
	}, member{"", instancesInTrouble(bank)})
}

// circuitDue is the time from which on a circuit that is open has been so for long, but for the two minutes that its
// alert waits: a window, in which it is still seen open, and two waits, a minute at least. It is worked out when the
// circuit is seen open first, and kept until it is seen closed. The time before that is the last one at which it was
// not.
func circuitDue(t clockwork) string {
	seconds := (t.window().Seconds() - openLasts.Seconds() - t.scrape.Seconds()) * t.scale
	open := one(services, "circuits_open")
	return fmt.Sprintf("(max BY (%s) or ON time() + %s + %v * clamp(2 * max BY (%s or ON 0 * %s), 60, %v)) and "+
		"ON %[5]s > 0",
		one(ratios, "circuit_due"), number(seconds), t.scale, one(services, "circuit_wait"), open, longestWait.Seconds())
}

// instancesInTrouble are shares of the instances, by what they are in.
func instancesInTrouble(bank string) string {
	named := func(expr, of string) string {
		return fmt.Sprintf("label_replace(%s, \"of\", %q, \"\", \"\")", expr, of)
	}
	few := fmt.Sprintf("(%s + ON %s or ON %[1]s)", bank, one(services, "earned_per_second"))
	return fmt.Sprintf("(%s or %s or %s) / ON group_left () %s",
		named(one(services, "circuits_open"), "open_instances"),
		named(fmt.Sprintf("count BY ((rate(abate_noticed_total{of=\"many_extra_attempts\"}[W]) > ON group_left () %s) > "+
			"ignoring(of) rate(abate_noticed_total{of=\"first_attempts\"}[W]) * ON group_left () %s)", few,
			one(services, "storm")), "storming_instances"),
		// fewer than ten calls in a window say nothing of an instance
		named("count BY (rate(abate_noticed_total{of=\"many_failed_calls\"}[W]) > ignoring(of) 0.5 * "+
			"(rate(abate_noticed_total{of=\"calls\"}[W]) > TEN))", "failing_instances"), one(levels, "instances"))
}
