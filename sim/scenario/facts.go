package scenario

import (
	"math"
	"slices"
)

// gated reports whether a service stands behind gates in any variant.
func (s *Scenario) gated(service string) bool {
	for i := range s.Variants {
		if _, ok := s.Variants[i].ProtectionOf(service); ok {
			return true
		}
	}
	return false
}

// hangs reports whether a fault makes requests wait at a service, with or without workers.
func (s *Scenario) hangs(service string) bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool {
		return f.Outage == service && (f.Mode == "" || f.Mode == Hang)
	})
}

// caches reports whether a service is a cache in any variant.
func (s *Scenario) caches(service string) bool {
	found := false
	eachList(s, func(_ string, services []Service) {
		found = found || slices.ContainsFunc(services, func(x Service) bool { return x.Name == service && x.IsCache() })
	})
	return found
}

// restarts reports whether a fault or an operator restarts a service.
func (s *Scenario) restarts(service string) bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool {
		return f.Restart == service || f.Operator == service && f.Action == DoRestart
	})
}

// lives reports whether the replicas of a service come and go by themselves in any variant.
func (s *Scenario) lives(service string) bool {
	found := false
	eachList(s, func(_ string, services []Service) {
		found = found || slices.ContainsFunc(services, func(x Service) bool { return x.Name == service && x.Lives() })
	})
	return found
}

// closed reports whether a fleet is a closed loop, or sends a fixed number of requests.
func (s *Scenario) closed(fleet string) bool {
	return slices.ContainsFunc(s.Clients, func(f Fleet) bool { return f.Name == fleet && !f.Open() })
}

// tooSmall reports whether a replica has so few workers that a part of them is as many.
func (s *Scenario) tooSmall(service string, factor float64) bool {
	return slices.ContainsFunc(s.Services, func(x Service) bool {
		return x.Name == service && x.Workers > 0 && max(1, math.Round(float64(x.Workers)*factor)) >= float64(x.Workers)
	})
}

// consumes reports whether a fleet consumes; of none named, whether any does.
func (s *Scenario) consumes(fleet string) bool {
	return slices.ContainsFunc(s.Clients, func(f Fleet) bool {
		return f.Consumes() && (fleet == "" || f.Name == fleet)
	})
}

// retriesLater reports whether a fleet that consumes has retry topics in any variant.
func (s *Scenario) retriesLater(fleet string) bool {
	return slices.ContainsFunc(s.Clients, func(f Fleet) bool {
		return f.Consumes() && len(f.Calls) == 1 && (fleet == "" || f.Name == fleet) &&
			slices.ContainsFunc(s.Variants, func(v Variant) bool { return v.PolicyOf(f.Name, f.Calls[0].To).Kafka.Enabled() })
	})
}
