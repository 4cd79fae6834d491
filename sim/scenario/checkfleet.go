package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/internal/strictyaml"
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
		{has("users") && !has("think"), "", "users need a think time", "for example think: exponential 5s", nil},
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
	c.calls("clients", f.Name, f.Calls)
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

// calls reports what is wrong with the calls of a fleet or service. prefix is the path of the list that it stands in.
func (c *checker) calls(prefix, caller string, calls []Call) {
	seen := map[string]bool{}
	for i := range calls {
		call := &calls[i]
		at := fmt.Sprintf("%s.calls[%d]", caller, i)
		c.called[call.To] = true
		c.pooled[call.To] = c.pooled[call.To] || call.Pool > 0
		name := strictyaml.Quote(call.To)
		c.connects(prefix, at, call)
		switch {
		case c.broken(prefix + "." + at + ".to"):
		case call.To == "":
			c.unclear = true
			c.found(prefix, at, "the call names no service", "for example {to: payment-db, times: 2}")
		case !c.isService[call.To] && c.isFleet[call.To]:
			c.unclear = true
			c.found(prefix, at+".to", name+" is a fleet, not a service", "only services are called")
		case len(c.services) == 0: // that was said
		case !c.isService[call.To]:
			c.unclear = true
			c.found(prefix, at+".to", "no such service "+name, suggest(call.To, c.services))
		case seen[call.To]:
			c.found(prefix, at+".to", name+" is called a second time",
				"write one call with times: 2, or with the sum of the times")
		}
		seen[call.To] = true
	}
}

// connects reports a policy for connections that there is no use for, or that nobody has.
func (c *checker) connects(prefix, at string, call *Call) {
	if call.Connect == "" {
		return
	}
	c.connect[call.Connect] = true
	listed := slices.ContainsFunc(c.s.Variants, func(v Variant) bool {
		_, ok := v.ConnectPolicy(call)
		return ok || v.Guards == nil && (v.PolicyFile != "" || !v.Policy.IsZero()) // its policy could not be read
	})
	switch {
	case call.Pool == 0 && !c.broken(prefix+"."+at+".pool"):
		c.found(prefix, at+".connect", "has no effect without a pool", "set pool, for example pool: 20")
	case !listed:
		c.found(prefix, at+".connect", "no variant's policy lists "+strictyaml.Quote(call.Connect),
			"for example policy: {services: {"+call.Connect+": {preset: connections}}}")
	}
}

// suggest is strictyaml.Suggest for names of which there may be none, or too many to compare.
func suggest(name string, names []string) string {
	const most = 1000
	if len(names) == 0 || len(names) > most {
		return ""
	}
	return strictyaml.Suggest(name, slices.Clone(names))
}

// cycles reports services that call each other in a circle, which would be endless.
func (c *checker) cycles(prefix string, services []Service) {
	index := map[string]int{}
	for i := range services {
		index[services[i].Name] = i
	}
	const onPath, done = 1, 2
	state := make([]int, len(services))
	var path []string
	var visit func(i int)
	visit = func(i int) {
		state[i] = onPath
		path = append(path, services[i].Name)
		for k, call := range services[i].Calls {
			next, ok := index[call.To]
			switch {
			case !ok || state[next] == done:
			case state[next] == onPath:
				circle := append(slices.Clone(path[slices.Index(path, call.To):]), call.To)
				c.found(prefix, fmt.Sprintf("%s.calls[%d].to", services[i].Name, k), "the calls go in a circle: "+shorten(circle),
					"remove one of them")
			default:
				visit(next)
			}
		}
		path = path[:len(path)-1]
		state[i] = done
	}
	for i := range services {
		if state[i] == 0 {
			visit(i)
		}
	}
}

// shorten writes a circle of calls on one line.
func shorten(circle []string) string {
	const most = 12
	if n := len(circle); n > most {
		circle = slices.Concat(circle[:most/2], []string{fmt.Sprintf("(%d more)", n-most)}, circle[n-most/2:])
	}
	return strings.Join(circle, " -> ")
}
