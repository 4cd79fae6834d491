package scenario

import (
	"fmt"
	"slices"
	"time"
)

// leastThink is the least mean of a think time: a closed loop without one would spin at a single moment.
const leastThink = time.Millisecond

// fleet reports what is wrong with one fleet.
func (c *checker) fleet(f *Fleet) {
	path := "clients." + f.Name
	has := func(key string) bool { return c.Has(path + "." + key) }
	c.oneLoad(path, has)
	positive := slices.ContainsFunc(f.Curve, func(p Point) bool { return p.Rate > 0 })
	open, closed := has("rate") || has("curve"), has("users") || has("once")
	c.obey(path, []rule{
		{has("rate") && has("curve"), "rate", "has no effect beside curve", "keep one of the two", nil},
		{has("curve") && !positive, "curve", "no point has a rate above 0", "for example curve: [{at: 0s, rate: 500}]", nil},
		{has("arrivals") && !open, "arrivals", "has no effect without rate or curve", remove, nil},
		{has("between") && !has("curve"), "between", "has no effect without curve", remove, nil},
		{has("daily") && !has("rate"), "daily", "has no effect without rate, the mean of the day", remove, nil},
		{has("daily") && f.Daily.Swing == 0, "daily", "has no effect without a swing", "for example daily: {swing: 40%}",
			[]string{"daily.swing"}},
		{has("within") && !has("once"), "within", "has no effect without once", remove, nil},
		{has("within") && c.s.Duration > 0 && f.Within > c.s.Duration, "within",
			fmt.Sprintf("%s is longer than the run of %s", short(f.Within), short(c.s.Duration)),
			"lower it or raise duration", nil},
		{has("think") && !has("users"), "think", "has no effect without users", remove, nil},
		{has("users") && !has("think") && !has("session"), "", "users need a think time", "for example think: exponential 5s",
			nil},
		{has("users") && has("think") && f.Think.Mean() < leastThink, "think",
			fmt.Sprintf("a mean of %s makes users ask without end at one moment", short(f.Think.Mean())),
			"allowed: a mean of at least 1ms; for example exponential 5s", nil},
		{has("method") && !closed, "method", "has no effect without users or once", remove, nil},
		{len(f.Calls) == 0, "calls", "the fleet calls no service", "for example calls: [payment-service]", nil},
	})
	for i := 1; i < len(f.Curve); i++ {
		at := fmt.Sprintf("curve[%d].at", i)
		before, now := f.Curve[i-1].At, f.Curve[i].At
		c.obey(path,
			[]rule{{now <= before, at, fmt.Sprintf("%s is not after the point before it, %s", short(now), short(before)),
				"put the points in order of time",
				[]string{fmt.Sprintf("curve[%d].at", i-1)}}})
	}
	for i := range f.Curve {
		at, end := f.Curve[i].At, c.s.Duration
		c.obey(path, []rule{
			{end > 0 && at > end, fmt.Sprintf("curve[%d].at", i),
				fmt.Sprintf("%s is past the end of the run, %s", short(at), short(end)), "remove the point or raise duration", nil},
		})
	}
	c.session(f, path, has)
	c.topic(f, path)
}

// oneLoad reports a fleet that offers its load in no way, or in several.
func (c *checker) oneLoad(path string, has func(string) bool) {
	var ways []string
	for _, way := range [][]string{{"curve", "rate"}, {"users"}, {"once"}} {
		if i := slices.IndexFunc(way, has); i >= 0 {
			ways = append(ways, way[i])
		}
	}
	if len(ways) == 0 {
		c.obey(path, []rule{
			{true, "", "the fleet offers no load", "write rate, curve, users or once; for example rate: 100", nil},
		})
		return
	}
	for _, way := range ways[1:] {
		c.Add(path+"."+way, way+" excludes "+ways[0], "keep one of the two, or make two fleets")
	}
}
