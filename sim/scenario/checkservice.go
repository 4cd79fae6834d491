package scenario

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate/internal/strictyaml"
)

// found reports a mistake in a list of services, or of fleets: in those of a variant only if those of the scenario do
// not have it already, or the variant says it itself.
func (c *checker) found(prefix, at, problem, fix string) {
	what := at + ": " + problem
	if prefix == "services" {
		c.base[what] = true
	} else if c.base[what] && !c.Has(prefix+"."+at) {
		return
	}
	if !c.broken(prefix + "." + at) {
		c.Add(prefix+"."+at, problem, fix)
	}
}

// everyService reports what is wrong with services, the scenario's own or as a variant has them.
func (c *checker) everyService(prefix string, services []Service) {
	own := prefix == "services"
	calls := own
	for i := range services {
		s := &services[i]
		if !own && !c.Has(prefix+"."+s.Name) {
			continue
		}
		c.service(prefix, s)
		if own || c.Has(prefix+"."+s.Name+".calls") {
			calls = true
			c.calls(prefix, s.Name, s.Calls)
		}
	}
	if calls {
		c.cycles(prefix, services)
	}
}

// service reports what is wrong with one service.
func (c *checker) service(prefix string, s *Service) {
	q := &s.Queue
	bounded := q.Limit > 0 || q.None || q.Work > 0
	idle := s.Workers == 0 && !c.hangs(s.Name)
	none := len(s.Calls) == 0
	for _, r := range []rule{
		{s.Workers > 0 && s.ServiceTime.IsZero() && none, "serviceTime", "workers that need no time have endless capacity",
			"for example serviceTime: exponential 50ms, or remove workers", []string{"workers", "calls"}},
		{s.Parallel && none, "parallel", "has no effect without calls", remove, []string{"calls"}},
		{s.CallsFirst && none, "callsFirst", "has no effect without calls", remove, []string{"calls"}},
		{s.SlowsQueued > 0 && idle, "slowsQueued", "has no effect without workers: nobody waits", "remove it or set workers",
			[]string{"workers"}},
		{s.SlowsQueuedMax > 0 && s.SlowsQueued == 0, "slowsQueuedMax", "has no effect without slowsQueued", remove,
			[]string{"slowsQueued"}},
		{*q != (Queue{}) && idle, "queue", "has no effect without workers: nobody waits", "remove it or set workers",
			[]string{"workers"}},
		{q.None && q.Limit > 0, "queue.none", "excludes limit", "keep one of the two", nil},
		{q.None && q.Work > 0, "queue.none", "excludes work", "keep one of the two", nil},
		{q.Limit > 0 && q.Work > 0, "queue.work", "excludes limit", "keep one of the two", nil},
		{q.Work > 0 && s.ServiceTime.IsZero(), "queue.work", "has no effect without a serviceTime",
			"bound the queue with limit", []string{"serviceTime"}},
		{q.WhenFull != "" && !bounded, "queue.whenFull", "has no effect on a queue without bound",
			"set limit, work or none, or remove it", []string{"queue.limit", "queue.work", "queue.none"}},
		{q.Target > 0 && q.Order != CoDel, "queue.target", "has no effect without order: codel", remove,
			[]string{"queue.order"}},
		{q.Interval > 0 && q.Order != CoDel, "queue.interval", "has no effect without order: codel", remove,
			[]string{"queue.order"}},
		{s.Connections.Cores > 0 && s.Connections.Cost.IsZero(), "connections.cores", "has no effect without a cost", remove,
			[]string{"connections.cost"}},
	} {
		at := s.Name + "." + r.key
		depends := func(key string) bool { return c.broken(prefix + "." + s.Name + "." + key) }
		// A variant cannot take back what has no effect any more because of what it says.
		inherited := strings.HasPrefix(r.problem, "has no effect") && !c.Has(prefix+"."+at)
		if r.wrong && !inherited && !slices.ContainsFunc(r.needs, depends) {
			c.found(prefix, at, r.problem, r.fix)
		}
	}
}

// hangs reports whether a fault makes requests wait at a service, with or without workers.
func (c *checker) hangs(service string) bool {
	return slices.ContainsFunc(c.s.Faults, func(f Fault) bool {
		return f.Outage == service && (f.Mode == "" || f.Mode == Hang)
	})
}

// variant reports what is wrong with a variant.
func (c *checker) variant(v *Variant) {
	if v.Overrides != nil {
		c.everyService("variants."+v.Name+".services", v.Overrides)
	}
	c.gates(v)
	c.naive(v)
	c.connectPolicies(v)
	if v.PolicyFile != "" || v.Guards == nil { // production's file has more services than the scenario
		return
	}
	edges := c.edges(v)
	exists := make(map[string]bool, len(edges))
	for _, e := range edges {
		exists[e] = true
	}
	for i := range v.Guards.Services {
		name := v.Guards.Services[i].Name
		if c.isService[name] || exists[name] || c.connect[name] {
			continue
		}
		problem, fix := c.policyOf(name, edges)
		c.Fail(c.policyNode(v, "services", name), "", "variants."+v.Name+".policy.services", problem, fix)
		if c.Stopped() {
			return
		}
	}
}

// connectPolicies reports what the opening of connections does not know.
func (c *checker) connectPolicies(v *Variant) {
	if v.Guards == nil {
		return
	}
	for i := range v.Guards.Services {
		s := &v.Guards.Services[i]
		if c.connect[s.Name] && s.Policy.Bulkhead.Enabled() {
			c.Fail(c.policyNode(v, "services", s.Name), "", "variants."+v.Name+".policy.services",
				"the policy for connections "+strictyaml.Quote(s.Name)+" has a bulkhead, which the simulator does not give them",
				"the pool bounds how many are opened at once: remove the bulkhead")
		}
	}
}

// naive reports names of a variant's naive programs that are none, or call nobody.
func (c *checker) naive(v *Variant) {
	calls := map[string]bool{}
	for _, e := range c.edges(v) {
		caller, _, _ := strings.Cut(e, " -> ")
		calls[caller] = true
	}
	for i, name := range v.Naive {
		path := fmt.Sprintf("variants.%s.naive[%d]", v.Name, i)
		quoted := strictyaml.Quote(name)
		switch {
		case c.broken(path):
		case !c.isFleet[name] && !c.isService[name]:
			c.Add(path, "no such fleet or service "+quoted, suggest(name, slices.Concat(c.fleets, c.services)))
		case !calls[name]:
			c.Add(path, quoted+" calls nobody, so that there is nothing it could be naive about", remove)
		case slices.Contains(v.Naive[:i], name):
			c.Add(path, quoted+" is listed a second time", remove)
		}
	}
}

// policyOf says what is wrong with a name that a policy has, and the scenario has not.
func (c *checker) policyOf(name string, edges []string) (problem, fix string) {
	switch quoted := strictyaml.Quote(name); {
	case strings.Contains(name, "->"):
		return "no call goes " + quoted, suggest(name, edges)
	case c.isFleet[name]:
		return quoted + " is a fleet, not a service", "a policy is about the service that is called, or about one call, " +
			"such as " + strictyaml.Quote(name+" -> payment")
	default:
		return "no such service " + quoted, suggest(name, c.services)
	}
}

// edges lists all calls of a variant as a policy names them.
func (c *checker) edges(v *Variant) []string {
	var list []string
	add := func(caller string, calls []Call) {
		for i := range calls {
			list = append(list, caller+" -> "+calls[i].To)
		}
	}
	for i := range c.s.Clients {
		add(c.s.Clients[i].Name, c.s.Clients[i].Calls)
	}
	services := c.s.ServicesOf(v)
	for i := range services {
		add(services[i].Name, services[i].Calls)
	}
	return list
}

// policyNode is where a service stands in a list of an inline policy.
func (c *checker) policyNode(v *Variant, list, name string) *yaml.Node {
	n := strictyaml.Resolve(&v.Policy)
	for _, key := range []string{list, name} {
		found := entry(n, key)
		if found == nil {
			return c.Node(fmt.Sprintf("variants.%s.policy", v.Name))
		}
		if key == name {
			return found[0]
		}
		n = found[1]
	}
	return n
}

// entry is a key of a mapping and its value; nil when it is merged in from elsewhere.
func entry(n *yaml.Node, key string) []*yaml.Node {
	if n = strictyaml.Resolve(n); n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i : i+2]
		}
	}
	return nil
}
