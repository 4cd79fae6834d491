package spring

import (
	"regexp"
	"slices"
	"strings"
)

var (
	hump = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	// about are ends of an instance's name that say what the instance does, not what it is for.
	about = regexp.MustCompile(`-(circuit-?breaker|cb|breaker|retry|time-?limiter|bulkhead|rate-?limiter|api|client)$`)
)

// callees returns the names under which the service of an instance may be known, the instance's own first:
// orderServiceRetry may be for order-service, inventory for inventory-service. The program itself is not among them.
func callees(instance, program string) []string {
	all := []string{instance}
	name := strings.ReplaceAll(strings.ToLower(hump.ReplaceAllString(instance, "$1-$2")), "_", "-")
	for shorter := name; ; name = shorter {
		stem := strings.TrimSuffix(name, "-service")
		for _, n := range []string{name, stem, stem + "-service", stem + "service"} {
			if n != "" && !strings.EqualFold(n, program) && !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
		if shorter = about.ReplaceAllString(name, ""); shorter == name {
			return all
		}
	}
}
