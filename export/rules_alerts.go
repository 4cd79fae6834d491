package export

import (
	"net/url"
	"slices"
	"time"

	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/abate-go/abate/policyfile"
)

// Severities: a warning can wait until somebody is at work, a critical alert is for whoever is on call.
const (
	warning  = "warning"
	critical = "critical"
)

// alert is a rule about one service, or about all that are not listed.
type alert struct {
	name, severity string
	expr           string
	lasts          time.Duration
	summary, text  string // templates of Prometheus; $value is what the expression gives
}

// alerts are the alerting rules: kind by kind, in each those of what the file lists, in its order, and then the one for
// all others. Every listed service has rules of its own, so that who reads an alert at night sees its numbers and
// nobody else's.
func alerts(file *policyfile.File, o RulesOptions, base *url.URL) []rule {
	var all []rule
	t := clockwork{o.Scale}
	for i := range file.Services {
		s := &file.Services[i]
		for _, a := range ofPolicy(matcher(s.Name), s.Policy.WithDefaults(), t) {
			all = append(all, a.about(s.Name, t, base))
		}
	}
	for i := range file.Protect {
		p := &file.Protect[i]
		for _, a := range ofProtection(matcher(p.Name), p.Protection.WithDefaults(), t) {
			all = append(all, a.about(p.Name, t, base))
		}
	}
	if !o.OnlyListed {
		for _, a := range unlisted(file, t) {
			all = append(all, a.aboutOthers(t, base))
		}
	}
	slices.SortStableFunc(all, func(a, b rule) int { return slices.Index(kinds, a.Alert) - slices.Index(kinds, b.Alert) })
	return all
}

// kinds are the alerts there are, in the order of the file: what can be seen first comes first.
var kinds = []string{
	"DependencyDegraded", "HighRetryRate", "RequestAmplification", "RetryBudgetExhausted", "ConcurrencySpike",
	"CircuitBreakerOpen", "DependencyFailing", "CircuitForcedOpen", "OverrideInForce", "ConnectionsHeldBack",
	"ArrivingRetries", "ShedRate", "IdempotencyKeysFull", "DeadLetterArrival", "DeadLetterFlood",
}

// about is the alert for one service.
func (a alert) about(service string, t clockwork, base *url.URL) rule {
	r := a.rule(t, base)
	r.Labels.Service = literal(label(service))
	return r
}

// rule writes the alert, for whoever it is about.
func (a alert) rule(t clockwork, base *url.URL) rule {
	r := rule{
		Alert: a.name, Expr: a.expr, Labels: labels{Severity: a.severity},
		Annotations: annotations{
			Summary: a.summary, Description: a.text, Runbook: literal(base.JoinPath(a.name + ".md").String()),
		},
	}
	if a.lasts > 0 {
		r.For = t.text(a.lasts)
	}
	return r
}

// ofPolicy are the alerts about calls under a policy, which has its defaults written out. service matches their series.
func ofPolicy(service string, p policyfile.Policy, t clockwork) []alert {
	var list []alert
	x := extraOf(service, &p, t)
	if x.retries > 0 {
		list = append(list, x.degraded(), x.highRetryRate())
	}
	if x.bound() > 0 {
		list = append(list, x.amplified(), x.farAmplified())
		if x.retries > 0 && p.RetryBudget.Enabled() { // a hedge that is denied fails no call
			list = append(list, budgetExhausted(service))
		}
	}
	list = append(list, concurrency(service, &p, t), overridden(service))
	if !p.CircuitBreaker.Enabled() || p.CircuitBreaker.Mode != breaker.ForcedOpen { // else somebody wants them to fail
		list = append(list, failing(service, &p, t))
	}
	switch {
	case !p.CircuitBreaker.Enabled() || p.CircuitBreaker.Mode == breaker.Shadow: // it refuses nothing
	case p.CircuitBreaker.Mode == breaker.ForcedOpen:
		list = append(list, forcedOpen(service, t))
	default:
		list = append(list, circuitOpen(service, &p))
	}
	if p.Pacing.Enabled() {
		list = append(list, heldBack(service, &p.Pacing))
	}
	if p.Kafka.Enabled() && p.Kafka.DLTStrategy != redelivery.DropLast {
		list = append(list, deadLetters(service, t))
	}
	if p.Kafka.Enabled() && !p.Kafka.Flood.Disabled {
		list = append(list, letterFlood(service))
	}
	return list
}

// ofProtection are the alerts about what arrives under a protection, which has its defaults written out. service
// matches its series.
func ofProtection(service string, p policyfile.Protection, t clockwork) []alert {
	var list []alert
	if p.Shed.Enabled() {
		list = append(list, arrivingRetries(service, &p))
	}
	if p.Shed.Enabled() && !p.Shed.Shadow { // in shadow nothing is refused
		list = append(list, shedSome(service), shedCritical(service))
	}
	if p.Idempotency.Enabled() && !p.Idempotency.Fleet { // Redis has alerts of its own
		list = append(list, keysWillNotFit(service, t), keysDoNotFit(service, t))
	}
	return list
}
