package metrics

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/series"
	"github.com/abate-go/abate/policy/budget"
)

// What the rules look at in all instances every few seconds is shown while something happens, and not otherwise: a
// series that always says 0 costs Prometheus as much as one that says something. The same numbers are always there
// under their own names, for dashboards.
var (
	noticedTotalDesc = series.NewDesc("abate_noticed_total",
		"For the rules of alerts. What of names a counter of abateprom: it is shown while the instance sees extra attempts, "+
			"failed or refused calls, or sheds, and for ten minutes afterwards. On dashboards use the counters themselves.",
		withService([]string{"of"})...)
	policyNoticedDesc = series.NewDesc("abate_noticed_policy",
		"For the rules of alerts. Where they begin by the policy in force: what of names is shown while there is something "+
			"to compare with it. On dashboards use abate_policy_.", withService([]string{"of"})...)
	arrivingNoticedDesc = gauge("abate_noticed_arriving_retry_ratio",
		"For the rules of alerts. abate_arriving_retry_ratio while retries arrive, and not shown otherwise. On dashboards "+
			"use abate_arriving_retry_ratio.")
	circuitNoticedDesc = gauge("abate_noticed_circuit_open",
		"For the rules of alerts. abate_circuit_breaker_open while that is 1, and not shown otherwise. On dashboards use "+
			"abate_circuit_breaker_open.")
	overrideNoticedDesc = series.NewDesc("abate_noticed_override",
		"For the rules of alerts. abate_override while that is 1, and not shown otherwise. On dashboards use abate_override.",
		withService([]string{"override"})...)
)

// noticedFor is for how long a counter is shown after it has grown. It is longer than what the rules look back, so that
// they see trouble that comes and goes as one.
const noticedFor = 10 * time.Minute

// noticed is one counter, as the rules read it.
type noticed struct {
	of string
	*series.Counter
}

// watch is a group of counters that are shown together: what the rules compare, they need of the same instance.
type watch struct {
	shown []noticed
	mu    sync.Mutex
	grown grown
	tells []*series.Counter // those whose growth shows the group
	// least is how much growth is never worth telling, a minute; twice as much always is. Zero: any is.
	least float64
}

// grown remembers when counters have grown, as far as somebody looked. The zero value has seen them at 0.
type grown struct {
	last, level float64
	at, until   time.Time
}

// recently reports whether counters that come to sum have grown enough within the last ten minutes, as seen now or
// before. The level is what they have grown by, less least a minute: what grows by twice that in some minute comes to
// least, however often somebody looks. It never is more than that twice, so that a storm is not remembered for hours.
func (g *grown) recently(sum, least float64, now time.Time) bool {
	if !g.at.IsZero() {
		g.level = max(g.level-least*now.Sub(g.at).Minutes(), 0)
	}
	by := sum - g.last
	g.level = min(g.level+by, 2*least)
	if by != 0 && g.level >= least {
		g.until = now.Add(noticedFor)
	}
	g.last, g.at = sum, now
	return now.Before(g.until)
}

// collect shows the group if it has grown, or has to be shown for another reason, and reports whether it has grown.
func (w *watch) collect(send func(series.Sample), service string, now time.Time, also bool) bool {
	sum := 0.0
	for _, c := range w.tells {
		sum += c.Value()
	}
	w.mu.Lock()
	show := w.grown.recently(sum, w.least, now)
	w.mu.Unlock()
	if show || also {
		for _, c := range w.shown {
			noticeTotal(send, service, c.of, c.Counter)
		}
	}
	return show
}

// noticeTotal shows a counter.
func noticeTotal(send func(series.Sample), service, of string, c *series.Counter) {
	send(series.Count(noticedTotalDesc, c.Value(), service, of))
}

// manyExtra is how many extra attempts a minute are never told as those of an instance in a storm of its own: half of
// the smallest bank that the rules forgive, so that whatever they do not forgive is told.
const manyExtra = budget.LeastBank / 2

// manyFailed is how many failed calls a minute are never told as those of an instance of which most calls fail: the
// rules ask it of no instance with fewer than twice as many.
const manyFailed = 2.5

// manyFailedCalls is the group that an open circuit shows too: the rules need to know whether it is called.
const manyFailedCalls = "many_failed_calls"

// watches are the groups of a guard. A call may end well by its fallback although the circuit refused it: refusals show
// the calls too. Whether an instance is in a storm of its own, or most of its calls fail, is asked only of those with
// many extra attempts or failed calls: a few are everywhere.
func (o *observer) watches() []*watch {
	exhausted, limited := o.refusals[reasonOf(abate.ErrBudgetExhausted)], o.refusals[reasonOf(abate.ErrRateLimited)]
	failures := append([]*series.Counter{o.failed}, o.refusals[:]...)
	return []*watch{
		{tells: []*series.Counter{o.extra}, shown: []noticed{{"extra_attempts", o.extra}}},
		{tells: []*series.Counter{o.unbidden}, shown: []noticed{{"extra_but_retries", o.unbidden}}},
		{tells: []*series.Counter{o.extra}, least: manyExtra, shown: []noticed{
			{"first_attempts", o.first}, {"many_extra_attempts", o.extra}}},
		{tells: failures, shown: []noticed{{"failed_calls", o.failed}, {"unsent_calls", o.unsent}}},
		{tells: failures, least: manyFailed, shown: []noticed{
			{manyFailedCalls, o.failed}, {"calls", o.endedAll}}},
		{tells: []*series.Counter{exhausted}, shown: []noticed{{"budget_exhausted", exhausted}}},
		{tells: []*series.Counter{limited}, shown: []noticed{{"rate_limited", limited}}},
	}
}

// watches are the groups of a gate.
func (o *gateObserver) watches() []*watch {
	return []*watch{{tells: []*series.Counter{o.turnedAway}, shown: []noticed{
		{"shed", o.turnedAway}, {"critical_arrivals", o.critical}, {"critical_shed", o.criticalShed}}}}
}

// collectNoticed shows what there is to notice of guards and gates.
func (m *Metrics) collectNoticed(send func(series.Sample), now time.Time) {
	m.mu.RLock()
	observers, guards := maps.Clone(m.observers), maps.Clone(m.guards)
	gateObservers, gates := maps.Clone(m.gateObservers), maps.Clone(m.gates)
	m.mu.RUnlock()
	for service, o := range observers {
		noticeGuard(send, service, o, guards[service], now)
	}
	for service, o := range gateObservers {
		for _, w := range o.noticed {
			w.collect(send, service, now, false)
		}
		if g := gates[service]; g != nil {
			noticeArriving(send, service, o, g)
		}
	}
}

// noticeGuard shows what there is to notice of a service, with where alerts begin by its policy. g is nil if nobody has
// added the guard.
func noticeGuard(send func(series.Sample), service string, o *observer, g *abate.Guard, now time.Time) {
	open := false
	if g != nil {
		p, state := g.Describe(), g.State()
		if open = refusing(p, &state); open {
			wait, _ := longestWait(p)
			showLimit(send, service, "circuit_wait", wait)
		}
	}
	for _, w := range o.noticed {
		of := w.shown[0].of
		if w.collect(send, service, now, open && of == manyFailedCalls) && of == "extra_attempts" {
			limits := limitsOf(g)
			if o.over.recently(o.first.Value(), o.extra.Value(), o.unbidden.Value(), &limits, now) {
				noticePolicy(send, service, &limits)
			}
		}
	}
}

// overdone remembers when extra attempts were more than what the first of the alerts forgives. What is so of a program
// within some time was so of one of its instances between two scrapes of that time: the share of all is no more than
// the largest. So where no instance shows where alerts begin, none begins. The zero value has seen nothing.
type overdone struct {
	mu                     sync.Mutex
	first, extra, unbidden float64
	until                  time.Time
}

// recently reports whether counters have grown so within the last ten minutes, as seen now or before.
func (o *overdone) recently(first, extra, unbidden float64, l *budget.Limits, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	sent, more, others := first-o.first, extra-o.extra, unbidden-o.unbidden
	o.first, o.extra, o.unbidden = first, extra, unbidden
	if more > 0 && (more >= l.Extra*sent || more-others >= l.Retries/2*(sent+more)) {
		o.until = now.Add(noticedFor)
	}
	return now.Before(o.until)
}

// showLimit shows where an alert begins.
func showLimit(send func(series.Sample), service, of string, v float64) {
	send(series.Gauge(policyNoticedDesc, v, service, of))
}

// limitsOf is what extra attempts are compared with. A guard that nobody has added is measured by the default policy,
// but for what that says of a service that fails: its own may have no budget. Without a budget it is the ratio of the
// built-in one.
func limitsOf(g *abate.Guard) budget.Limits {
	p := usual
	if g != nil {
		p = g.Describe()
	}
	allowance, limited := p.Allowance()
	if g == nil || !limited {
		built, _ := usual.Allowance()
		allowance = budget.Allowance{Ratio: built.Ratio, Reserve: built.Reserve}
	}
	return allowance.Limits(p.MaxExtraAttempts())
}

// noticePolicy shows what extra attempts are compared with.
func noticePolicy(send func(series.Sample), service string, l *budget.Limits) {
	showLimit(send, service, "bank", l.Bank)
	showLimit(send, service, "allowed_retries", l.Retries)
	if l.Storm > 0 {
		showLimit(send, service, "allowed_extra_attempts", l.Extra)
		showLimit(send, service, "storm", l.Storm)
	}
	if l.PerSecond > 0 {
		showLimit(send, service, "earned_per_second", l.PerSecond)
	}
}

// usual is the default policy, with every default written out.
var usual = func() *abate.Policy {
	p := abate.DefaultPolicy().WithDefaults()
	return &p
}()

// noticeState shows what is not as it should be of a circuit.
func noticeState(send func(series.Sample), service string, open bool, override abate.Override) {
	if open {
		send(value(circuitNoticedDesc, service, 1))
	}
	if slices.Contains(overrides[:], override) {
		send(series.Gauge(overrideNoticedDesc, 1, service, string(override)))
	}
}
