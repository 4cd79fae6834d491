package expect

import (
	"slices"
	"strings"
)

// Kind is the kind of value that a measure is compared with.
type Kind uint8

// The kinds of values, and how they are written.
const (
	Number   Kind = iota // a plain number: 1.2
	Count                // a whole number of things: 1,000
	Share                // a part of a whole, 0 to 1, written in percent: 95%
	Duration             // a time, held in seconds: 800ms
	Rate                 // per second: 11,000/s
)

var kindNames = [...]string{"number", "count", "share", "duration", "rate"}

// String is the kind in a word, for instance "share".
func (k Kind) String() string { return word(kindNames[:], int(k)) }

// SubjectKind is what a measure is about.
type SubjectKind uint8

// The kinds of subjects.
const (
	NoSubject      SubjectKind = iota // the run as a whole
	Fleet                             // a group of clients; all of them when none is named
	Service                           // something that is called
	FleetOrService                    // either; all fleets when none is named
)

var subjectNames = [...]string{"run", "fleet", "service", "fleet or service"}

// String is the kind in a word, for instance "service".
func (k SubjectKind) String() string { return word(subjectNames[:], int(k)) }

// Need says whether an argument is given.
type Need uint8

// An argument may be not allowed, optional or required.
const (
	NotAllowed Need = iota
	Optional
	Required
)

// Window is the part of a run in which something is measured. Warm-up belongs to none.
type Window uint8

// The windows. With several faults, during is from the begin of the first to the end of the last.
const (
	All    Window = iota // the whole run; the default
	Before               // until the first fault begins
	During               // while there are faults
	After                // from the end of the last fault
)

var windowNames = [...]string{"all", "before", "during", "after"}

// String is the window as the language writes it.
func (w Window) String() string { return word(windowNames[:], int(w)) }

// Priorities are the classes of requests that gates tell apart, as policy files name them, from the one refused first
// on. The slice is the caller's own.
func Priorities() []string { return slices.Clone(priorities) }

var priorities = []string{"SHEDDABLE", "SHEDDABLE_PLUS", "CRITICAL", "CRITICAL_PLUS"}

// Op is a comparison.
type Op uint8

// The comparisons.
const (
	Below   Op = iota // <
	AtMost            // <=
	Above             // >
	AtLeast           // >=
)

var opNames = [...]string{"<", "<=", ">", ">="}

// String is the comparison as the language writes it.
func (o Op) String() string { return word(opNames[:], int(o)) }

// compare reports whether a is so to b. Nothing holds of NaN.
func (o Op) compare(a, b float64) bool {
	switch o {
	case Below:
		return a < b
	case AtMost:
		return a <= b
	case Above:
		return a > b
	case AtLeast:
		return a >= b
	}
	return false
}

// upper reports whether the bound is an upper one.
func (o Op) upper() bool { return o == Below || o == AtMost }

// word is the i-th name. What has none gets one that no text of the language can contain.
func word(names []string, i int) string {
	if i >= len(names) {
		return "<unknown>"
	}
	return names[i]
}

// Measure is one thing that can be measured in a run.
type Measure struct {
	Name        string      // as the language writes it
	Kind        Kind        // of its value
	Subject     SubjectKind // what the name in its brackets is
	SubjectNeed Need        // whether there is such a name
	Quantile    Need        // whether a quantile (p50, p99.9) is given
	Window      bool        // whether a window may be given
	Priority    bool        // whether a priority (SHEDDABLE) may be given
	Meaning     string      // in one line, without a full stop
	Example     string      // a whole expectation
}

// Form is how the measure is written, with optional arguments in square brackets: latency(quantile[, fleet][, window]).
// The order of arguments does not matter.
func (m Measure) Form() string {
	var b strings.Builder
	given := false
	add := func(name string, need Need) {
		if need == NotAllowed {
			return
		}
		if given {
			name = ", " + name
		}
		if need == Optional {
			name = "[" + name + "]"
		}
		given = true
		b.WriteString(name)
	}
	quantileFirst := m.Quantile == Required
	if quantileFirst {
		add("quantile", Required)
	}
	add(m.Subject.String(), m.SubjectNeed)
	if m.Priority {
		add("priority", Optional)
	}
	if m.Window {
		add("window", Optional)
	}
	if !quantileFirst {
		add("quantile", m.Quantile)
	}
	if !given {
		return m.Name
	}
	return m.Name + "(" + b.String() + ")"
}

// Measures are all measures, in the order in which a reader wants them. The slice is the caller's own.
func Measures() []Measure { return slices.Clone(measures) }

var measures = []Measure{
	{Name: "collapse", Kind: Share, Subject: FleetOrService, SubjectNeed: Optional,
		Meaning: "share of runs in which goodput stays down after the last fault is over, of any fleet when none is " +
			"named; of a service, its useful work; 1 in a run that did, 0 in one that did not",
		Example: "collapse < 1%"},
	{Name: "recovery", Kind: Duration, Subject: FleetOrService, SubjectNeed: Optional,
		Meaning: "time from the end of the last fault until goodput is back, of the last fleet when none is named; of a " +
			"service, its useful work; infinite in a run where it never is",
		Example: "recovery < 10s in 99% of runs"},
	{Name: "goodput", Kind: Share, Subject: Fleet, SubjectNeed: Optional, Window: true,
		Meaning: "share of offered requests that were answered in time",
		Example: "goodput(after) > 95%"},
	{Name: "amplification", Kind: Number, Subject: Service, SubjectNeed: Required, Window: true,
		Meaning: "attempts at the service per request that needs it; 1 without retries and hedges",
		Example: "amplification(payment-db) < 1.2"},
	{Name: "attempts", Kind: Rate, Subject: Service, SubjectNeed: Required, Window: true,
		Meaning: "attempts at the service per second, first ones and repeats",
		Example: "attempts(payment-db, during) < 11000/s"},
	{Name: "retries", Kind: Rate, Subject: Service, SubjectNeed: Optional, Window: true,
		Meaning: "attempts per second that repeat an earlier one",
		Example: "retries(payment-db, during) < 1000/s"},
	{Name: "latency", Kind: Duration, Subject: Fleet, SubjectNeed: Optional, Quantile: Required, Window: true,
		Meaning: "quantile of the time to the answer, of requests that were answered",
		Example: "latency(p99, after) < 800ms"},
	{Name: "failures", Kind: Share, Subject: Fleet, SubjectNeed: Optional, Window: true,
		Meaning: "share of offered requests that failed",
		Example: "failures(after) < 0.1%"},
	{Name: "refused", Kind: Share, Subject: Fleet, SubjectNeed: Optional, Window: true,
		Meaning: "share of offered requests that the guard refused early",
		Example: "refused(after) < 1%"},
	{Name: "offered", Kind: Rate, Subject: Fleet, SubjectNeed: Optional, Window: true,
		Meaning: "requests offered per second",
		Example: "offered(checkout, before) > 900/s"},
	{Name: "userVisible", Kind: Duration, Subject: Fleet, SubjectNeed: Optional,
		Meaning: "total time with goodput below 95% of normal",
		Example: "userVisible < 45s"},
	{Name: "served", Kind: Duration, Subject: Fleet, SubjectNeed: Optional, Quantile: Required,
		Meaning: "time from the end of the last fault until that share of all requests of the run have been answered; " +
			"infinite if that never happens",
		Example: "served(p99) < 2m"},
	{Name: "serving", Kind: Duration, Subject: Fleet, SubjectNeed: Optional,
		Meaning: "time from the end of the last fault until each instance has had an answer; infinite if that never happens",
		Example: "serving(checkout) < 5s"},
	{Name: "queueWait", Kind: Duration, Subject: Service, SubjectNeed: Required, Quantile: Optional, Window: true,
		Meaning: "time that work waits in the service's queue: the mean, or the quantile if one is given",
		Example: "queueWait(payment-db, after) < 100ms"},
	{Name: "queue", Kind: Count, Subject: Service, SubjectNeed: Required, Window: true,
		Meaning: "longest queue of the service",
		Example: "queue(payment-db) < 1,000"},
	{Name: "waste", Kind: Share, Subject: Service, SubjectNeed: Required, Window: true,
		Meaning: "share of the service's work that was for callers that had left",
		Example: "waste(payment-db, after) < 5%"},
	{Name: "utilization", Kind: Share, Subject: Service, SubjectNeed: Required, Window: true,
		Meaning: "share of the service's capacity that was busy",
		Example: "utilization(payment-db, before) < 80%"},
	{Name: "peak", Kind: Rate, Subject: Service, SubjectNeed: Required,
		Meaning: "most arrivals at the service in any 10 ms, as a rate",
		Example: "peak(payment-db) < 30,000/s"},
	{Name: "connections", Kind: Count, Subject: Service, SubjectNeed: Required,
		Meaning: "most connections to the service that were open at once",
		Example: "connections(payment-db) <= 500"},
	{Name: "connects", Kind: Rate, Subject: Service, SubjectNeed: Required, Window: true,
		Meaning: "attempts to open a connection to the service, per second",
		Example: "connects(payment-db, after) < 50/s"},
	{Name: "connectPeak", Kind: Count, Subject: Service, SubjectNeed: Required,
		Meaning: "most attempts to open a connection to the service in any 100 ms",
		Example: "connectPeak(payment-db) <= 50"},
	{Name: "unopened", Kind: Count, Subject: Service, SubjectNeed: Required, Window: true,
		Meaning: "attempts to open a connection that the service refused or broke off",
		Example: "unopened(payment-db) < 1,000"},
	{Name: "yield", Kind: Share, Subject: Service, SubjectNeed: Required, Quantile: Optional, Window: true,
		Meaning: "answers with success to callers that still waited, as a share of the attempts that came or, if that is " +
			"less, of what the service can do; of all the time, or that quantile of stretches of model.hold: p5 for the worst " +
			"twentieth of them",
		Example: "yield(payment-db, after) > 90%"},
	{Name: "response", Kind: Duration, Subject: Service, SubjectNeed: Required, Quantile: Required, Window: true,
		Meaning: "quantile of the time from an attempt's arrival at the service to its answer, of those that the service " +
			"did with success",
		Example: "response(p99, payment-db, after) < 150ms"},
	{Name: "shed", Kind: Share, Subject: Service, SubjectNeed: Required, Window: true, Priority: true,
		Meaning: "share of the attempts at the service that its gate refused for overload, or because their deadline had " +
			"passed; with a priority of those that came to the gate with it",
		Example: "shed(payment-db, before) < 0.1%"},
	{Name: "rateLimited", Kind: Share, Subject: Service, SubjectNeed: Required, Window: true,
		Meaning: "share of the attempts at the service that the rate limit of its gate refused",
		Example: "rateLimited(payment-db, before) < 0.1%"},
	{Name: "gateWait", Kind: Duration, Subject: Service, SubjectNeed: Required, Quantile: Optional, Window: true,
		Meaning: "time that attempts wait at the service's gate until it lets them in: the mean, or the quantile if one is " +
			"given",
		Example: "gateWait(payment-db, p99, after) < 100ms"},
	{Name: "load", Kind: Number, Subject: Service, SubjectNeed: Required, Window: true,
		Meaning: "most attempts at the service within any 1 s, as a multiple of the most in any 1 s before the first fault",
		Example: "load(payment-db, after) < 1.2"},
	{Name: "deadLetters", Kind: Count, Subject: Fleet, SubjectNeed: Optional, Window: true,
		Meaning: "messages that ended in the dead-letter topic, or were dropped after their last delivery",
		Example: "deadLetters(orders) < 1"},
	{Name: "deliveries", Kind: Number, Subject: Fleet, SubjectNeed: Optional, Window: true,
		Meaning: "deliveries per message that was written; 1 if nothing fails",
		Example: "deliveries(orders) < 2"},
	{Name: "lag", Kind: Count, Subject: Fleet, SubjectNeed: Optional, Window: true,
		Meaning: "most messages that were written and are neither handled nor dead letters",
		Example: "lag(orders) < 10,000"},
	{Name: "lateness", Kind: Duration, Subject: Fleet, SubjectNeed: Optional, Quantile: Required, Window: true,
		Meaning: "quantile of the time from when a message in a retry topic was due until it was delivered",
		Example: "lateness(p99, orders, before) < 250ms"},
	{Name: "drained", Kind: Duration, Subject: Fleet, SubjectNeed: Optional,
		Meaning: "time from the end of the last fault until the messages that were written before it are done, and no more " +
			"are left than before the first fault; infinite if that never happens",
		Example: "drained(orders) < 2m"},
	{Name: "hits", Kind: Share, Subject: Service, SubjectNeed: Required, Window: true,
		Meaning: "share of the calls that a cache answered which found there what they asked for",
		Example: "hits(cache, before) > 90%"},
	{Name: "replicas", Kind: Number, Subject: Service, SubjectNeed: Required, Window: true,
		Meaning: "replicas that requests were sent to: the mean over time",
		Example: "replicas(payment-service, after) > 9"},
	{Name: "restarts", Kind: Count, Subject: Service, SubjectNeed: Required, Window: true,
		Meaning: "times that a replica died of its load, or was restarted because it failed its liveness probe",
		Example: "restarts(payment-service, after) < 1"},
	{Name: "limit", Kind: Number, Subject: Service, SubjectNeed: Required, Window: true,
		Meaning: "attempts that the service's gates let in at once, all replicas together: the mean over time",
		Example: "limit(payment-db, after) > 10"},
}

// measure returns the measure of a name, nil when there is none.
func measure(name string) *Measure {
	for i := range measures {
		if measures[i].Name == name {
			return &measures[i]
		}
	}
	return nil
}
