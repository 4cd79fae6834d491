package abateprom

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/budget"
)

// What the rules look at in all instances every few seconds is shown while something happens, and not otherwise: a
// series that always says 0 costs Prometheus as much as one that says something. The same numbers are always there
// under their own names, for dashboards.
var (
	noticedTotalDesc = prometheus.NewDesc("abate_noticed_total",
		"For the rules of alerts. What of names a counter of abateprom: it is shown while the instance sees extra attempts, "+
			"failed or refused calls, or sheds, and for ten minutes afterwards. On dashboards use the counters themselves.",
		withService([]string{"of"}), nil)
	policyNoticedDesc = prometheus.NewDesc("abate_noticed_policy",
		"For the rules of alerts. Where they begin by the policy in force: what of names is shown while abate_noticed_total "+
			"shows extra attempts. On dashboards use abate_policy_.", withService([]string{"of"}), nil)
	circuitNoticedDesc = gauge("abate_noticed_circuit_open",
		"For the rules of alerts. abate_circuit_breaker_open while that is 1, and not shown otherwise. On dashboards use "+
			"abate_circuit_breaker_open.")
	overrideNoticedDesc = prometheus.NewDesc("abate_noticed_override",
		"For the rules of alerts. abate_override while that is 1, and not shown otherwise. On dashboards use abate_override.",
		withService([]string{"override"}), nil)
)

// noticedFor is for how long a counter is shown after it has grown. It is longer than what the rules look back, so that
// they see trouble that comes and goes as one.
const noticedFor = 10 * time.Minute

// noticed is one counter, as the rules read it.
type noticed struct {
	of string
	prometheus.Counter
}

// watch is a group of counters that are shown together: what the rules compare, they need of the same instance.
type watch struct {
	shown []noticed
	mu    sync.Mutex
	grown grown
	tells []prometheus.Counter // those whose growth shows the group
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

// collect shows the group if it has grown, and reports whether it has.
func (w *watch) collect(to chan<- prometheus.Metric, service string, now time.Time) bool {
	sum := 0.0
	for _, c := range w.tells {
		sum += read(c)
	}
	w.mu.Lock()
	show := w.grown.recently(sum, w.least, now)
	w.mu.Unlock()
	if show {
		for _, c := range w.shown {
			to <- prometheus.MustNewConstMetric(noticedTotalDesc, prometheus.CounterValue, read(c), service, c.of)
		}
	}
	return show
}

// read reads a counter.
func read(c prometheus.Counter) float64 {
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		return 0
	}
	return m.GetCounter().GetValue()
}

// manyExtra is how many extra attempts a minute are never told as those of an instance in a storm of its own: half of
// the smallest bank that the rules forgive, so that whatever they do not forgive is told.
const manyExtra = budget.LeastBank / 2

// watches are the groups of a guard. A call may end well by its fallback although the circuit refused it: refusals show
// the calls too. Whether an instance is in a storm of its own is asked only of those with many extra attempts: a few
// are everywhere.
func (o *observer) watches() []*watch {
	exhausted, limited := o.refusals[reasonOf(abate.ErrBudgetExhausted)], o.refusals[reasonOf(abate.ErrRateLimited)]
	return []*watch{
		{tells: []prometheus.Counter{o.extra}, shown: []noticed{
			{"extra_attempts", o.extra}, {"retries", o.retries}}},
		{tells: []prometheus.Counter{o.extra}, least: manyExtra, shown: []noticed{
			{"first_attempts", o.first}, {"many_extra_attempts", o.extra}}},
		{tells: append([]prometheus.Counter{o.failed}, o.refusals[:]...), shown: []noticed{
			{"calls", o.endedAll}, {"failed_calls", o.failed}}},
		{tells: []prometheus.Counter{exhausted}, shown: []noticed{{"budget_exhausted", exhausted}}},
		{tells: []prometheus.Counter{limited}, shown: []noticed{{"rate_limited", limited}}},
	}
}

// watches are the groups of a gate.
func (o *gateObserver) watches() []*watch {
	return []*watch{{tells: []prometheus.Counter{o.turnedAway}, shown: []noticed{
		{"shed", o.turnedAway}, {"critical_arrivals", o.critical}, {"critical_shed", o.criticalShed}}}}
}

// collectNoticed shows what there is to notice of guards and gates, and of what has extra attempts where alerts begin.
func (s scrape) collectNoticed(to chan<- prometheus.Metric, now time.Time) {
	type one struct {
		service string
		watches []*watch
		guard   *abate.Guard // nil if it is a gate, or nobody has added the guard
	}
	var all []one
	s.mu.RLock()
	for service, o := range s.observers {
		all = append(all, one{service, o.noticed, s.guards[service]})
	}
	for service, o := range s.gateObservers {
		all = append(all, one{service, o.noticed, nil})
	}
	s.mu.RUnlock()
	for _, o := range all {
		for _, w := range o.watches {
			if w.collect(to, o.service, now) && w.shown[0].of == "extra_attempts" {
				noticePolicy(to, o.service, o.guard)
			}
		}
	}
}

// noticePolicy shows what extra attempts are compared with. A guard that nobody has added is measured by the default
// policy, but for what that says of a service that fails: its own may have no budget. Without a budget it is the ratio
// of the built-in one.
func noticePolicy(to chan<- prometheus.Metric, service string, g *abate.Guard) {
	p := usual
	if g != nil {
		p = g.Describe()
	}
	allowance, limited := p.Allowance()
	if g == nil || !limited {
		built, _ := usual.Allowance()
		allowance = budget.Allowance{Ratio: built.Ratio, Reserve: built.Reserve}
	}
	limits := allowance.Limits(p.MaxExtraAttempts())
	show := func(of string, v float64) {
		to <- prometheus.MustNewConstMetric(policyNoticedDesc, prometheus.GaugeValue, v, service, of)
	}
	show("bank", limits.Bank)
	show("allowed_retries", limits.Retries)
	if limits.Storm > 0 {
		show("allowed_extra_attempts", limits.Extra)
		show("storm", limits.Storm)
	}
	if limits.PerSecond > 0 {
		show("earned_per_second", limits.PerSecond)
	}
}

// usual is the default policy, with every default written out.
var usual = func() *abate.Policy {
	p := abate.DefaultPolicy().WithDefaults()
	return &p
}()

// noticeState shows what is not as it should be of a circuit.
func noticeState(to chan<- prometheus.Metric, service string, refusing float64, override abate.Override) {
	if refusing != 0 {
		to <- value(circuitNoticedDesc, service, refusing)
	}
	if slices.Contains(overrides[:], override) {
		to <- prometheus.MustNewConstMetric(overrideNoticedDesc, prometheus.GaugeValue, 1, service, string(override))
	}
}
