package sim

import (
	"fmt"
	"math"
	"strings"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
)

// fleetOutcome is what is kept of one fleet in one run.
type fleetOutcome struct {
	collapsed float64 // 1 or 0; NaN where it cannot be said
	recovery  float64
	before    float64 // goodput before the trouble
	judged    int     // requests that this rests on
}

// fleetsOf looks at every fleet of a run.
func fleetsOf(r *engine.Record) []fleetOutcome {
	list := make([]fleetOutcome, len(r.Fleets))
	for i := range r.Fleets {
		name := r.Fleets[i].Name
		list[i] = fleetOutcome{
			collapsed: r.Value(&expect.Expectation{Measure: "collapse", Subject: name}),
			recovery:  r.Value(&expect.Expectation{Measure: "recovery", Subject: name}),
			before:    r.Value(&expect.Expectation{Measure: "goodput", Subject: name, Window: expect.Before}),
			judged:    r.Judged(i),
		}
	}
	return list
}

// collapsedIn counts the runs in which a fleet collapsed, and those in which that can be said.
func collapsedIn(all []outcome, fleet int) (collapsed, judged int) {
	for i := range all {
		switch v := all[i].fleets[fleet].collapsed; {
		case math.IsNaN(v):
			continue
		case v > 0:
			collapsed++
		}
		judged++
	}
	return collapsed, judged
}

// judgedRequests is how many requests the verdict on a fleet rests on, the median over the runs.
func judgedRequests(all []outcome, fleet int) int {
	sample := expect.NewSample(column(all, func(o *outcome) float64 { return float64(o.fleets[fleet].judged) }))
	return int(sample.Quantile(0.5))
}

// fleetResults says how each of several fleets fared; nil for one.
func fleetResults(s *scenario.Scenario, all []outcome) []FleetResult {
	if len(s.Clients) < 2 {
		return nil
	}
	var list []FleetResult
	for k := range s.Clients {
		times := column(all, func(o *outcome) float64 { return o.fleets[k].recovery })
		f := FleetResult{Name: s.Clients[k].Name, Recovery: recoveries(times), Requests: judgedRequests(all, k)}
		for _, t := range times {
			if math.IsNaN(t) {
				f.NoRecovery++
			}
		}
		collapsed, judged := collapsedIn(all, k)
		if f.Judged = judged; judged > 0 {
			f.Collapse = shareOf(collapsed, judged)
		} else {
			f.Collapse = Share{High: 1}
		}
		list = append(list, f)
	}
	return list
}

// whereOf says which fleets an expectation about all of them owes its value to: who collapsed, or came back last.
func whereOf(s *scenario.Scenario, x *expect.Expectation, all []outcome) string {
	if len(s.Clients) < 2 || x.Subject != "" || x.Measure != "collapse" && x.Measure != "recovery" {
		return ""
	}
	var parts []string
	say := func(what string, counts []int) {
		for k, n := range counts {
			if n > 0 {
				parts = append(parts, fmt.Sprintf("%s %s in %d of %d runs", s.Clients[k].Name, what, n, len(all)))
			}
		}
	}
	if x.Measure == "collapse" {
		counts := make([]int, len(s.Clients))
		for k := range counts {
			counts[k], _ = collapsedIn(all, k)
		}
		say("collapsed", counts)
	} else {
		never, last := lastOf(all, len(s.Clients))
		say("never recovered", never)
		say("was the last", last)
	}
	const most = 5
	if more := len(parts) - most; more > 0 {
		parts = append(parts[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

// lastOf counts in how many runs each fleet never recovered, and in how many it was the last of those that all did.
func lastOf(all []outcome, fleets int) (never, last []int) {
	never, last = make([]int, fleets), make([]int, fleets)
	for i := range all {
		slowest, lost := -1, false
		for k, f := range all[i].fleets {
			switch {
			case math.IsInf(f.recovery, 1):
				never[k]++
				lost = true
			case math.IsNaN(f.recovery) || f.recovery == 0:
			case slowest < 0 || f.recovery > all[i].fleets[slowest].recovery:
				slowest = k
			}
		}
		if slowest >= 0 && !lost {
			last[slowest]++
		}
	}
	return never, last
}
