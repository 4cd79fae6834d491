package export

import (
	"net/url"
	"slices"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/abate-go/abate/policyfile"
)

// Severities: a warning can wait until somebody is at work, a critical alert is for whoever is on call.
const (
	warning  = "warning"
	critical = "critical"
)

// alert is a rule about one service.
type alert struct {
	name, severity string
	expr           string
	lasts          time.Duration
	summary, text  string // templates of Prometheus; $value is what the expression gives
}

// alerts are the alerting rules for what the file lists: kind by kind, and each in the order of the file. Every service has rules of
// its own, so that who reads an alert at night sees its numbers and nobody else's.
func alerts(file *policyfile.File, t clockwork, base *url.URL) []rule {
	var all []rule
	for i := range file.Services {
		s := &file.Services[i]
		for _, a := range ofPolicy(matcher(s.Name), s.Policy.WithDefaults(), t) {
			all = append(all, a.rule(s.Name, t, base))
		}
	}
	for i := range file.Protect {
		p := &file.Protect[i]
		for _, a := range ofProtection(matcher(p.Name), p.Protection.WithDefaults()) {
			all = append(all, a.rule(p.Name, t, base))
		}
	}
	slices.SortStableFunc(all, func(a, b rule) int { return slices.Index(kinds, a.Alert) - slices.Index(kinds, b.Alert) })
	return all
}

// kinds are the alerts there are, in the order of the file: what can be seen first comes first.
var kinds = []string{
	"DependencyDegraded", "HighRetryRate", "RequestAmplification", "RetryBudgetExhausted", "ConcurrencySpike", "CircuitBreakerOpen",
	"OverrideInForce", "ConnectionsHeldBack", "ArrivingRetries", "ShedRate", "DeadLetterArrival",
}

// rule writes the alert.
func (a alert) rule(service string, t clockwork, base *url.URL) rule {
	r := rule{
		Alert: a.name, Expr: a.expr, Labels: labels{a.severity, literal(label(service))},
		Annotations: annotations{Summary: a.summary, Description: a.text, Runbook: literal(base.JoinPath(a.name + ".md").String())},
	}
	if a.lasts > 0 {
		r.For = t.text(a.lasts)
	}
	return r
}

// ofPolicy are the alerts about calls under a policy, which has its defaults written out. service matches their series.
func ofPolicy(service string, p abate.Policy, t clockwork) []alert {
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
	list = append(list, concurrency(service, &p), overridden(service))
	if p.CircuitBreaker.Enabled() && p.CircuitBreaker.Mode != breaker.Shadow {
		list = append(list, circuitOpen(service, &p))
	}
	if p.Pacing.Enabled() {
		list = append(list, heldBack(service, &p))
	}
	if p.Kafka.Enabled() && p.Kafka.DLTStrategy != redelivery.DropLast {
		list = append(list, deadLetters(service, t))
	}
	return list
}

// ofProtection are the alerts about what arrives under a protection, which has its defaults written out. service matches its series.
func ofProtection(service string, p abate.Protection) []alert {
	if !p.Shed.Enabled() {
		return nil
	}
	list := []alert{arrivingRetries(service, &p)}
	if !p.Shed.Shadow { // in shadow nothing is refused
		list = append(list, shedSome(service), shedCritical(service))
	}
	return list
}
