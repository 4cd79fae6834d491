package sim

import (
	"slices"

	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
)

// worldMeasures adds what is measured of a service that changes while it runs.
func worldMeasures(s *scenario.Scenario, x *scenario.Service, windows []expect.Window,
	add func(measure, subject string, w expect.Window, quantile float64)) {
	measure := func(name string) {
		add(name, x.Name, expect.All, 0)
		for _, w := range windows {
			if w != expect.All {
				add(name, x.Name, w, 0)
			}
		}
	}
	if x.IsCache() {
		measure("hits")
	}
	if x.Lives() {
		measure("replicas")
		measure("restarts")
	}
	holds := func(f scenario.Fleet) bool { return f.HoldsSessions() && f.Calls[0].To == x.Name }
	if slices.ContainsFunc(s.Clients, holds) && x.Connections.Max == 0 { // else they are there already
		for _, name := range []string{"connections", "connectPeak", "unopened"} {
			add(name, x.Name, expect.All, 0)
		}
	}
}

// priorities are those that requests come to gates with, from the one refused first on; none if all have the same.
func priorities(s *scenario.Scenario, v *scenario.Variant) []string {
	said := map[string]bool{}
	edges(s, v, func(caller string, c *scenario.Call) {
		if c.Priority != "" && !v.NaiveCall(caller, c) {
			said[c.Priority] = true
		}
	})
	if len(said) == 0 {
		return nil
	}
	for _, x := range s.ServicesOf(v) {
		if p, ok := v.ProtectionOf(x.Name); ok { // of those that say nothing
			said[p.Priority.Default.String()] = true
		}
	}
	return slices.DeleteFunc(expect.Priorities(), func(p string) bool { return !said[p] })
}
