package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
)

// healthy is the goodput before the trouble below which a recovery to it means little.
const healthy = 0.95

// notes are what a reader should know before he believes the numbers of a variant.
func notes(s *scenario.Scenario, v *scenario.Variant, all []outcome) []string {
	list := append([]string{}, unworkable(s, v)...)
	if v.PolicyFile != "" && v.Guards != nil {
		if names := unlisted(s, v); len(names) > 0 {
			list = append(list, fmt.Sprintf("%s does not list %s: its defaults apply", v.PolicyFile, strings.Join(names, ", ")))
		}
	}
	if len(v.Naive) > 0 {
		list = append(list, fmt.Sprintf("without Abate: %s; what they call is told nothing, and what answers say of trying "+
			"again is ignored", strings.Join(v.Naive, ", ")))
	}
	if names := patient(s, v); len(names) > 0 {
		list = append(list, fmt.Sprintf("%s waits for ever: no attemptTimeout, no timeout and no patience, so an answer "+
			"after any time is goodput; look at latency", strings.Join(names, ", ")))
	}
	if begin, _ := s.Trouble(); begin > 0 && begin < s.Duration && !s.IsPopulation() {
		list = append(list, unwell(s, all)...)
	}
	return list
}

// unwell names the fleets whose goodput is low before anything goes wrong.
func unwell(s *scenario.Scenario, all []outcome) []string {
	var list []string
	for k := range s.Clients {
		before := expect.NewSample(column(all, func(o *outcome) float64 { return o.fleets[k].before }))
		if median := before.Quantile(0.5); before.N() > 0 && median < healthy {
			whose := "goodput"
			if len(s.Clients) > 1 {
				whose += " of " + s.Clients[k].Name
			}
			list = append(list, fmt.Sprintf("%s is %.1f %% before the trouble: overloaded or failing anyway, and recovery "+
				"is relative to that", whose, 100*median))
		}
	}
	return list
}

// unlisted are the services called that a variant's policy file does not list.
func unlisted(s *scenario.Scenario, v *scenario.Variant) []string {
	var names []string
	edges(s, v, func(caller string, c *scenario.Call) {
		_, service := v.Guards.Policy(c.To)
		_, edge := v.Guards.Policy(caller + " -> " + c.To)
		if !service && !edge && !slices.Contains(names, c.To) {
			names = append(names, c.To)
		}
	})
	return names
}

// patient are the fleets with a call that nothing ends but its answer.
func patient(s *scenario.Scenario, v *scenario.Variant) []string {
	var names []string
	for i := range s.Clients {
		f := &s.Clients[i]
		if f.Patience > 0 || s.IsPopulation() {
			continue
		}
		for k := range f.Calls {
			if p := v.PolicyOf(f.Name, f.Calls[k].To); p.Timeout == 0 && p.AttemptTimeout == 0 &&
				!slices.Contains(names, f.Name) {
				names = append(names, f.Name)
			}
		}
	}
	return names
}
