package scenario

import (
	"fmt"
	"slices"
)

// reacts reports what is wrong with the parts of a service that change while it runs.
func (c *listChecker) reacts(prefix string, s *Service) {
	x := &s.Cache
	keys := x.Keys == 0 && c.Has(prefix+"."+s.Name+".cache") && !c.broken(prefix+"."+s.Name+".cache.keys")
	held := x.Capacity * max(s.Replicas, 1)
	for _, r := range []rule{
		{keys, "cache", "does not say how many keys there are", "for example cache: {keys: 10000}", nil},
		{x.Keys > 0 && x.Capacity > 0 && held >= x.Keys, "cache.capacity",
			fmt.Sprintf("%d replicas hold all %d keys", max(s.Replicas, 1), x.Keys), remove,
			[]string{"cache.keys", "replicas"}},
		{x.Keys > 0 && x.Keys < max(s.Replicas, 1), "cache.keys",
			fmt.Sprintf("%d keys are too few for %d replicas", x.Keys, s.Replicas), "raise it", []string{"replicas"}},
		{x.Keys > 0 && len(s.Calls) > 0, "calls", "a cache calls nobody: its caller does",
			"write else in the call of the cache", nil},
	} {
		c.obeyed(prefix, s.Name, r)
	}
	c.lives(prefix, s)
}

// lives reports what is wrong with how replicas of a service come and go.
func (c *listChecker) lives(prefix string, s *Service) {
	has := func(key string) bool { return c.Has(prefix + "." + s.Name + "." + key) }
	starts := s.Lives() || c.s.restarts(s.Name)
	a := s.Autoscale.WithDefaults(s.Replicas)
	scales := has("autoscale")
	rules := []rule{
		{has("start") && !starts, "start", "has no effect, because no replica ever starts",
			"set crash, probes or autoscale, or a fault restart", nil},
		{s.Start.Slower > 1 && s.Start.WarmUp == 0, "start.slower", "has no effect without warmUp", "for example warmUp: 60s",
			[]string{"start.warmUp"}},
		{s.Start.WarmUp > 0 && s.Start.Slower <= 1, "start.warmUp", "has no effect without slower", "for example slower: 5",
			[]string{"start.slower"}},
		{s.Start.MaxBackoff > 0 && s.Start.Backoff == 0, "start.maxBackoff", "has no effect without backoff", remove,
			[]string{"start.backoff"}},
		{has("crash") && s.Crash.Above == 0, "crash", "does not say of what", "for example crash: {above: 500}", nil},
		{s.Crash.Above > 0 && s.Crash.Above < s.Workers, "crash.above",
			fmt.Sprintf("%d requests kill a replica of %d workers", s.Crash.Above, s.Workers), "raise it, or lower workers",
			[]string{"workers"}},
		{scales && s.Autoscale.Target == 0, "autoscale.target", "is missing", "for example target: 60%", nil},
		{scales && s.Autoscale.Max == 0, "autoscale.max", "is missing", "for example max: 40", nil},
		{scales && s.Workers == 0, "autoscale", "has no effect without workers: there is no share that is busy",
			"remove it or set workers", []string{"workers"}},
		{a.Max > 0 && a.Max < max(s.Replicas, a.Min), "autoscale.max",
			fmt.Sprintf("%d is less than the %d replicas that there are", a.Max, max(s.Replicas, a.Min)), "raise it",
			[]string{"replicas", "autoscale.min"}},
		{s.IsCache() && s.Autoscale.Max > 0, "autoscale", "the keys of a cache that grows would have to move",
			"remove it or the cache", nil},
	}
	for i, p := range []Probe{s.Probes.Liveness, s.Probes.Readiness} {
		path := "probes." + [...]string{"liveness", "readiness"}[i]
		rules = append(rules, rule{has(path) && p.Period == 0, path, "does not say how often it is asked",
			"for example period: 10s", []string{path + ".period"}})
		if p = p.WithDefaults(); p.Period > 0 {
			rules = append(rules, rule{p.Timeout > p.Period, path + ".timeout",
				fmt.Sprintf("%s is longer than the period, %s", short(p.Timeout), short(p.Period)), "lower it, or raise period",
				[]string{path + ".period"}})
		}
	}
	for _, r := range rules {
		c.obeyed(prefix, s.Name, r)
	}
}

// misses reports calls to a cache, or instead of one, that cannot do anything about a miss.
func (c *listChecker) misses(prefix, at string, call *Call) {
	if !c.s.caches(call.To) {
		return
	}
	takes := func(e Else) bool { return e.Takes(OnMiss) }
	if !slices.ContainsFunc(call.Else, takes) {
		c.found(prefix, at, fmt.Sprintf("nobody is asked for what the cache %s has not got", call.To),
			"for example {to: "+call.To+", else: [payment-db]}")
	}
}
