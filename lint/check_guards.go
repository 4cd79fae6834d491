package lint

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/topology"
)

// manyConcurrent is a static cap on concurrent retries that bounds nothing in practice: Envoy Gateway sets it.
const manyConcurrent = 1024

// budget is F403 to F405: what bounds the retries of all calls together. What never reached the callee loads nobody
// when it is repeated, so it does not count; nor do a default of a mesh, or one more try, that
// besides repeat two codes of gRPC only, by which a service mostly says that it has done nothing.
func (r *run) budget(e *edge, l *topology.Layer) {
	b := &l.Budget
	by, n := mostTries(l, topology.AllMethods, processed)
	if by == nil {
		return
	}
	rated := !b.Ratio.IsZero() || !b.Share.IsZero() || !b.Tokens.IsZero()
	m, capped := b.Concurrent.Get()
	chosen, _ := mostTries(l, topology.AllMethods, executed)
	if capped && m >= manyConcurrent && !rated && (chosen != nil || by.Tries.Origin != topology.Default && n > 2) {
		r.report(Finding{Rule: "F403", At: place(b.Concurrent, l), Subject: subject(e, l, "budget"), Effect: float64(n),
			Message: fmt.Sprintf("nothing bounds the retries of %s together: it has no retry budget, and its cap on "+
				"concurrent retries is %s", name(l), concurrent(m)),
			Fix: "set a retry budget of 10 to 20 %, or a low cap", Assumptions: assumptions(l, b.Concurrent)})
	}
	r.generous(e, l)
	rate, instances := r.g.rateOf(e), r.g.instances(e)
	own, timed := r.g.services[e.to].OwnTime.Get()
	if capped && m < manyConcurrent && !rated && rate > 0 && !math.IsInf(instances, 1) && timed {
		_, wait := l.Backoff.Wait(1)
		if each := wait/2 + own; each > 0 {
			extra := float64(m) / each.Seconds() * instances
			if extra > rate/2 {
				r.report(Finding{Rule: "F404", At: place(b.Concurrent, l), Subject: subject(e, l, "concurrent retries"),
					Effect: extra / rate,
					Message: fmt.Sprintf("%d concurrent retries in each of %s instances are up to %.0f retries per second, because "+
						"one takes about %v; there are %.0f calls per second", m, number(instances), extra, each, rate),
					Fix:         "bound retries by a share of the calls, not by how many run at once",
					Assumptions: assumptions(l, b.Concurrent, r.g.services[e.to].OwnTime)})
			}
		}
	}
	capacity, known := r.g.services[e.to].Capacity.Get()
	if floor := b.PerSecond.Or(0); known && capacity > 0 && !math.IsInf(instances, 1) && floor*instances > capacity/10 {
		r.report(Finding{Rule: "F405", At: place(b.PerSecond, l), Subject: subject(e, l, "budget floor"),
			Effect: floor * instances / capacity,
			Message: fmt.Sprintf("the budget of %s lets each of %s instances send %s retries per second whatever happens, "+
				"together %s; %s can do %s", name(l), number(instances), number(floor), number(floor*instances), e.call.To,
				number(capacity)),
			Fix:         fmt.Sprintf("lower it to %.2g per second for each instance", capacity/20/instances),
			Assumptions: assumptions(l, b.PerSecond, r.g.services[e.to].Capacity)})
	}
}

// generous is F403 of a budget that allows more retries than there are calls: in an outage it holds nothing back.
func (r *run) generous(e *edge, l *topology.Layer) {
	b := l.Budget.Ratio
	if b.Or(0) <= 1 {
		return
	}
	r.report(Finding{Rule: "F403", At: place(b, l), Subject: subject(e, l, "budget"), Effect: b.V,
		Message: fmt.Sprintf("the retry budget of %s is %.0f %% of the calls, so it bounds nothing in an outage", name(l),
			100*b.V),
		Fix: "set a retry budget of 10 to 20 %", Assumptions: assumptions(l, b)})
}

func concurrent(m int) string {
	if m == topology.Unbounded {
		return "lifted"
	}
	return fmt.Sprint(m)
}

// breaker is F501 and F502.
func (r *run) breaker(e *edge, l *topology.Layer) {
	b := &l.Breaker
	least, set := b.MinimumCalls.Get()
	window := b.Window.Or(0)
	rate, instances := r.g.rateOf(e), r.g.instances(e)
	if set && window > 0 && rate > 0 && !math.IsInf(instances, 1) {
		if calls := rate / instances * window.Seconds(); calls < float64(least) {
			r.report(Finding{Rule: "F501", At: place(b.MinimumCalls, l), Subject: subject(e, l, "minimum calls"),
				Effect: float64(least) / calls,
				Message: fmt.Sprintf("the breaker of %s needs %d calls within %v to open, but an instance makes about %s, so it "+
					"never opens",
					name(l), least, window, number(calls)),
				Fix:         fmt.Sprintf("need at most %d calls, or look at a longer time", max(1, int(calls/2))),
				Assumptions: assumptions(l, b.MinimumCalls, b.Window)})
		}
	}
	open := b.OpenFor.Or(0)
	by, n := mostTries(l, topology.AllMethods, anything)
	if by == nil || open == 0 || !b.InsideRetry.Or(false) || n > maxPlayed || heedsBreaker(l) {
		return
	}
	total := time.Duration(0)
	for i := 1; i < n; i++ {
		_, wait := l.Backoff.Wait(i)
		total = later(total, wait)
	}
	if total < open {
		r.report(Finding{Rule: "F502", At: place(b.OpenFor, l), Subject: subject(e, l, "open time"), Effect: float64(n),
			Message: fmt.Sprintf("the retries of %s are over after %v, and its breaker stays open for %v: once it opens, the "+
				"tries that are left are refused", name(l), total, open),
			Fix:     "do not retry calls that the breaker has refused, or put the breaker outside of the retries",
			Related: []Place{{where(by, l), fmt.Sprint(n, " tries")}}, Assumptions: assumptions(l, b.OpenFor, by.Tries)})
	}
}

// bounds is F504, F505 and the part of F209 about layers.
func (r *run) bounds(e *edge, l *topology.Layer) {
	j := &l.Ejection
	if n, few := l.Endpoints.Get(); !j.Consecutive.IsZero() {
		whole := j.MaxShare.Or(0) >= 1
		if few = few && n > 0 && n <= 2; whole || few {
			text := "all endpoints"
			if !whole {
				text = fmt.Sprintf("one of %d endpoints", n)
			}
			chosen := Severity(0)
			if j.Consecutive.Origin == topology.Default && j.MaxShare.Origin == topology.Default {
				chosen = Note // nobody did
			}
			r.report(Finding{Rule: "F504", Severity: chosen, At: place(j.MaxShare, l), Subject: subject(e, l, "ejection"),
				Effect: j.MaxShare.Or(0),
				Message: fmt.Sprintf("%s may eject %s of %s: what is left gets all the load, or nothing is left", name(l), text,
					e.call.To),
				Fix: "eject at most half of the endpoints, and none where there are only two", Assumptions: assumptions(l,
					j.MaxShare, l.Endpoints)})
		}
	}
	var free []string
	for key, v := range map[string]topology.Value[int]{"requests": l.Limits.Requests, "pending": l.Limits.Pending,
		"connections": l.Limits.Connections} {
		switch n, known := v.Get(); {
		case known && n == topology.Unbounded:
			free = append(free, key)
		case !v.IsZero():
			return
		}
	}
	if slices.Sort(free); len(free) > 0 && !idle(e) {
		r.report(Finding{Rule: "F505", At: place(l.Limits.Requests, l), Subject: subject(e, l, "limits"),
			Message: fmt.Sprintf("%s bounds nothing that waits for %s: no limit on %s", name(l), e.call.To,
				strings.Join(free, ", ")),
			Fix:         "bound how many calls run and wait at once (a bulkhead)",
			Assumptions: assumptions(l, l.Limits.Requests, l.Limits.Pending, l.Limits.Connections)})
	}
	if stops, known := l.Cancels.Get(); known && !stops {
		// Connections that nobody accepts are work for nobody in any case.
		if by, n := mostTries(l, topology.AllMethods, processed); by != nil {
			r.report(Finding{Rule: "F209", At: place(l.Cancels, l), Subject: subject(e, l, "cancels"), Effect: float64(n),
				Message:     fmt.Sprintf("%s goes on with its tries (%s) after its caller has left", name(l), triesText(n)),
				Fix:         stopping(l.Product),
				Assumptions: assumptions(l, l.Cancels)})
		}
	}
}

// stopping says how a product stops when its caller leaves.
func stopping(product string) string {
	switch product {
	case "haproxy":
		return "write option abortonclose in the defaults of its frontend and its backend"
	case "nginx":
		return "remove proxy_ignore_client_abort on, or the directive of its protocol"
	}
	return "have it stop when its caller leaves: pass the caller's cancellation or deadline on"
}

// services is the part of F209 about services.
func (r *run) services() {
	for v := range r.g.services {
		s := &r.g.services[v]
		if stops, known := s.Cancels.Get(); !known || stops || r.inverted[v] || len(r.g.in[v]) == 0 {
			continue
		}
		for _, c := range r.g.out[v] {
			e := &r.g.calls[c]
			for i := range e.call.Layers {
				l := &e.call.Layers[i]
				if by, n := mostTries(l, topology.AllMethods, anything); by != nil {
					at := s.Cancels.At
					if at.IsZero() {
						at = s.At
					}
					r.report(Finding{Rule: "F209", At: at, Subject: "service " + s.Name + " cancels", Effect: float64(n),
						Message: fmt.Sprintf("%s goes on after its caller has left, and %s tries calls of %s %s for nobody", s.Name,
							name(l),
							e.call.To, triesText(n)),
						Fix:     "pass the caller's cancellation or deadline on to the calls that are made for it",
						Related: []Place{{where(by, l), "the retries"}}})
				}
			}
		}
	}
}

// alike is F406: the same numbers in every service.
func (r *run) alike() {
	type numbers struct {
		tries  int
		first  time.Duration
		perTry time.Duration
	}
	by, order := map[numbers][]*edge{}, []numbers{}
	at := map[numbers]map[topology.Position]Place{}
	for i := range r.g.calls {
		e := &r.g.calls[i]
		for _, slot := range e.slots {
			l := slot[0]
			rep, n := mostTries(l, topology.AllMethods, anything)
			if rep == nil || rep.Tries.Origin != topology.Written || l.Kind != topology.Client || e.from < 0 {
				continue
			}
			k := numbers{n, l.Backoff.First.Or(0), l.PerTry.Or(0)}
			if at[k] == nil {
				at[k], order = map[topology.Position]Place{}, append(order, k)
			}
			if where := where(rep, l); at[k][where].Text == "" {
				at[k][where] = Place{where, e.way()}
				by[k] = append(by[k], e)
			}
		}
	}
	for _, k := range order {
		callers := map[int]bool{}
		for _, e := range by[k] {
			callers[e.from] = true
		}
		if len(callers) < 3 {
			continue
		}
		one := Finding{Rule: "F406", Subject: fmt.Sprintf("same numbers %d %v %v", k.tries, k.first, k.perTry),
			Effect: float64(len(callers)), Message: fmt.Sprintf("%d services have the same retries (%s, first wait %v, %v "+
				"for a try): layers above each other multiply, and all come back at once", len(callers), triesText(k.tries),
				k.first, k.perTry),
			Fix: "let one layer of each chain retry; with Abate, retryOwner says which"}
		for _, p := range at[k] {
			one.Related = append(one.Related, p)
		}
		slices.SortFunc(one.Related, func(a, b Place) int {
			if a.At.Before(b.At) {
				return -1
			}
			return 1
		})
		one.At, one.Related = one.Related[0].At, places(one.Related[1:])
		r.report(one)
	}
}
