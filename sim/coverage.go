package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
)

// notCovered lists what the verdict on a variant does not say, the worst first. A reader sees it beside the verdict.
func (st *study) notCovered(s *scenario.Scenario, v *scenario.Variant, r *VariantResult, all []outcome) []string {
	list := append([]string{}, unmentioned(s, expectations(s, v), all)...)
	for i := range r.Expectations {
		e := &r.Expectations[i]
		if e.Unmeasured > 0 {
			list = append(list, fmt.Sprintf("%s could not be measured in %d of %d runs, which count against it", e.Text,
				e.Unmeasured, e.Runs))
		}
	}
	list = append(list, tooFew(expectations(s, v), r)...)
	list = append(list, fewRequests(s, all)...)
	list = append(list, unreached(s, v)...)
	switch {
	case s.IsPopulation():
		list = append(list, "how far the cliff is: no margin is searched for a very large fleet")
	case !st.options.Margin:
		list = append(list, "how far the cliff is: the margin was not searched")
	case len(r.Margins) < len(dimensionsOf(s)):
		list = append(list, "how far the cliff is: the search for the margin was stopped")
	}
	return list
}

// unmentioned names the fleets that collapsed although no expectation is about that.
func unmentioned(s *scenario.Scenario, expected []expect.Expectation, all []outcome) []string {
	var list []string
	if len(expected) == 0 {
		return nil
	}
	for k := range s.Clients {
		name := s.Clients[k].Name
		if n, _ := collapsedIn(all, k); n > 0 && !spoken(s, expected, name) {
			list = append(list, fmt.Sprintf("%s collapsed in %d of %d runs, and no expectation is about that: add "+
				"collapse(%s) < 10%%", name, n, len(all), name))
		}
	}
	return list
}

// spoken reports whether an expectation is about how a fleet ends. Of several fleets together, only collapse and
// recovery are about each of them.
func spoken(s *scenario.Scenario, expected []expect.Expectation, fleet string) bool {
	return slices.ContainsFunc(expected, func(x expect.Expectation) bool {
		own := x.Subject == fleet || x.Subject == "" && len(s.Clients) == 1
		upper := x.Op == expect.Below || x.Op == expect.AtMost
		switch x.Measure {
		case "collapse", "recovery":
			return own || x.Subject == ""
		case "goodput": // that it is down, or that it is not; at the end
			return own && x.Window == expect.After && (upper || x.Value >= s.Model.Collapsed)
		case "failures":
			return own && x.Window == expect.After && (!upper || x.Value <= 1-s.Model.Collapsed)
		}
		return own && (x.Measure == "served" || x.Measure == "userVisible" || x.Measure == "drained")
	})
}

// tooFew names the expectations that so few runs as may be made cannot show.
func tooFew(expected []expect.Expectation, r *VariantResult) []string {
	var list []string
	for i := range expected {
		need := expect.RunsNeeded(expected[i])
		if e := &r.Expectations[i]; e.Verdict == Undecided && need > e.Runs {
			list = append(list, fmt.Sprintf("%s: %d runs are too few to show it, at least %d are needed", e.Text, e.Runs,
				need))
		}
	}
	return list
}

// fewRequests names the fleets that offer fewer requests than a verdict on them needs.
func fewRequests(s *scenario.Scenario, all []outcome) []string {
	var list []string
	for k := range s.Clients {
		name := s.Clients[k].Name
		switch n := judgedRequests(all, k); {
		case n == 0:
			list = append(list, name+": it offered nothing by which to judge it")
		case n < engine.LeastRequests:
			list = append(list, fmt.Sprintf("%s: only %d of its requests a run show whether it collapses; with fewer than %d "+
				"that may be chance", name, n, engine.LeastRequests))
		}
	}
	return list
}

// unreached names the fleets that no fault can touch: neither them, nor what they call, nor what shares a service with
// them. A scenario without faults is about something else.
func unreached(s *scenario.Scenario, v *scenario.Variant) []string {
	if begin, _ := s.Trouble(); begin >= s.Duration {
		return nil
	}
	group := map[string]string{} // a name and another one that it is connected with
	var of func(name string) string
	of = func(name string) string {
		if next, ok := group[name]; ok && next != name {
			return of(next)
		}
		return name
	}
	edges(s, v, func(caller string, c *scenario.Call) {
		if a, b := of(caller), of(c.To); a != b {
			group[a] = b
		}
	})
	touched := map[string]bool{}
	for i := range s.Faults {
		if f := &s.Faults[i]; f.Operator == "" {
			_, target := f.Kind()
			for name := range strings.SplitSeq(target, " -> ") {
				touched[of(name)] = true
			}
		}
	}
	var list []string
	for i := range s.Clients {
		if name := s.Clients[i].Name; !touched[of(name)] {
			list = append(list, name+" in trouble: no fault reaches it or what it calls")
		}
	}
	return list
}
