package population

import (
	"errors"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/registry"
)

// Supported returns an error that says what of a policy the clients of a population cannot have and how to switch it
// off, all at once; nil when there is nothing. A population knows the policy's Retry and AttemptTimeout, and its
// Timeout as Patience.
func Supported(p abate.Policy) error {
	var v validator
	for i := range registry.Guard {
		if part := &registry.Guard[i]; part.Enabled(&p) {
			v.add(part.Key, "is state that each client would keep for itself, which a population has no room for",
				"set "+part.Key+".disabled: true, or make the fleet small enough to have guards (rate and instances)")
		}
	}
	conditions := func(path string, list []string) {
		if len(list) > 0 {
			v.add(path, "has no effect on a population, whose clients put every failed attempt before the retry policy",
				"leave it away")
		}
	}
	conditions("retryOn", p.RetryOn)
	conditions("neverRetryOn", p.NeverRetryOn)
	return errors.Join(v.found...)
}
