package sim

import (
	"math"
	"slices"
	"strings"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
)

// cliffSearch makes runs of a scenario that is harder or easier, and asks which rules they keep.
type cliffSearch struct {
	st     *study
	s      *scenario.Scenario
	v      *scenario.Variant
	rules  []rule
	normal []float64          // goodput of each fleet before the trouble, of the scenario as it is; nil until known
	trials map[float64]*tried // by factor
}

// rule is one thing that has to hold for a run to stand.
type rule struct {
	x      expect.Expectation
	fleet  int    // whose rule it is; -1 for the whole system's
	before bool   // the fleet's goodput before the trouble must not be down; x says nothing
	spare  bool   // that the fleet does not collapse, where that is not expected
	broken string // what happens when it does not hold: "collapses"
	one    string // the same where it is clear which fleet is meant
}

// tried counts in how many runs at one factor each rule was missed.
type tried struct {
	runs   int
	missed []int
}

// outcomes are measures whose expectations say whether a system stands. Without any of them it must not collapse.
var outcomes = []string{"collapse", "recovery", "goodput", "yield", "failures", "served", "userVisible", "drained"}

// newSearch returns a search for where what is expected holds and, if that does not speak of how it ends, no fleet
// collapses.
func newSearch(st *study, s *scenario.Scenario, v *scenario.Variant, expected []expect.Expectation) *cliffSearch {
	x := &cliffSearch{st: st, s: s, v: v, trials: map[float64]*tried{}}
	own := protecting(expected)
	collapse := expect.Expectation{Measure: "collapse", Op: expect.Below, Value: 0.5}
	said := slices.ContainsFunc(own, func(e expect.Expectation) bool { return slices.Contains(outcomes, e.Measure) })
	if !said {
		own = append([]expect.Expectation{collapse}, own...)
	}
	for i := range s.Clients {
		name := s.Clients[i].Name
		if sacrificed(own, name) {
			continue
		}
		r := rule{fleet: i, before: true, broken: "collapses", one: "collapses"}
		if len(s.Clients) > 1 {
			r.broken = name + " collapses"
		}
		x.rules = append(x.rules, r)
		if said {
			r.x, r.before, r.spare = collapse, false, true
			r.x.Subject = name
			x.rules = append(x.rules, r)
		}
	}
	for i := range own {
		x.add(&own[i])
	}
	return x
}

// sacrificed reports whether what is expected speaks of other fleets than this one only: then this one may be down.
func sacrificed(expected []expect.Expectation, fleet string) bool {
	named := false
	for i := range expected {
		e := &expected[i]
		if !slices.Contains(outcomes, e.Measure) {
			continue
		}
		if e.Subject == "" || e.Subject == fleet {
			return false
		}
		named = true
	}
	return named
}

// add adds the rules of an expectation: that of all fleets is one of each.
func (x *cliffSearch) add(e *expect.Expectation) {
	each := e.Subject == "" && (e.Measure == "collapse" || e.Measure == "recovery")
	if !each {
		at := slices.IndexFunc(x.s.Clients, func(f scenario.Fleet) bool { return f.Name == e.Subject })
		who := e.Subject
		if at >= 0 && len(x.s.Clients) == 1 {
			who = ""
		}
		x.rules = append(x.rules, newRule(e, at, who))
		return
	}
	for i := range x.s.Clients {
		one, who := *e, ""
		if len(x.s.Clients) > 1 {
			one.Subject = x.s.Clients[i].Name
			who = one.Subject
		}
		x.rules = append(x.rules, newRule(&one, i, who))
	}
}

func newRule(e *expect.Expectation, fleet int, who string) rule {
	r := rule{x: *e, fleet: fleet}
	if e.Measure == "collapse" {
		r.one, r.broken = "collapses", strings.TrimSpace(who+" collapses")
		return r
	}
	text := strings.Join(strings.Fields(strings.TrimSuffix(label(e)+" "+bound(e), " ")), " ")
	r.one, r.broken = "misses "+text, "misses "+text
	return r
}

// bound is the comparison and the value of an expectation.
func bound(e *expect.Expectation) string {
	text := strings.TrimPrefix(e.String(), label(e)+" ")
	text, _, _ = strings.Cut(text, " in ")
	return text
}

// turn begins with another dimension: only what was learnt of the scenario as it is holds there, too.
func (x *cliffSearch) turn() {
	here := x.trials[1]
	if clear(x.trials); here != nil {
		x.trials[1] = here
	}
}

// every are all rules of what is expected, of are those of one fleet, and standing are those about collapse alone.
func (x *cliffSearch) every() []int { return x.which(func(r *rule) bool { return !r.spare }) }

func (x *cliffSearch) of(fleet int) []int {
	return x.which(func(r *rule) bool { return r.fleet == fleet })
}

func (x *cliffSearch) standing() []int { return x.which((*rule).stands) }

// stands reports whether the rule is that something does not collapse.
func (r *rule) stands() bool { return r.before || r.x.Measure == "collapse" }

func (x *cliffSearch) which(wanted func(*rule) bool) []int {
	var list []int
	for i := range x.rules {
		if wanted(&x.rules[i]) {
			list = append(list, i)
		}
	}
	return list
}

// trial makes up to three runs at a factor; the majority may be clear after two. The first one says what is normal.
func (x *cliffSearch) trial(change edit, factor float64) (*tried, error) {
	if t := x.trials[factor]; t != nil {
		return t, nil
	}
	s, v := change(x.s, x.v, factor)
	t := &tried{missed: make([]int, len(x.rules))}
	for t.runs < perStep {
		more := 2
		if t.runs > 0 {
			more = 1
		}
		first := x.normal == nil
		found, err := x.st.batch(s, v, t.runs, more, false, func(_ int, r *engine.Record) outcome {
			o := outcome{events: r.Events, fleets: fleetsOf(r)}
			if !first {
				o.values = x.misses(r)
			} else {
				o.record = r
			}
			return o
		})
		if err != nil || len(found) < more {
			return t, err
		}
		if first {
			x.normal = make([]float64, len(found[0].fleets))
			for i := range x.normal {
				x.normal[i] = found[0].fleets[i].before
			}
			for i := range found {
				found[i].values, found[i].record = x.misses(found[i].record), nil
			}
		}
		for i := range found {
			t.runs++
			for _, k := range found[i].values {
				t.missed[int(k)]++
			}
		}
		if !slices.ContainsFunc(t.missed, func(n int) bool { return n > 0 && n < t.runs }) {
			break
		}
	}
	x.trials[factor] = t
	return t, nil
}

// misses are the rules that a run does not keep; nil for none.
func (x *cliffSearch) misses(r *engine.Record) []float64 {
	var list []float64
	for i := range x.rules {
		k := &x.rules[i]
		switch {
		case k.before:
			if !r.DownBefore(k.fleet, x.normal[k.fleet]) {
				continue
			}
		default:
			if v := r.Value(&k.x); math.IsNaN(v) || k.x.Holds(v) { // what cannot be measured is not missed
				continue
			}
		}
		list = append(list, float64(i))
	}
	return list
}

// broken are those of some rules that do not hold at a factor, in the order of the list; nil if all do. Most runs have
// to keep a rule; one run is enough for what need not hold in half of them.
func (t *tried) broken(all []rule, some []int) []int {
	var list []int
	for _, i := range some {
		seldom := all[i].x.Share > 0 && all[i].x.Share < 0.5
		if seldom && t.missed[i] == t.runs && t.runs > 0 || !seldom && 2*t.missed[i] > t.runs {
			list = append(list, i)
		}
	}
	return list
}

// breaks says what does not hold, at most two things.
func (x *cliffSearch) breaks(broken []int, oneFleet bool) string {
	var parts []string
	for _, i := range broken {
		text := x.rules[i].broken
		if oneFleet {
			text = x.rules[i].one
		}
		if len(parts) < 2 && !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	if len(parts) == 2 && strings.HasPrefix(parts[0], "misses ") {
		parts[1] = strings.TrimPrefix(parts[1], "misses ")
	}
	return strings.Join(parts, " and ")
}
