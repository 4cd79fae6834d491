package sim

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/abate-go/abate/sim/figures"
	"github.com/abate-go/abate/sim/scenario"
)

// edit is one way to make a scenario harder (a factor above 1) or easier.
type edit func(s *scenario.Scenario, v *scenario.Variant, factor float64) (*scenario.Scenario, *scenario.Variant)

// dimension is a direction in which the cliff is looked for.
type dimension struct {
	name, unit string
	fleet      string // whose load it is; empty for all
	change     edit
	harder     float64 // the furthest factor that is tried on the hard side
	here       float64
	say        func(value float64) string
}

const mostHarder = 16

// dimensionsOf are the directions that make sense for a scenario.
func dimensionsOf(s *scenario.Scenario) []dimension {
	all := []dimension{loadDimension("", allLoad(s))}
	if begin, end := s.Trouble(); end > begin {
		all = append(all, dimension{
			name: "trouble", unit: "s", change: withTrouble, harder: mostHarder, here: (end - begin).Seconds(),
			say: func(v float64) string { return fmt.Sprintf("trouble of %.3g s", v) },
		})
	}
	if slices.ContainsFunc(s.Services, func(x scenario.Service) bool { return x.Workers > 0 }) {
		all = append(all, dimension{
			name: "capacity", unit: "share", change: less, harder: mostHarder, here: 1,
			say: func(v float64) string { return percent(math.Round(v*1000)/1000) + " of the capacity" },
		})
	}
	return all
}

// load is what is offered before anything goes wrong, in full size: by open loops per second, by users, and once.
type load struct{ rate, users, once float64 }

// loadOf is what one fleet offers.
func loadOf(s *scenario.Scenario, fleet int) load {
	f, scale := &s.Clients[fleet], float64(max(s.Scale, 1))
	rate := f.Rate
	if len(f.Curve) > 0 {
		rate = f.Curve[0].Rate
	}
	return load{rate: rate * scale, users: float64(f.Users) * scale, once: float64(f.Once) * scale}
}

// allLoad is what all fleets offer.
func allLoad(s *scenario.Scenario) load {
	var all load
	for i := range s.Clients {
		l := loadOf(s, i)
		all.rate, all.users, all.once = all.rate+l.rate, all.users+l.users, all.once+l.once
	}
	return all
}

// loadDimension is the load of all fleets, whose measure is the load of one of them or, without a name, of all. Loads
// of several kinds have no unit in common: then the value is a factor.
func loadDimension(fleet string, l load) dimension {
	d := dimension{name: "load", fleet: fleet, change: withLoad, harder: mostHarder}
	kinds := []struct {
		value float64
		unit  string
	}{{l.rate, "requests/s"}, {l.users, "users"}, {l.once, "requests"}}
	var parts []string
	for _, k := range kinds {
		if k.value > 0 {
			parts = append(parts, k.unit)
			d.unit, d.here = k.unit, k.value
		}
	}
	if len(parts) > 1 {
		d.unit, d.here = "factor", 1
	}
	d.say = func(v float64) string {
		if len(parts) <= 1 {
			return loadText(v, d.unit)
		}
		var each []string
		for _, k := range kinds {
			if k.value > 0 {
				each = append(each, loadText(k.value*v, k.unit))
			}
		}
		return strings.Join(each, " and ")
	}
	return d
}

// loadText writes a load; there are whole users only.
func loadText(v float64, unit string) string {
	if unit != "requests/s" {
		v = math.Round(v)
		if v == 1 {
			unit = strings.TrimSuffix(unit, "s")
		}
		return figures.Thousands(v) + " " + unit
	}
	return number(v) + " " + unit
}

// less divides the capacity, so that a factor above 1 is harder.
func less(s *scenario.Scenario, v *scenario.Variant, factor float64) (*scenario.Scenario, *scenario.Variant) {
	return withCapacity(s, v, 1/factor)
}

// lessComesTo is by how much the capacity is really divided: by the least of all services, because there are whole
// workers only. Nobody may say of a scenario that it stands with a capacity that it was not tried with.
func lessComesTo(s *scenario.Scenario, v *scenario.Variant, factor float64) float64 {
	_, w := less(s, v, factor)
	least := math.Inf(1)
	for i, x := range s.ServicesOf(v) {
		if x.Workers > 0 {
			y := &w.Overrides[i]
			is := float64(max(x.Replicas, 1)*x.Workers) / float64(max(y.Replicas, 1)*y.Workers)
			if factor < 1 { // more capacity: the one that gets the most
				is = 1 / is
			}
			least = math.Min(least, is)
		}
	}
	if factor < 1 {
		return 1 / least
	}
	return least
}
