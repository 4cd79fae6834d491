package lint

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/abate-go/abate/topology"
)

// For so many services the path of their bound is looked for, while the paths have so many hops together; for the
// others the bound is all. Of a path so many hops are written at each end.
const (
	maxPaths   = 100
	maxHops    = 3000
	hopsAtEnds = 8
)

// loudest is the bound of a service that comes to most.
type loudest struct {
	b Bound
	r RootBound
}

// amplification is rules F101 and F102.
func (r *run) amplification() {
	r.loud = map[*topology.Layer]float64{}
	proved, worst := map[string]loudest{}, map[string]loudest{}
	for _, b := range r.amplified.Bounds {
		for _, root := range b.Roots {
			if !root.Repeated { // many calls, and no retry
				continue
			}
			r.keep(proved, loudest{b, root}, root.Proved, func(l loudest) float64 { return l.r.Proved })
			if root.Worst > r.o.MaxAmplification && !root.Known { // F702 says what is not known; here is what else there is
				root.Worst = r.amplified.written(b, root)
			}
			r.keep(worst, loudest{b, root}, root.Worst, func(l loudest) float64 { return l.r.Worst })
		}
	}
	for i, l := range byNumber(proved, func(l loudest) float64 { return l.r.Proved }) {
		delete(worst, l.b.Service)
		r.proved(l, i < maxPaths && r.hops < maxHops)
	}
	for i, l := range byNumber(worst, func(l loudest) float64 { return l.r.Worst }) {
		r.unproved(l, i < maxPaths && r.hops < maxHops)
	}
}

// keep notes a bound above the limit, if it is the loudest of its service. One of requests that arrive comes before one
// of connections that nobody accepts.
func (r *run) keep(of map[string]loudest, l loudest, n float64, number func(loudest) float64) {
	was, seen := of[l.b.Service]
	idle, wasIdle := l.b.unsent(), was.b.unsent()
	if n > r.o.MaxAmplification && (!seen || !idle && wasIdle || idle == wasIdle && n > number(was)) {
		of[l.b.Service] = l
	}
}

func byNumber(of map[string]loudest, number func(loudest) float64) []loudest {
	var all []loudest
	for _, l := range of {
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b loudest) int {
		return cmp.Or(cmp.Compare(number(b), number(a)), strings.Compare(a.b.Service, b.b.Service))
	})
	return all
}

// number writes a factor.
func number(n float64) string {
	switch {
	case math.IsInf(n, 1):
		return "without a limit"
	case n >= 1e6:
		return fmt.Sprintf("%.1e", n)
	case n >= 100 || n == math.Round(n):
		return strconv.FormatFloat(math.Round(n), 'f', -1, 64)
	}
	return strconv.FormatFloat(math.Round(n*10)/10, 'f', -1, 64)
}

// timesText says how often a layer tries: "4 times", "without a limit".
func timesText(n float64) string {
	if math.IsInf(n, 1) {
		return number(n)
	}
	return number(n) + " times"
}

func manyTimes(n float64) string {
	if math.IsInf(n, 1) {
		return "any number of times"
	}
	return "up to " + number(n) + " times"
}

func upTo(n float64) string {
	if math.IsInf(n, 1) {
		return "attempts without a limit"
	}
	return "up to " + number(n) + " attempts"
}

// proved is F101 for one service.
func (r *run) proved(l loudest, path bool) {
	one := Finding{Rule: "F101", Subject: "attempts at " + l.b.Service, Effect: l.r.Proved,
		Fix: "let one layer of the path retry and set the others to no retries; with Abate, retryOwner: nearest does it"}
	if i, ok := r.g.index[l.b.Service]; ok {
		one.At = r.g.services[i].At
	}
	way, mild, guess, sooner := "", false, "", ""
	if path {
		hops := r.amplified.Path(l.b, l.r, false)
		var cause *topology.Layer
		total := l.r.Proved
		if guess, mild = r.apart(hops, l); guess != "" {
			one.Assumptions = append(one.Assumptions, allCalls)
		}
		if mild {
			return // nobody need make all of these calls; the first line says what it would be
		}
		way, cause = r.describe(hops, &one, total)
		mild = mild || paidFor(hops) || !slices.ContainsFunc(l.b.Outcomes, executed) && unchosen(hops)
		if cause != nil {
			by, n := mostTries(cause, topology.AllMethods, anything)
			if n == topology.Unbounded && paidFor(hops) && alone(hops) { // F108 says it of that layer
				return
			}
			if one.At = cause.At; by != nil {
				one.At = where(by, cause)
			}
			sooner = untilBreaker(cause, n)
			one.Subject = fmt.Sprintf("tries of %s on the way to %s", name(cause), l.b.Service)
			one.Fix = fewer(hops, cause, n)
		}
	}
	may := "can become"
	if guess != "" {
		may = "may become, if it makes every call whose address a variable holds,"
	}
	one.Message = fmt.Sprintf("one request %s %s %s%s at %s while that %s%s%s%s; the limit is %s", l.r.at(), may,
		upTo(l.r.Proved), r.beyond(l), l.b.Service, fails(l.b.Outcomes), way, guess, sooner,
		number(r.o.MaxAmplification))
	if l.r.Mean < l.r.Proved/1.5 {
		one.Message += fmt.Sprintf(" (the budgets keep the average to %s)", number(l.r.Mean))
		if l.r.Mean <= r.o.MaxAmplification {
			one.Severity = Warning // one request can, and an outage cannot
		}
	}
	if mild || sooner != "" || l.b.unsent() {
		one.Severity = Warning
	}
	r.report(one)
}

// unsent reports that a bound is about connections that nobody accepts: its attempts load nobody.
func (b Bound) unsent() bool { return !slices.ContainsFunc(b.Outcomes, processed) }

// paidFor reports whether every layer of a path that repeats has a budget by ratio, so that an outage cannot bring the
// number about, whatever one request can. The floors of the budgets are not counted: they are for low rates.
func paidFor(hops []Hop) bool {
	repeats := false
	for _, h := range hops {
		for _, f := range h.Factors {
			if f.Times > 1 {
				repeats = true
				if ratio, known := f.Layer.Budget.Ratio.Get(); !known || ratio > 1 {
					return false
				}
			}
		}
	}
	return repeats
}

// unchosen reports that all repeats of a path are defaults. Those of meshes repeat two codes of gRPC, which calls of
// HTTP never see.
func unchosen(hops []Hop) bool {
	for _, h := range hops {
		for _, f := range h.Factors {
			if by, _ := mostTries(f.Layer, topology.AllMethods, anything); f.Times > 1 && by != nil &&
				by.Tries.Origin != topology.Default {
				return false
			}
		}
	}
	return true
}

func (b RootBound) at() string {
	switch {
	case b.Root == "":
		return "at the edge"
	case b.Outside:
		return "in front of " + b.Root
	}
	return "at " + b.Root
}

// fails says how a service fails. A code of gRPC may be one that few layers repeat, so that only some of those between
// are on the path.
func fails(all []topology.Outcome) string {
	if slices.ContainsFunc(all, func(o topology.Outcome) bool { return !o.GRPC() }) {
		return "fails with " + outcomes(all)
	}
	return "answers gRPC's " + outcomes(all) + ", which the layers named here repeat"
}

// outcomes names the first few of a bound's.
func outcomes(all []topology.Outcome) string {
	var names []string
	for i, o := range all {
		if i == 3 && len(all) > 4 {
			names = append(names, "…")
			break
		}
		names = append(names, o.String())
	}
	return strings.Join(names, ", ")
}

// describe writes a path with its factors, notes its layers in the finding, and returns the layer that is to change:
// the one with the largest factor, not ours, and of several the innermost that is no library, which knows least of the
// calls.
func (r *run) describe(hops []Hop, one *Finding, total float64) (text string, cause *topology.Layer) {
	var parts []string
	most := 1.0
	for i, h := range hops {
		if i == 0 {
			parts = append(parts, cmp.Or(h.Call.From, "outside"))
		}
		var factors []string
		if h.Times != 1 {
			factors = append(factors, number(h.Times)+" calls")
		}
		for _, f := range h.Factors {
			if f.Times <= 1 {
				continue
			}
			times := number(f.Times)
			if math.IsInf(f.Times, 1) {
				times = "∞"
			}
			factors = append(factors, times+" "+title(f.Layer))
			if total > 0 {
				r.loud[f.Layer] = max(r.loud[f.Layer], total)
			}
			one.Assumptions = unique(append(one.Assumptions, keptAssumption(f)...))
			of := f.Times
			if f.Layer.Product == ours { // which is the one that can share its tries with others
				of = 1
			}
			if cause == nil || of > most || of == most && f.Layer.Kind != topology.Client {
				most, cause = of, f.Layer
			}
			if len(one.Related) == maxRelated {
				continue
			}
			at := f.Layer.At
			if by, _ := mostTries(f.Layer, topology.AllMethods, anything); by != nil {
				at = where(by, f.Layer)
				one.Assumptions = unique(append(one.Assumptions, assumptions(f.Layer, by.Tries)...))
			}
			one.Related = places(append(one.Related, Place{at, fmt.Sprintf("%s → %s: %s tries %s",
				cmp.Or(h.Call.From, "outside"), h.Call.To, name(f.Layer), timesText(f.Times))}))
		}
		if parts = append(parts, h.Call.To); len(factors) > 0 {
			parts[len(parts)-1] = fmt.Sprintf("%s (×%s)", h.Call.To, strings.Join(factors, " × "))
		}
	}
	if r.hops += len(hops); len(hops) == 0 {
		return "", cause
	}
	if r.taken(hops) {
		one.Assumptions = unique(append(one.Assumptions, OnlyHTTP))
	}
	if n := len(parts); n > 2*hopsAtEnds {
		parts = slices.Concat(parts[:hopsAtEnds], []string{"…"}, parts[n-hopsAtEnds:])
	}
	return ": " + strings.Join(parts, " → "), cause
}

// unproved is F102 for one service.
func (r *run) unproved(l loudest, path bool) {
	one := Finding{Rule: "F102", Subject: "attempts at " + l.b.Service, Effect: l.r.Worst,
		Fix: "say in the topology what the services on the way answer when a call of theirs has failed (answersWith), or " +
			"write the values that could not be read"}
	if i, ok := r.g.index[l.b.Service]; ok {
		one.At = r.g.services[i].At
	}
	way := ""
	if path {
		hops := r.amplified.path(l.b, l.r, assumed{worst: true, methods: l.b.Methods, written: !l.r.Known})
		way, _ = r.describe(hops, &one, 0)
		r.unsaid(hops, &one)
	}
	if one.Message = fmt.Sprintf("one request %s becomes at least %s at %s while that %s, and in the worst "+
		"case %s%s; the limit is %s", l.r.at(), plural(int(l.r.Proved), "attempt", "attempts"), l.b.Service,
		fails(l.b.Outcomes),
		upTo(l.r.Worst), way, number(r.o.MaxAmplification)); !l.r.Known {
		one.Message += "; a value on the way is not known, and counts as the least here"
	}
	r.report(one)
}

// unsaid puts a finding where the first thing is missing of which nobody knows what it is, and says what to write.
func (r *run) unsaid(hops []Hop, one *Finding) {
	for _, h := range hops[min(1, len(hops)):] {
		i, ok := r.g.index[h.Call.From]
		if !ok {
			continue
		}
		if _, known := answers(r.g.services[i].AnswersWith); !known {
			one.At, one.Subject = r.g.services[i].At, "answers of "+h.Call.From
			one.Fix = fmt.Sprintf("say in the topology what %s answers when a call of its own has failed: answersWith: "+
				"\"500\", or same if it passes failures on", h.Call.From)
			one.Assumptions = append(one.Assumptions, h.Call.From+" may answer anything when a call of its own has failed")
			return
		}
	}
	for _, h := range hops {
		for _, f := range h.Factors {
			waits := unsaidWait(f.Layer, h.Call.To)
			if waits == "" {
				continue
			}
			one.At, one.Subject = f.Layer.At, "waits of "+name(f.Layer)
			one.Fix = fmt.Sprintf("no file says %s: set it where the file of the layer takes it, or in a topology file "+
				"(--topology writes one)", waits)
			one.Assumptions = append(one.Assumptions, "nobody knows "+waits)
			return
		}
	}
}

// unfinished is rule F109: what was not followed to its end, and what that means.
func (r *run) unfinished() {
	n := r.amplified.rough
	if n == 0 {
		return
	}
	var at topology.Position // of the first of them
	for _, b := range r.amplified.Bounds {
		if is := r.g.services[r.g.index[b.Service]].At; b.Coarse && !is.IsZero() && (at.IsZero() || is.Before(at)) {
			at = is
		}
	}
	r.report(Finding{Rule: "F109", At: at, Subject: "size of the graph", Effect: float64(n),
		Message: fmt.Sprintf("%s and %s are too many to follow all ways through them: after %d steps, for %s attempts are "+
			"bounded from what each layer can do at most, which is never below what can happen, and may be far above; "+
			"proved is there what the last call alone does, and no path is named",
			plural(len(r.g.services), "service", "services"), plural(len(r.g.calls), "call", "calls"), r.o.Work,
			plural(n, "service", "services")),
		Fix: "audit the files of fewer services at once, or leave out what does not run together, such as test data"})
}

// cycles is rule F106.
func (r *run) cycles() {
	for n, names := range r.g.cycles {
		one := Finding{Rule: "F106", Subject: "cycle " + strings.Join(names, " → "), Effect: math.Inf(1),
			Fix: "break the circle, or, if the trace puts several programs under one name, give them names of their own"}
		for i := range r.g.calls {
			e := &r.g.calls[i]
			if e.from < 0 || r.g.cycle[e.from] != n || r.g.cycle[e.to] != n {
				continue
			}
			for j := range e.call.Layers {
				l := &e.call.Layers[j]
				if by, tries := mostTries(l, topology.AllMethods, anything); by != nil {
					one.Related = places(append(one.Related, Place{where(by, l), fmt.Sprintf("%s: %s tries %s", e.way(), name(l),
						triesText(tries))}))
					if one.At.IsZero() {
						one.At = where(by, l)
					}
				}
			}
		}
		if len(one.Related) > 0 {
			one.Message = "calls go in a circle and are retried, so nothing bounds the attempts: " + strings.Join(names, " → ")
			r.report(one)
		}
	}
}
