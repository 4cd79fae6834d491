package tune

import (
	"math"
	"time"

	"github.com/abate-go/abate/sim/kernel"
	"github.com/abate-go/abate/sim/scenario"
)

// spread is how far a perturbed copy is from its scenario, up and down.
const spread = 0.5

// perturb returns a copy of a scenario with other rates, times, sizes and faults, each by itself up to a half more or
// less. The patience of users and the time limits of the policy are what people decided, and stay.
func perturb(s *scenario.Scenario, number uint64) *scenario.Scenario {
	stream := kernel.NewStream(0x74756e65, number)
	factor := func() float64 { return 1 - spread + float64(2*spread*stream.Float64()) }
	c, v := s.Copy(&s.Variants[0])
	c.Services = v.Overrides
	for i := range c.Clients {
		f, by := &c.Clients[i], factor()
		f.Rate *= by
		for k := range f.Curve {
			f.Curve[k].Rate *= by
		}
		f.Users, f.Once = whole(f.Users, by), whole(f.Once, by)
		f.Instances = whole(f.Instances, factor())
	}
	for i := range c.Services {
		x := &c.Services[i]
		x.ServiceTime = x.ServiceTime.Times(factor())
		x.Workers = whole(x.Workers, factor())
		x.Queue.Limit = whole(x.Queue.Limit, factor())
		x.ErrorRate = math.Min(x.ErrorRate*factor(), 1)
	}
	begin, end := s.Trouble()
	longer := factor()
	for i := range c.Faults {
		f := &c.Faults[i]
		at := begin + time.Duration(float64(f.At-begin)*longer)
		f.At, f.For = at.Round(time.Millisecond), time.Duration(float64(f.For)*longer).Round(time.Millisecond)
		f.Rollout = min(time.Duration(float64(f.Rollout)*longer).Round(time.Millisecond), max(f.For, f.Rollout))
		if f.Rate > 0 {
			f.Rate = math.Min(f.Rate*factor(), 1)
		}
		if f.Factor > 1 {
			f.Factor = 1 + (f.Factor-1)*factor()
		}
	}
	c.Duration += time.Duration(float64(end-begin) * (longer - 1)).Round(time.Millisecond)
	return c
}

// whole multiplies a number; at least one is left of what is there.
func whole(n int, factor float64) int {
	if n == 0 {
		return 0
	}
	return max(1, int(math.Round(float64(n)*factor)))
}
