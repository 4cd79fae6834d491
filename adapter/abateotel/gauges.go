package abateotel

import (
	"context"
	"errors"
	"maps"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/abate-go/abate"
)

// gauged is a guard whose state is shown, with the attributes of its series.
type gauged struct {
	guard  *abate.Guard
	plain  metric.MeasurementOption
	states [len(states)]metric.MeasurementOption
}

// Add shows the state of these guards whenever metrics are collected: breaker, retry budget and bulkhead. Adding a
// guard twice is fine; of two guards with the same name the one added last is shown. A guard that is added is never
// forgotten.
func (t *Telemetry) Add(guards ...*abate.Guard) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, g := range guards {
		name := guardKey.String(g.Name())
		s := gauged{guard: g, plain: metric.WithAttributeSet(attribute.NewSet(name))}
		for _, state := range states {
			s.states[state&3] = metric.WithAttributeSet(attribute.NewSet(name, stateName(state)))
		}
		t.guards[g.Name()] = s
	}
}

// gauges are read when metrics are collected, so that they cannot be stale.
type gauges struct {
	state, calls, attempts, running, queued, limit metric.Int64ObservableUpDownCounter
	balance, wait                                  metric.Float64ObservableGauge
	all                                            []metric.Observable
}

// make makes all of them. The error names those that could not be made.
func (g *gauges) make(m metric.Meter) error {
	var failed []error
	sum := func(name, unit, description string) metric.Int64ObservableUpDownCounter {
		c, err := m.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		g.all, failed = append(g.all, c), append(failed, err)
		return c
	}
	gauge := func(name, unit, description string) metric.Float64ObservableGauge {
		c, err := m.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
		g.all, failed = append(g.all, c), append(failed, err)
		return c
	}
	g.calls = sum("abate.client.active_calls", "{call}",
		"Calls that have begun and not ended, waits for a permit, a token or a retry included.")
	g.attempts = sum("abate.client.active_attempts", "{attempt}",
		"Attempts that are with the service now, hedges included.")
	g.state = sum("abate.circuit_breaker.state", "1", "1 for the state that the circuit breaker is in, 0 for the others.")
	g.running = sum("abate.bulkhead.running", "{call}",
		"Calls that hold a permit of the bulkhead, retries and their waits included.")
	g.queued = sum("abate.bulkhead.queued", "{call}", "Calls that wait for a permit of the bulkhead.")
	g.limit = sum("abate.bulkhead.limit", "{call}", "Permits that the bulkhead has, as the policy says.")
	g.balance = gauge("abate.retry_budget.balance", "{attempt}", "Retries and hedges that could be sent now.")
	g.wait = gauge("abate.pacing.wait", "s", "How long an attempt that asked now would wait for its token.")
	return errors.Join(failed...)
}

// collect reads all guards. The lock is held for no longer than copying takes: a slow exporter must not hold up a
// reload.
func (t *Telemetry) collect(_ context.Context, to metric.Observer) error {
	t.mu.RLock()
	guards, observers := maps.Clone(t.guards), maps.Clone(t.observers)
	t.mu.RUnlock()
	for _, o := range observers {
		to.ObserveInt64(t.gauges.calls, o.calls.Load(), o.now)
		to.ObserveInt64(t.gauges.attempts, o.inAir.Load(), o.now)
	}
	for _, g := range guards {
		t.gauges.read(&g, to)
	}
	return nil
}

// read reads one guard. What its policy has switched off is left out: an empty budget would raise an alert.
func (g *gauges) read(of *gauged, to metric.Observer) {
	policy, now := of.guard.Describe(), of.guard.State()
	// somebody may force open what the policy has not
	if policy.CircuitBreaker.Enabled() || now.Override == abate.OverrideForcedOpen {
		for _, s := range states {
			is := int64(0)
			if s == now.Breaker.State {
				is = 1
			}
			to.ObserveInt64(g.state, is, of.states[s&3])
		}
	}
	if policy.RetryBudget.Enabled() {
		to.ObserveFloat64(g.balance, now.Budget, of.plain)
	}
	if policy.Bulkhead.Enabled() {
		to.ObserveInt64(g.running, int64(now.Bulkhead.InFlight), of.plain)
		to.ObserveInt64(g.queued, int64(now.Bulkhead.Queued), of.plain)
		to.ObserveInt64(g.limit, int64(now.Bulkhead.Limit), of.plain)
	}
	if policy.Pacing.Enabled() {
		to.ObserveFloat64(g.wait, now.Pacing.Wait.Seconds(), of.plain)
	}
}
