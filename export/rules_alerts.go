package export

import (
	"fmt"
	"time"
)

// Severities: a warning is a ticket that can wait until somebody is at work, a critical alert is for who is on call.
const (
	warning  = "warning"
	critical = "critical"
)

// pageShare is the share of its instances from which on a program's trouble wakes somebody. Below it, it is a ticket.
const pageShare = 0.25

// alert is one kind of alert, for all services. expr gives those that it is about.
type alert struct {
	name          string
	severity      string // empty: expr gives a label severity
	expr          string
	lasts         time.Duration
	slow          bool   // it is enough to look a quarter as often
	summary, text string // templates of Prometheus; $value is what expr gives
}

// alertKinds are the alerts there are, in the order of the file: what can be seen first comes first, and what another
// one reads before it.
func alertKinds(t clockwork) []alert {
	return []alert{
		degraded(), highRetryRate(), amplified(), budgetExhausted(), concurrency(), circuitOpen(), failing(), overridden(t),
		heldBack(), arrivingRetries(), shedRate(), keysFull(), deadLetters(), letterFlood(), endpointsLost(),
		policyNotInForce(), certificateEnds(t),
	}
}

// rule writes the alert. runbook is the address of its page.
func (a alert) rule(t clockwork, runbook string) rule {
	r := rule{
		Alert: a.name, Expr: t.expr(a.expr), Labels: labels{Severity: a.severity},
		Annotations: annotations{Summary: a.summary, Description: a.text, Runbook: runbook},
	}
	if a.lasts > 0 {
		r.For = t.text(a.lasts)
	}
	return r
}

// graded joins what wakes somebody and what is a ticket, each with its severity: of one service there is one of both.
// They give the labels of a service and nothing else.
func graded(page, ticket string) string { return gradedOn("ON", page, ticket) }

// gradedOn is graded for what has other labels than a service.
func gradedOn(labels, page, ticket string) string {
	return fmt.Sprintf("label_replace(%s, \"severity\", %q, \"\", \"\")\nor label_replace((%s) unless %s (%s), "+
		"\"severity\", %q, \"\", \"\")", page, critical, ticket, labels, page, warning)
}

// gradedByFallback is graded for what nobody is woken for where callers get a fallback.
func gradedByFallback(page, ticket string) string {
	return graded("(("+page+") unless ON "+one(services, "fallback")+")", ticket)
}

// byService takes off what is left of the family's labels.
func byService(family, of string) string { return "max BY (" + one(family, of) + ")" }

// instances joins a value and a share of the instances that is above something.
func instances(value, of, above string) string {
	return fmt.Sprintf("(%s and ON %s %s)", value, one(ratios, of), above)
}

// isPage is a choice of words by the severity.
func isPage(yes, no string) string {
	return fmt.Sprintf("{{ if eq $labels.severity %q }}%s{{ else }}%s{{ end }}", critical, yes, no)
}
