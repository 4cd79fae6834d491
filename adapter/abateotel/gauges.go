package abateotel

import (
	"context"
	"errors"
	"maps"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/registry"
)

// gauged is a guard whose state is shown, with the attributes of its series.
type gauged struct {
	guard  *abate.Guard
	plain  metric.MeasurementOption
	states [len(states)]metric.MeasurementOption
}

// Add shows the state of these guards whenever metrics are collected: breaker, and the other policies that are
// on. Adding a guard twice is fine; of two guards with the same name the one added last is shown. A guard that is added
// is never forgotten.
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
	state, calls, attempts metric.Int64ObservableUpDownCounter
	policies               []policyGauge
}

// policyGauge is a gauge of a policy of guards: one of the two instruments.
type policyGauge struct {
	enabled func(*abate.Policy) bool
	read    func(*abate.Policy, *abate.State) float64
	adds    metric.Int64ObservableUpDownCounter
	single  metric.Float64ObservableGauge
}

// make makes all of them. The error names those that could not be made.
func (g *gauges) make(m metric.Meter) error {
	var failed []error
	sum := func(name, unit, description string) metric.Int64ObservableUpDownCounter {
		c, err := m.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		failed = append(failed, err)
		return c
	}
	gauge := func(name, unit, description string) metric.Float64ObservableGauge {
		c, err := m.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
		failed = append(failed, err)
		return c
	}
	g.calls = sum("abate.client.active_calls", "{call}",
		"Calls that have begun and not ended, waits for a permit, a token or a retry included.")
	g.attempts = sum("abate.client.active_attempts", "{attempt}",
		"Attempts that are with the service now, hedges included.")
	g.state = sum("abate.circuit_breaker.state", "1", "1 for the state that the circuit breaker is in, 0 for the others.")
	for _, p := range registry.Guard {
		for _, of := range p.Gauges {
			made := policyGauge{enabled: p.Enabled, read: of.Read}
			switch i := of.Instrument; {
			case i.Name == "":
				continue
			case i.Adds:
				made.adds = sum(i.Name, i.Unit, i.Description)
			default:
				made.single = gauge(i.Name, i.Unit, i.Description)
			}
			g.policies = append(g.policies, made)
		}
	}
	return errors.Join(failed...)
}

// all lists them for the registration of a callback.
func (g *gauges) all() []metric.Observable {
	all := []metric.Observable{g.state, g.calls, g.attempts}
	for _, p := range g.policies {
		if p.adds != nil {
			all = append(all, p.adds)
		} else {
			all = append(all, p.single)
		}
	}
	return all
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
	for i := range g.policies {
		switch p := &g.policies[i]; {
		case !p.enabled(policy):
		case p.adds != nil:
			to.ObserveInt64(p.adds, int64(p.read(policy, &now)), of.plain)
		default:
			to.ObserveFloat64(p.single, p.read(policy, &now), of.plain)
		}
	}
}
