package metrics

import (
	"context"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/series"
	"github.com/abate-go/abate/policy/shed"
)

// AdjustProtection makes the protection of a service report to the metrics what its gate does: it is Adjust for gates,
// and fits the Protection of policyfile.Hooks.
func (m *Metrics) AdjustProtection(name string, p *inbound.Protection) {
	o := m.gateObserver(label(name))
	p.Observer = inbound.GateObservers(o, p.Observer)
}

// AddGate shows the state of these gates at every scrape: concurrency, queue, retries among the arriving requests and
// buckets. It is Add for gates.
func (m *Metrics) AddGate(gates ...*inbound.Gate) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range gates {
		m.gates[label(g.Name())] = g
	}
}

// gateObserver returns the one of a service, made when it is needed first.
func (m *Metrics) gateObserver(service string) *gateObserver {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.gateObservers[service]
	if o == nil {
		o = m.arrivals.observer(service)
		m.gateObservers[service] = o
	}
	return o
}

// gateObserver counts the events of one gate, by handles that are resolved when it is made.
type gateObserver struct {
	allowed, rejected *series.Counter
	overLimit         *series.Counter // that a shadow let pass
	admitted          [len(shed.Priorities)]*series.Counter
	refused           [len(refusals)]*series.Counter
	shed              [len(shed.Reasons)][len(shed.Priorities)]*series.Counter
	shadow            [len(shed.Reasons)]*series.Counter
	done              [len(classes)]*series.Counter
	delay, duration   *series.Histogram
	keys              [len(keyResults)]*series.Counter

	arrived, turnedAway, critical, criticalShed *series.Counter

	noticed []*watch
}

// refusals are why a gate said no, with their labels. The last is for what this list does not know.
var refusals = [...]struct {
	err  error
	name string
}{
	{abate.ErrRateLimited, "rate_limited"},
	{abate.ErrOverloaded, "overloaded"},
	{abate.ErrDeadline, "deadline"},
	{context.Canceled, "caller_left"},
	{nil, other},
}

// keyResults are what becomes of an idempotency key. The last is for what this list does not know.
var keyResults = [...]string{
	"run", "replay", "running", "mismatch", "taken-over", "missing", "full", "away", "unrecorded", "lost", other,
}

// ObserveGate counts one event.
func (o *gateObserver) ObserveGate(e inbound.GateEvent) {
	switch e.Kind {
	case inbound.LimitDecided:
		o.limited(&e)
	case inbound.RequestAdmitted:
		o.admitted[level(e.Priority)].Inc()
		o.arrived.Inc()
		if e.Priority >= shed.Critical {
			o.critical.Inc()
		}
		o.delay.Observe(e.Delay.Seconds())
	case inbound.RequestRefused:
		o.refuse(&e)
	case inbound.RequestDone:
		o.done[e.Class&3].Inc()
		o.duration.Observe(e.Latency.Seconds())
	case inbound.KeyDecided:
		o.keys[keyResult(e.Detail)].Inc()
	}
}

func (o *gateObserver) limited(e *inbound.GateEvent) {
	if e.Over && !e.Shadow {
		o.rejected.Inc()
		return
	}
	o.allowed.Inc()
	if e.Over {
		o.overLimit.Inc()
	}
}

func (o *gateObserver) refuse(e *inbound.GateEvent) {
	why := int(e.Shed) - 1
	known := why >= 0 && why < len(o.shadow)
	if e.Shadow {
		if known {
			o.shadow[why].Inc()
		}
		return
	}
	o.arrived.Inc()
	if known {
		o.shed[why][level(e.Priority)].Inc()
		o.turnedAway.Inc()
		if e.Priority >= shed.Critical {
			o.critical.Inc()
			o.criticalShed.Inc()
		}
	}
	last := len(refusals) - 1
	for i := range refusals[:last] {
		if refusals[i].err == e.Reason {
			last = i
			break
		}
	}
	o.refused[last].Inc()
}

// level is the index of a priority among all of them.
func level(p shed.Priority) int {
	return int(min(max(p, shed.Sheddable), shed.CriticalPlus) - shed.Sheddable)
}

func keyResult(detail string) int {
	for i, name := range keyResults {
		if name == detail {
			return i
		}
	}
	return len(keyResults) - 1
}
