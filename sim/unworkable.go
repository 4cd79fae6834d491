package sim

import (
	"math"

	"github.com/abate-go/abate/sim/scenario"
)

// unworkable names settings that cannot do their work at the rates and fleet sizes of a scenario, often because nobody
// wrote them: they are defaults.
func unworkable(s *scenario.Scenario, v *scenario.Variant) []string {
	var list []string
	capacity := map[string]float64{}
	for _, x := range s.ServicesOf(v) {
		capacity[x.Name] = x.Capacity()
	}
	for i := range s.Clients {
		f := &s.Clients[i]
		for k := range f.Calls {
			c := &f.Calls[k]
			p := v.PolicyOf(f.Name, c.To).WithDefaults()
			if text := neverOpens(&p.Policy, perInstance(f)*c.Often()); text != "" {
				list = append(list, f.Name+" -> "+c.To+": "+text)
			}
			if text := muchReserve(&p.Policy, float64(max(f.Instances, 1)), capacity[c.To]); text != "" {
				list = append(list, f.Name+" -> "+c.To+": "+text)
			}
		}
	}
	return list
}

// perInstance is how many requests a second an instance of a fleet makes; +Inf where that changes or is not known.
func perInstance(f *scenario.Fleet) float64 {
	each := float64(max(f.Instances, 1))
	switch think := f.Think.Mean().Seconds(); {
	case len(f.Curve) > 0, f.Daily != (scenario.Daily{}), f.Once > 0:
		return math.Inf(1)
	case f.Users > 0 && think > 0:
		return float64(f.Users) / think / each
	case f.Rate > 0:
		return f.Rate / each
	}
	return math.Inf(1)
}
