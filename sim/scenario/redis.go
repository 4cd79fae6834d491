package scenario

import (
	"slices"

	"github.com/abate-go/abate/sim/distribution"
)

// Redis is the way to what instances share.
type Redis struct {
	// Latency of the network between an instance and Redis, one way. Default: none.
	Latency distribution.Distribution `yaml:"latency" example:"exponential 1ms"`
}

// shares reports whether the instances of a fleet or service share a retry budget, what breakers find out, or the limit
// of their gates in any variant; of none named, whether any do.
func (s *Scenario) shares(name string) bool {
	return slices.ContainsFunc(s.Variants, func(v Variant) bool {
		does := func(caller string, calls []Call) bool {
			return (name == "" || name == caller) && slices.ContainsFunc(Edges(calls), func(c Call) bool {
				return v.SharesBudget(caller, c.To) || v.SharesFindings(caller, c.To)
			})
		}
		return slices.ContainsFunc(s.Clients, func(f Fleet) bool { return does(f.Name, f.Calls) }) ||
			slices.ContainsFunc(s.ServicesOf(&v), func(x Service) bool {
				return does(x.Name, x.Calls) || (name == "" || name == x.Name) && v.SharesLimit(x.Name)
			})
	})
}
