package lint

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/topology"
)

// sameEdge is F103: several layers retry one call.
func (r *run) sameEdge() {
	e := r.amplified.tracker(assumed{methods: topology.AllMethods})
	e.track = func(int, float64, []Factor) {}
	for c := range r.g.calls {
		call := &r.g.calls[c]
		most, by, how := 1.0, []Factor(nil), topology.Refused
		for _, class := range r.amplified.of(&r.g.services[call.to]) {
			for _, m := range []topology.Methods{topology.Safe, topology.Unsafe} {
				e.a.methods = m
				s, factors := e.edge(c, failing(class[0]))
				var several []Factor
				for _, f := range factors {
					if f.Times > 1 && f.Layer.Kind != topology.Connection {
						several = append(several, f)
					}
				}
				if n, _ := s.total(); len(several) > 1 && n > most {
					most, by, how = n, several, class[0]
				}
			}
		}
		if len(by) > 0 {
			r.stacked(call, by, most, how)
		}
	}
}

func (r *run) stacked(e *edge, by []Factor, most float64, how topology.Outcome) {
	// The library knows which calls may be repeated; of the others the innermost knows least.
	spare := by[len(by)-1]
	if spare.Layer.Kind == topology.Client && by[0].Layer.Kind != topology.Client {
		spare = by[0]
	}
	rep, _ := mostTries(spare.Layer, topology.AllMethods, is(how))
	if rep == nil {
		rep, _ = mostTries(spare.Layer, topology.AllMethods, anything)
	}
	at, tries := spare.Layer.Hedge.Copies.At, spare.Layer.Hedge.Copies // a layer that repeats nothing makes copies
	if rep != nil {
		at, tries = where(rep, spare.Layer), rep.Tries
	}
	one := Finding{Rule: "F103", Severity: Warning, At: at, Subject: e.way() + " " + subject(e,
		spare.Layer, "tries"),
		Effect: most, Fix: switchOff(spare.Layer, e.call.To), Assumptions: assumptions(spare.Layer, tries)}
	if most > 4 {
		one.Severity = Error
	}
	var names []string
	for _, f := range by {
		names = append(names, fmt.Sprintf("%s (%s)", title(f.Layer), number(f.Times)))
		at := f.Layer.At
		if rep, _ := mostTries(f.Layer, topology.AllMethods, anything); rep != nil {
			at = where(rep, f.Layer)
			one.Assumptions = unique(append(one.Assumptions, assumptions(f.Layer, rep.Tries)...))
		}
		one.Related = append(one.Related, Place{at, fmt.Sprintf("%s tries %s", name(f.Layer), timesText(f.Times))})
	}
	one.Message = fmt.Sprintf("%d layers retry the call %s after %v, one inside the other: %s make %s", len(by), e.way(),
		how,
		strings.Join(names, " × "), upTo(most))
	r.report(one)
}

// collateralLimit is how often a healthy service may be called for one request because of another that fails.
const collateralLimit = 3

// collateral is F104: healthy services are called again with those that fail.
func (r *run) collateral() {
	for u := range r.g.services {
		if r.g.below[u] >= 0 || len(r.g.in[u]) == 0 || len(r.g.out[u]) < 2 || r.g.services[u].Proxy {
			continue
		}
		gives, known := answers(r.g.services[u].AnswersWith)
		if !known || len(gives) > 0 && gives[0] == fine || r.amplified.spent() > 2*r.o.Work {
			continue
		}
		if len(gives) == 0 { // the same as what failed, which may be anything
			for _, class := range r.amplified.classes {
				gives = append(gives, class[0])
			}
		}
		var worst RootBound
		var how topology.Outcome
		for _, o := range gives {
			for _, root := range r.amplified.roots(u, o, topology.Safe) {
				if root.Proved > worst.Proved {
					worst, how = root, o
				}
			}
		}
		r.repeatedWith(u, worst, how)
	}
}

func (r *run) repeatedWith(u int, worst RootBound, how topology.Outcome) {
	for _, c := range r.g.out[u] {
		healthy := &r.g.calls[c]
		per := math.Ceil(healthy.call.PerRequest.Or(1))
		if worst.Proved*per <= collateralLimit || worst.Proved <= 1 {
			continue
		}
		for _, d := range r.g.out[u] {
			failing := &r.g.calls[d]
			a, known := healthy.call.Order.Get()
			b, also := failing.call.Order.Get()
			if failing.to == healthy.to || known && also && a > b { // what comes after it is not called
				continue
			}
			one := Finding{Rule: "F104", At: r.g.services[u].At, Subject: "collateral of " + r.g.services[u].Name,
				Effect: worst.Proved * per, Message: fmt.Sprintf("while %s fails, one request %s calls %s, which is healthy, "+
					"%s, because %s is tried again as a whole when it answers %v", failing.call.To, worst.at(),
					healthy.call.To,
					manyTimes(worst.Proved*per), r.g.services[u].Name, how),
				Fix: fmt.Sprintf("retry the call of %s in %s, and not %s from above", failing.call.To, r.g.services[u].Name,
					r.g.services[u].Name),
				Related: []Place{{healthy.call.At, healthy.way()}, {failing.call.At, failing.way()}}}
			if !known || !also {
				one.Assumptions = []string{fmt.Sprintf("%s is called before or together with %s", healthy.call.To, failing.call.To)}
			}
			r.report(one)
			return
		}
	}
}

// capacity is F105: the load of an outage is more than a service can do.
func (r *run) capacity() {
	type load struct {
		rate, factor float64
		how          []topology.Outcome
	}
	worst := map[string]load{}
	for _, b := range r.amplified.Bounds {
		sum, factor := 0.0, 0.0
		for _, root := range b.Roots {
			if i, ok := r.g.index[root.Root]; ok {
				sum, factor = sum+root.Mean*r.g.services[i].Rate.Or(0), max(factor, root.Mean)
			}
		}
		if sum > worst[b.Service].rate {
			worst[b.Service] = load{sum, factor, b.Outcomes}
		}
	}
	for v := range r.g.services {
		s := &r.g.services[v]
		c, known := s.Capacity.Get()
		w := worst[s.Name]
		if !known || c <= 0 || w.rate <= c {
			continue
		}
		at := s.Capacity.At
		if at.IsZero() {
			at = s.At
		}
		r.report(Finding{Rule: "F105", At: at, Subject: "load of " + s.Name, Effect: w.rate / c,
			Message: fmt.Sprintf("while %s %s, %.0f attempts per second can reach it, %s times what arrives "+
				"outside of an outage, and it can do %.0f: it stays down after the fault is gone", s.Name, fails(w.how), w.rate,
				number(w.rate/max(r.g.rate[v], 1e-9)), c),
			Fix: "add a retry budget or fewer tries above it; play the outage with abate sim", Assumptions: rates(s)})
	}
}

func rates(s *topology.Service) []string {
	if s.Capacity.Origin == topology.Assumed {
		return []string{s.Capacity.Why}
	}
	return nil
}

// unlimited is F204: no limit of time on a call, nor on any call above it.
func (r *run) unlimited() {
	limited := make([]bool, len(r.g.services)) // every way to it has a limit
	for _, v := range r.g.byOrder() {
		limited[v] = len(r.g.in[v]) > 0
		for _, c := range r.g.in[v] {
			e := &r.g.calls[c]
			// Calls of a cycle, and what could not be read, count as limited: say nothing that is not certain.
			limited[v] = limited[v] && (bounded(e) || e.from >= 0 && (limited[e.from] || r.g.cycle[e.from] >= 0))
		}
	}
	for c := range r.g.calls {
		e := &r.g.calls[c]
		if bounded(e) || len(e.slots) == 0 || idle(e) || e.call.Detached ||
			e.from >= 0 && (limited[e.from] || r.g.cycle[e.from] >= 0) {
			continue
		}
		l := e.slots[0][slices.IndexFunc(e.slots[0], endless)]
		if l.Kind == topology.SidecarIn && e.from >= 0 && r.g.services[e.from].Proxy {
			continue // of the gateway nothing is known, such as that of an Ingress of a cloud
		}
		if l.Kind == topology.Connection || staysOpen(l) || connects(l) {
			continue
		}
		one := Finding{Rule: "F204", At: place(l.Overall, l), Subject: subject(e, l, "overall"),
			Effect: float64(len(e.call.Layers)),
			Message: fmt.Sprintf("nothing ends the call %s when %s hangs: no layer of it has a limit of time, nor has any "+
				"call above it",
				e.way(), e.call.To),
			Fix: "set a limit for the whole call, less than its callers wait", Assumptions: append(assumptions(l, l.Overall,
				l.PerTry), "no program on the way sets a limit of its own in code")}
		if l.Overall.Origin == topology.Written { // somebody decided on no limit, and may have had a stream in mind
			one.Severity = Note
		}
		if one.cause = words(e, l, &one); l.Kind == topology.Gateway { // one program leaves it out, for each of its routes
			one.cause += fmt.Sprint(e.from, l.Overall.Why)
		}
		r.report(one)
	}
}

// staysOpen reports whether a layer is for connections that stay open, and somebody has set their limit.
func staysOpen(l *topology.Layer) bool {
	chosen := func(v topology.Value[time.Duration]) bool {
		return v.Origin == topology.Written || v.Origin == topology.Inherited
	}
	return strings.Contains(strings.ToLower(l.Match.Other), "upgrade") ||
		l.Upgrades.Or(false) && (chosen(l.PerTry) || chosen(l.Overall))
}

// connects reports that a layer only opens connections, whose lives have no limit: a proxy of TCP. That of nginx has
// one, for how long a connection may be silent, which is none for a request.
func connects(l *topology.Layer) bool {
	return (l.Overall.IsZero() && l.PerTry.IsZero() || l.StartsOnly && l.Speaks.IsZero()) &&
		len(l.Repeats) > 0 &&
		!slices.ContainsFunc(l.Repeats, func(r topology.Repeat) bool { return slices.ContainsFunc(r.On, processed) })
}

// bounded reports whether a call certainly ends, or nobody can say.
func bounded(e *edge) bool {
	return slices.ContainsFunc(e.slots, func(slot []*topology.Layer) bool { return !slices.ContainsFunc(slot, endless) })
}

// endless reports whether it is known of a layer that it ends no call.
func endless(l *topology.Layer) bool {
	return !(l.Overall.IsUnknown() || l.PerTry.IsUnknown() || l.PerTry.Or(0) > 0 || l.Overall.Or(0) > 0 && !l.StartsOnly)
}
