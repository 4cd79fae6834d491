package scenario

import (
	"fmt"

	"github.com/abate-go/abate/internal/strictyaml"
)

// gates reports gates of a variant's own policy in front of what is no service, and rate limits that have not a bucket
// for every caller: which ones share is decided by a hash that differs from process to process. Production's file has
// more services than the scenario.
func (c *checker) gates(v *Variant) {
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
		if c.isService[name] {
			continue
		}
		problem, fix := "no such service "+strictyaml.Quote(name), suggest(name, c.services)
		if c.isFleet[name] {
			problem, fix = strictyaml.Quote(name)+" is a fleet, not a service", "a gate stands in front of a service"
		}
		c.Fail(c.policyNode(v, "protect", name), "", "variants."+v.Name+".policy.protect", problem, fix)
	}
}

// gated reports whether a service stands behind gates in any variant.
func (c *checker) gated(service string) bool {
	for i := range c.s.Variants {
		if _, ok := c.s.Variants[i].ProtectionOf(service); ok {
			return true
		}
	}
	return false
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
