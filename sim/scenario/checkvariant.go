package scenario

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate/internal/strictyaml"
)

// variantChecker looks at one variant: what its policy names, and its programs that know nothing of Abate.
type variantChecker struct {
	*mistakes
	s     *Scenario
	names *names
	v     *Variant
}

// check reports what is wrong with the variant, besides its services.
func (c *variantChecker) check(graph *callGraph) {
	v := c.v
	c.gates()
	c.naive()
	c.connectPolicies(graph)
	if v.PolicyFile != "" || v.Guards == nil { // production's file has more services than the scenario
		return
	}
	edges := c.edges()
	exists := make(map[string]bool, len(edges))
	for _, e := range edges {
		exists[e] = true
	}
	for i := range v.Guards.Services {
		name := v.Guards.Services[i].Name
		if c.names.isService[name] || exists[name] || graph.connect[name] {
			continue
		}
		problem, fix := c.policyOf(name, edges)
		c.Fail(c.policyNode("services", name), "", "variants."+v.Name+".policy.services", problem, fix)
		if c.Stopped() {
			return
		}
	}
}

// connectPolicies reports what the opening of connections does not know.
func (c *variantChecker) connectPolicies(graph *callGraph) {
	v := c.v
	if v.Guards == nil {
		return
	}
	for i := range v.Guards.Services {
		s := &v.Guards.Services[i]
		if graph.connect[s.Name] && s.Policy.Bulkhead.Enabled() {
			c.Fail(c.policyNode("services", s.Name), "", "variants."+v.Name+".policy.services",
				"the policy for connections "+strictyaml.Quote(s.Name)+" has a bulkhead, which the simulator does not give them",
				"the pool bounds how many are opened at once: remove the bulkhead")
		}
	}
}

// naive reports names of a variant's naive programs that are none, or call nobody.
func (c *variantChecker) naive() {
	v := c.v
	calls := map[string]bool{}
	for _, e := range c.edges() {
		caller, _, _ := strings.Cut(e, " -> ")
		calls[caller] = true
	}
	for i, name := range v.Naive {
		path := fmt.Sprintf("variants.%s.naive[%d]", v.Name, i)
		quoted := strictyaml.Quote(name)
		switch {
		case c.broken(path):
		case !c.names.isFleet[name] && !c.names.isService[name]:
			c.Add(path, "no such fleet or service "+quoted, suggest(name, slices.Concat(c.names.fleets, c.names.services)))
		case !calls[name]:
			c.Add(path, quoted+" calls nobody, so that there is nothing it could be naive about", remove)
		case slices.Contains(v.Naive[:i], name):
			c.Add(path, quoted+" is listed a second time", remove)
		}
	}
}

// policyOf says what is wrong with a name that a policy has, and the scenario has not.
func (c *variantChecker) policyOf(name string, edges []string) (problem, fix string) {
	switch quoted := strictyaml.Quote(name); {
	case strings.Contains(name, "->"):
		return "no call goes " + quoted, suggest(name, edges)
	case c.names.isFleet[name]:
		return quoted + " is a fleet, not a service", "a policy is about the service that is called, or about one call, " +
			"such as " + strictyaml.Quote(name+" -> payment")
	default:
		return "no such service " + quoted, suggest(name, c.names.services)
	}
}

// edges lists all calls of a variant as a policy names them.
func (c *variantChecker) edges() []string {
	var list []string
	add := func(caller string, calls []Call) {
		for _, c := range Edges(calls) {
			list = append(list, caller+" -> "+c.To)
		}
	}
	for i := range c.s.Clients {
		add(c.s.Clients[i].Name, c.s.Clients[i].Calls)
	}
	services := c.s.ServicesOf(c.v)
	for i := range services {
		add(services[i].Name, services[i].Calls)
	}
	return list
}

// policyNode is where a service stands in a list of an inline policy.
func (c *variantChecker) policyNode(list, name string) *yaml.Node {
	n := strictyaml.Resolve(&c.v.Policy)
	for _, key := range []string{list, name} {
		found := entry(n, key)
		if found == nil {
			return c.Node(fmt.Sprintf("variants.%s.policy", c.v.Name))
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

// gates reports gates of a variant's own policy in front of what is no service, and rate limits that have not a bucket
// for every caller: which ones share is decided by a hash that differs from process to process. Production's file has
// more services than the scenario.
func (c *variantChecker) gates() {
	v := c.v
	callers := 0
	for i := range c.s.Clients {
		callers += max(c.s.Clients[i].Instances, 1)
	}
	services := c.s.ServicesOf(v)
	for i := range services {
		callers += max(services[i].Replicas, 1)
	}
	for i := range services {
		p, _ := v.ProtectionOf(services[i].Name)
		if most := p.RateLimit.WithDefaults().MaxKeys; p.RateLimit.Enabled() && p.RateLimit.Key != "" && most < callers {
			c.Add("variants."+v.Name,
				fmt.Sprintf("of the gate of %s, rateLimit.maxKeys %d is below the %d callers of the scenario: a run could not be "+
					"repeated", strictyaml.Quote(services[i].Name), most, callers), "raise it")
		}
	}
	if v.PolicyFile != "" || v.Guards == nil {
		return
	}
	for i := range v.Guards.Protect {
		name := v.Guards.Protect[i].Name
		if c.names.isService[name] {
			continue
		}
		problem, fix := "no such service "+strictyaml.Quote(name), suggest(name, c.names.services)
		if c.names.isFleet[name] {
			problem, fix = strictyaml.Quote(name)+" is a fleet, not a service", "a gate stands in front of a service"
		}
		c.Fail(c.policyNode("protect", name), "", "variants."+v.Name+".policy.protect", problem, fix)
	}
}
