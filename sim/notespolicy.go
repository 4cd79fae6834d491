package sim

import (
	"fmt"
	"math"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
)

// neverOpens says so of a breaker whose window holds too few calls, even if each is tried as often as it may be and
// four standard deviations more come than on average.
func neverOpens(p *abate.Policy, rate float64) string {
	b := p.CircuitBreaker.WithDefaults()
	window := b.SlidingWindow.Duration.Seconds()
	if !b.Enabled() || b.Kind == breaker.Adaptive || b.FailureThreshold > 0 || window == 0 || b.Fleet {
		return ""
	}
	calls, attempts := rate*window, float64(1+p.MaxRetries)
	if (calls+4*math.Sqrt(calls))*attempts >= float64(b.MinimumNumberOfCalls) {
		return ""
	}
	return fmt.Sprintf("the circuit will not open: it wants %d calls in %v, and an instance makes about %s, retries "+
		"included; use kind: adaptive, a failureThreshold or a smaller minimumNumberOfCalls", b.MinimumNumberOfCalls,
		b.SlidingWindow, number(calls*attempts))
}

// muchReserve says so of retry budgets whose reserves together are more than ten seconds of what the service can do:
// they bound nothing.
func muchReserve(p *abate.Policy, instances, capacity float64) string {
	b := p.RetryBudget.WithDefaults()
	reserve := b.Reserve
	if b.Kind == budget.Tokens {
		reserve = b.MaxTokens / b.CostPerRetry
	}
	each := math.Floor(reserve / float64(max(b.Clients, 1)))
	work := instances * each / capacity
	if p.MaxRetries == 0 || !b.Enabled() || b.Fleet || !(work > 10) || math.IsInf(work, 1) {
		return ""
	}
	return fmt.Sprintf("the retry budget bounds little: %s instances may spend a reserve of %s each, %s retries at once "+
		"or %s s of what the service can do; say how many there are with retryBudget.clients", number(instances),
		number(each), number(instances*each), number(work))
}
