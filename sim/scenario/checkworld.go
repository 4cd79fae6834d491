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
