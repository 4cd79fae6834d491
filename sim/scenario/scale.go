package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/abate-go/abate/policy/budget"
)

// maxScale is the largest scale that a file may have.
const maxScale = 1_000_000

// scale divides the scenario by its scale, or reports every number that it does not divide.
func (c *checker) scale() {
	n := c.s.Scale
	if n <= 1 {
		return
	}
	if problems := c.s.misfits(n); len(problems) > 0 {
		fix := "allowed: " + c.s.otherScales(n)
		for _, p := range problems {
			c.Add("scale", p, fix)
		}
		return
	}
	c.s.divide(n)
}

// part is one whole number that scale divides, and by how much: capacity may be divided among two numbers.
type part struct {
	path  string
	value *int
	by    int
}

// fleetParts lists the whole numbers of a fleet. Each of its instances sees the same load as before, so that guards and
// pools are the same; only where there is but one instance it has to get smaller itself.
func fleetParts(f *Fleet, n int) []part {
	path := "clients." + f.Name
	list := []part{{path + ".users", &f.Users, n}, {path + ".once", &f.Once, n},
		{path + ".topic.partitions", &f.Topic.Partitions, n}, {path + ".topic.keys", &f.Topic.Keys, n}}
	if f.Instances > 1 {
		return append(list, part{path + ".instances", &f.Instances, n})
	}
	return append(list, pools(path, f.Calls, n)...)
}

// pools lists the pools of a caller that gets smaller itself.
func pools(path string, calls []Call, by int) []part {
	var list []part
	for i := range calls {
		list = append(list, part{fmt.Sprintf("%s.calls[%d].pool", path, i), &calls[i].Pool, by})
		for k := range calls[i].Else {
			list = append(list, part{fmt.Sprintf("%s.calls[%d].else[%d].pool", path, i, k), &calls[i].Else[k].Pool, by})
		}
	}
	return list
}

// serviceParts lists the whole numbers of a service: replicas as far as n divides them, and what one replica has by the
// rest of n.
func serviceParts(path string, s *Service, n int) (list []part, rest int) {
	common := gcd(max(s.Replicas, 1), n)
	rest = n / common
	path += "." + s.Name
	return append([]part{
		{path + ".replicas", &s.Replicas, common},
		{path + ".workers", &s.Workers, rest},
		{path + ".queue.limit", &s.Queue.Limit, rest},
		{path + ".crash.above", &s.Crash.Above, rest},
		{path + ".autoscale.min", &s.Autoscale.Min, common},
		{path + ".autoscale.max", &s.Autoscale.Max, common},
		{path + ".autoscale.step", &s.Autoscale.Step, common},
		{path + ".cache.keys", &s.Cache.Keys, n},
		{path + ".cache.capacity", &s.Cache.Capacity, rest},
		{path + ".connections.max", &s.Connections.Max, rest},
		{path + ".connections.backlog", &s.Connections.Backlog, rest},
		{path + ".connections.cores", &s.Connections.Cores, rest},
	}, pools(path, s.Calls, rest)...), rest
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// misfits says what a scale would not keep.
func (s *Scenario) misfits(n int) []string {
	var list []string
	said := map[string]bool{}
	add := func(key, problem string) {
		if !said[key] {
			said[key] = true
			list = append(list, problem)
		}
	}
	check := func(parts []part, drop string) {
		for _, p := range parts {
			if *p.value%p.by != 0 {
				add(strings.TrimPrefix(p.path, drop)+strconv.Itoa(*p.value),
					fmt.Sprintf("%d does not divide %s (%d)", n, p.path, *p.value))
			}
		}
	}
	for i := range s.Clients {
		check(fleetParts(&s.Clients[i], n), "")
		if problem := s.absolute(&s.Clients[i], n); problem != "" {
			add(s.Clients[i].Name+" policy", problem)
		}
	}
	eachList(s, func(prefix string, services []Service) {
		for i := range services {
			x := &services[i]
			parts, rest := serviceParts(prefix, x, n)
			check(parts, prefix)
			if problem := s.tooWide(x.Name, n, rest); problem != "" {
				add(x.Name+" gate", problem)
			}
			if rest > 1 && x.OptimisticLock {
				add(x.Name+" lock", fmt.Sprintf("%d leaves %s.%s fewer requests that collide (optimisticLock)", n, prefix, x.Name))
			}
			if rest > 1 && x.Connections.Cores == 0 && !x.Connections.Cost.IsZero() {
				add(x.Name+" cores", fmt.Sprintf("%d does not divide %s.%s.connections.cores (1, the default)", n, prefix, x.Name))
			}
			for k := range s.Faults {
				if f := &s.Faults[k]; f.Share > 0 && f.hits(x.Name) &&
					!keepsShare(max(x.Replicas, 1), gcd(max(x.Replicas, 1), n), f.Share) {
					add(fmt.Sprint(x.Name, k),
						fmt.Sprintf("%d leaves too few replicas in %s.%s for the share of faults[%d]", n, prefix, x.Name, k))
				}
			}
		}
	})
	for k := range s.Faults {
		for i := range s.Clients {
			if f, x := &s.Faults[k], &s.Clients[i]; f.Share > 0 && f.hits(x.Name) && x.Instances > 1 &&
				!keepsShare(x.Instances, n, f.Share) {
				add(fmt.Sprint(x.Name, k), fmt.Sprintf("%d leaves too few instances in clients.%s for the share of faults[%d]",
					n, x.Name, k))
			}
		}
	}
	return list
}

// tooWide says which number of a service's gates a scale would not keep: each replica has a gate, so that fewer
// replicas with as many workers each have the same gates, but a smaller replica has not. rest is by how much a replica
// gets smaller.
func (s *Scenario) tooWide(service string, n, rest int) string {
	for i := range s.Variants {
		v := &s.Variants[i]
		p, ok := v.ProtectionOf(service)
		switch limit := &p.RateLimit; {
		case !ok:
		case rest > 1:
			return fmt.Sprintf("%d leaves the gate of %s in variant %s as wide as in full size, for replicas with fewer workers",
				n, service, v.Name)
		case limit.Enabled() && limit.Fleet:
			return fmt.Sprintf("%d leaves the fleet's rate limit of %s in variant %s as high as in full size", n,
				service, v.Name)
		case limit.Enabled() && limit.Key != "", p.Shed.Enabled() && p.Shed.MaxCallerShare > 0:
			return fmt.Sprintf("%d leaves the gate of %s in variant %s fewer callers to tell apart", n, service, v.Name)
		}
	}
	return ""
}

// absolute says which number of a policy a scale would not keep: where a fleet is one instance its guards see less
// load at a smaller size, and what they count in calls means more.
func (s *Scenario) absolute(f *Fleet, n int) string {
	if n == 1 || f.Instances > 1 {
		return ""
	}
	for i := range s.Variants {
		for _, c := range Edges(f.Calls) {
			p := s.Variants[i].PolicyOf(f.Name, c.To)
			switch {
			case f.Consumes() && p.Kafka.Drain.MaxRate > 0:
				return fmt.Sprintf("%d leaves the drain of variant %s as fast as in full size, for the one instance of clients.%s",
					n, s.Variants[i].Name, f.Name)
			case p.RateLimit.Enabled():
				return fmt.Sprintf("%d leaves the rate limit of variant %s as high as in full size, for the one instance of "+
					"clients.%s", n, s.Variants[i].Name, f.Name)
			case p.Bulkhead.Enabled():
				return fmt.Sprintf("%d leaves the bulkhead of variant %s as wide as in full size, for the one instance of "+
					"clients.%s", n, s.Variants[i].Name, f.Name)
			case p.RetryBudget.Enabled() && p.RetryBudget.Kind == budget.Tokens:
				return fmt.Sprintf("%d leaves the retry budget's tokens of variant %s as many as in full size, for the one "+
					"instance of clients.%s", n, s.Variants[i].Name, f.Name)
			}
		}
	}
	return ""
}

// eachList visits the services of the scenario, and then those of each variant that has its own.
func eachList(s *Scenario, visit func(prefix string, services []Service)) {
	visit("services", s.Services)
	for i := range s.Variants {
		if v := &s.Variants[i]; v.Overrides != nil {
			visit("variants."+v.Name+".services", v.Overrides)
		}
	}
}

func (f *Fault) hits(name string) bool {
	_, target := f.Kind()
	return target == name
}

// hit is how many of so many instances a share of them is.
func hit(instances int, share float64) int {
	whole := int(float64(instances) * share)
	if float64(whole) < float64(instances)*share-1e-9 {
		whole++
	}
	return whole
}

// keepsShare reports whether a fault hits the same part of the instances once there are fewer.
func keepsShare(instances, by int, share float64) bool {
	return instances%by != 0 || hit(instances, share) == by*hit(instances/by, share)
}

// otherScales names scales near n that the scenario could have.
func (s *Scenario) otherScales(n int) string {
	candidates := s.divisors()
	slices.SortFunc(candidates, func(a, b int) int {
		return cmp.Or(cmp.Compare(distance(a, n), distance(b, n)), cmp.Compare(a, b))
	})
	const most, tries = 3, 40
	var good []int
	for i, m := range candidates {
		if i == tries || len(good) == most {
			break
		}
		if len(s.misfits(m)) == 0 {
			good = append(good, m)
		}
	}
	if len(good) == 0 {
		return "1"
	}
	slices.Sort(good)
	words := make([]string, len(good))
	for i, m := range good {
		words[i] = strconv.Itoa(m)
	}
	return "a common divisor such as " + strings.Join(words, ", ")
}

func distance(a, b int) int { return max(a-b, b-a) }

// divisors lists the numbers above 1 that divide everything that has to be divided whole; nil when nothing has to.
func (s *Scenario) divisors() []int {
	common := 0
	for i := range s.Clients {
		f := &s.Clients[i]
		common = gcd(gcd(common, f.Users), f.Once)
		if f.Instances > 1 {
			common = gcd(common, f.Instances)
		}
	}
	eachList(s, func(_ string, services []Service) {
		for i := range services {
			common = gcd(common, max(services[i].Replicas, 1)*services[i].Workers)
		}
	})
	var list []int
	for n := 2; n <= min(common, maxScale); n++ {
		if common%n == 0 {
			list = append(list, n)
		}
	}
	return list
}

// divide makes everything smaller by a factor that fits.
func (s *Scenario) divide(n int) {
	s.narrowed = map[string]int{}
	for i := range s.Clients {
		f := &s.Clients[i]
		if f.Instances <= 1 {
			s.single = append(s.single, f.Name)
		}
		f.Rate /= float64(n)
		for k := range f.Curve {
			f.Curve[k].Rate /= float64(n)
		}
		f.Calls = ownCalls(f.Calls)
		for _, p := range fleetParts(f, n) {
			*p.value /= p.by
		}
	}
	eachList(s, func(prefix string, services []Service) {
		for i := range services {
			x := &services[i]
			x.Calls = ownCalls(x.Calls)
			parts, rest := serviceParts(prefix, x, n)
			s.narrowed[x.Name] = max(s.narrowed[x.Name], rest)
			for _, p := range parts {
				*p.value /= p.by
			}
			// With fewer workers and shorter lines, each request in them counts for more.
			x.SlowsDown *= float64(rest)
			x.SlowsQueued *= float64(rest)
		}
	})
}

// ownCalls copies calls that may be shared.
func ownCalls(calls []Call) []Call {
	calls = slices.Clone(calls)
	for i := range calls {
		calls[i].Else = slices.Clone(calls[i].Else)
	}
	return calls
}

// SharesLimit reports whether the gates of a service share their rate limit.
func (v *Variant) SharesLimit(service string) bool {
	p, ok := v.ProtectionOf(service)
	return ok && p.RateLimit.Enabled() && p.RateLimit.Fleet
}

// SharesBudget reports whether the instances of a caller share the retry budget of their calls to a service.
func (v *Variant) SharesBudget(caller, callee string) bool {
	b := v.PolicyOf(caller, callee).RetryBudget
	return b.Enabled() && b.Fleet && b.Kind != budget.Tokens
}
