package gatewayapi

import (
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// What the Gateway API says of a retry budget that leaves values out.
const (
	budgetRatio     = 0.2
	budgetWindow    = 10 * time.Second
	budgetPerSecond = 10.0
	specification   = "the Gateway API"
)

// budgetOf adds the budget that an XBackendTrafficPolicy has for a service.
func (r *reader) budgetOf(l *topology.Layer, namespace, service string) {
	for _, b := range r.budgets {
		constraint := b.Spec.Get("retryConstraint")
		if b.Namespace != namespace && b.Namespace != "" && namespace != "" || !constraint.Written() || !isFor(b, service) {
			continue
		}
		budget := r.budget(constraint)
		if l.Product == istio { // which makes Envoy's budget of it, counted over the window
			budget = topology.Budget{Share: budget.Ratio, Window: budget.Window}
		}
		l.Budget = budget
		return
	}
}

func (r *reader) budget(constraint source.Node) topology.Budget {
	n := constraint.Get("budget")
	b := topology.Budget{Ratio: read(r, n.Get("percent"), hundredth), Window: read(r, n.Get("interval"), source.Duration)}
	if b.Ratio.IsZero() {
		b.Ratio = topology.DefaultOf(budgetRatio, specification, constraint.At())
	}
	if b.Window.IsZero() {
		b.Window = topology.DefaultOf(budgetWindow, specification, constraint.At())
	}
	least := constraint.Get("minRetryRate")
	if !least.Written() {
		b.PerSecond = topology.DefaultOf(budgetPerSecond, specification, constraint.At())
		return b
	}
	b.PerSecond = read(r, least.Get("count"), source.Float)
	every := read(r, least.Get("interval"), source.Duration)
	if d := every.Or(0); b.PerSecond.Origin == topology.Written && d > 0 {
		b.PerSecond.V /= d.Seconds()
	}
	return b
}

func isFor(b source.Resource, service string) bool {
	for _, ref := range b.Spec.Get("targetRefs").Items() {
		if ref.Get("name").Text() == service && (ref.Get("kind").Text() == "Service" || !ref.Get("kind").Exists()) {
			return true
		}
	}
	return false
}
