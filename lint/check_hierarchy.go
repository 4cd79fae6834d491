package lint

import (
	"fmt"
	"math"
	"time"

	"github.com/abate-go/abate/topology"
)

// wanted is how long something may take, and why.
type wanted struct {
	time  time.Duration
	place Place // of the limit that has most part in it
	own   bool  // the service's own time is known
	calls bool  // it has calls whose limits are known
	layer bool  // a layer of the call itself limits it
}

// hierarchy is F203 and F207: callers that leave before those they call can have answered.
func (r *run) hierarchy() {
	r.inverted = map[int]bool{}
	needs := make([]wanted, len(r.g.services))
	order := r.g.byOrder()
	for i := len(order) - 1; i >= 0; i-- {
		needs[order[i]] = r.need(order[i], needs)
	}
	for c := range r.g.calls {
		e := &r.g.calls[c]
		inner := needs[e.to]
		for i := len(e.slots) - 1; i >= 0; i-- {
			next := wanted{}
			for _, l := range e.slots[i] {
				r.inversion(e, l, inner, needs[e.to])
				if w := through(l, inner); w.time >= next.time {
					next = w
				}
			}
			inner = next
		}
		r.equal(e, needs)
	}
}

// need is W(v) of a service: its own time and that of its calls, one order after the other, when they hang as long as
// their limits let them.
func (r *run) need(v int, needs []wanted) wanted {
	s := &r.g.services[v]
	w := wanted{time: max(s.OwnTime.Or(0), s.OwnTime99.Or(0)), own: !s.OwnTime.IsZero() || !s.OwnTime99.IsZero()}
	groups := map[int]time.Duration{}
	most := time.Duration(0)
	for _, c := range r.g.out[v] {
		e := &r.g.calls[c]
		if r.g.cycle[v] >= 0 && r.g.cycle[v] == r.g.cycle[e.to] {
			continue
		}
		inner := needs[e.to]
		for i := len(e.slots) - 1; i >= 0; i-- {
			next := wanted{}
			for _, l := range e.slots[i] {
				if one := through(l, inner); one.time >= next.time {
					next = one
				}
			}
			inner = next
		}
		w.calls = w.calls || inner.calls
		if inner.time > most {
			most, w.place = inner.time, inner.place
		}
		order := e.call.Order.Or(math.MinInt)
		groups[order] = max(groups[order], inner.time)
	}
	for _, d := range groups {
		w.time = later(w.time, d)
	}
	return w
}

// through is how long a call may take through a layer. Without a limit, a healthy callee is what it waits for.
func through(l *topology.Layer, inner wanted) wanted {
	if l.PerTry.IsUnknown() || l.Overall.IsUnknown() || l.PerTry.Or(0) == 0 && (l.Overall.Or(0) == 0 || l.StartsOnly) {
		return inner
	}
	d, ends := l.Longest(topology.Hang, topology.Safe)
	if !ends {
		return inner
	}
	at := place(l.PerTry, l)
	if l.PerTry.Or(0) == 0 {
		at = place(l.Overall, l)
	}
	return wanted{d, Place{at, fmt.Sprintf("%s waits up to %v", name(l), d)}, inner.own, true, true}
}

// inversion is F203 for one layer: the limit of its try against what the try may need. A service that goes on without
// its caller is an error whatever the layers between the two wait for.
func (r *run) inversion(e *edge, l *topology.Layer, inner, service wanted) {
	limit := l.PerTry
	if o := l.Overall.Or(0); !l.StartsOnly && (limit.Or(0) == 0 || o > 0 && o < limit.Or(0)) {
		limit = l.Overall
	}
	p := limit.Or(0)
	if p == 0 || !inner.calls || inner.time <= p {
		return
	}
	callee := &r.g.services[e.to]
	who := "the layer inside of it"
	goesOn := service.calls && service.time > p && !callee.Cancels.Or(true)
	last := !inner.layer || goesOn
	if last {
		who, inner = e.call.To, service
	}
	one := Finding{Rule: "F203", Severity: Warning, At: place(limit, l), Subject: subject(e, l, "limit below the need "+
		"of "+e.call.To),
		Effect: float64(inner.time) / float64(p), Message: fmt.Sprintf("%s leaves after %v, and %s may need %v with the "+
			"limits of its own calls: up to %.0f %% of a try is work for nobody", name(l), p, who, inner.time,
			100*(1-float64(p)/float64(inner.time))),
		Fix:     fmt.Sprintf("give a try of %s more than %v, or let %s give up earlier", name(l), inner.time, who),
		Related: []Place{inner.place}, Assumptions: assumptions(l, limit)}
	if last && !inner.own {
		one.Assumptions = append(one.Assumptions, "the own time of "+e.call.To+" is not known and counted as nothing")
	}
	if goesOn {
		one.Severity = Error
		copies := math.Ceil(float64(inner.time) / float64(p))
		if _, n := mostTries(l, topology.AllMethods, is(topology.Hang)); n > 1 {
			one.Message += fmt.Sprintf("; it does not stop then, so up to %s copies of one request are alive at once",
				number(min(float64(n), copies)))
		}
		r.inverted[e.to] = true
	}
	r.report(one)
}

// equal is F207: a caller has the same limit as the service that it calls.
func (r *run) equal(e *edge, needs []wanted) {
	if len(e.slots) == 0 {
		return
	}
	l := e.slots[len(e.slots)-1][0]
	p := l.PerTry
	if p.Or(0) == 0 {
		p = l.Overall
	}
	limit := p.Or(0)
	if limit == 0 || needs[e.to].time > limit || r.g.services[e.to].Proxy { // F203; a proxy only passes the answer on
		return
	}
	for _, c := range r.g.out[e.to] {
		for _, slot := range r.g.calls[c].slots {
			for _, m := range slot {
				inner := m.PerTry
				if inner.Or(0) == 0 {
					inner = m.Overall
				}
				if inner.Or(0) != limit || m == l {
					continue
				}
				one := Finding{Rule: "F207", At: place(p, l), Subject: subject(e, l, "same limit as "+r.g.calls[c].way()),
					Effect: 1,
					Message: fmt.Sprintf("the calls %s and %s have the same limit of %v: %s cannot answer before its caller leaves",
						e.way(),
						r.g.calls[c].way(), limit, e.call.To),
					Fix:         "give each layer less time than the one that calls it",
					Related:     []Place{{place(inner, m), r.g.calls[c].way()}},
					Assumptions: assumptions(l, p)}
				if p.Origin == topology.Default && inner.Origin == topology.Default {
					one.cause = p.Why + inner.Why + limit.String() // one default, at however many hops
				}
				r.report(one)
				return
			}
		}
	}
}
