package abateadmin

import (
	"fmt"
	"strconv"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/breaker"
)

// guardFacts says how the parts of a guard stand that are on. Of several with one name it is one of them.
func guardFacts(g *abate.Guard, n *named, now time.Duration) []fact {
	s, p := g.StateAt(now), g.Describe()
	var all []fact
	say := func(name, about, format string, args ...any) {
		all = append(all, fact{name, fmt.Sprintf(format, args...), about})
	}
	if p.CircuitBreaker.Enabled() {
		b := s.Breaker
		say("Circuit", "", "%s", b.State)
		if b.OpenUntil > now {
			say("Probes in", "", "%v", (b.OpenUntil - now).Round(100*time.Millisecond))
		}
		if b.State == breaker.Closed && b.Calls > 0 {
			say("Failure rate", fmt.Sprintf("of the last %d attempts", b.Calls), "%.0f %%", 100*b.FailureRate)
			say("Slow", "", "%.0f %%", 100*b.SlowRate)
		}
		if b.Hanging > 0 {
			say("Hanging", "attempts past the slow threshold", "%d", b.Hanging)
		}
		say("Openings", "since the start", "%d", b.Openings)
	}
	if p.RetryBudget.Enabled() || p.Budget != nil {
		say("Retry budget", "retries and hedges that could be sent now", "%.1f", s.Budget)
	}
	if k := s.Bulkhead; p.Bulkhead.Enabled() {
		say("Bulkhead", strconv.Itoa(k.Queued)+" queued", "%d of %d", k.InFlight, k.Limit)
	}
	if s.Typical > 0 {
		say("Typical latency", "of a successful attempt", "%v", s.Typical.Round(10*time.Microsecond))
	}
	if d := time.Duration(n.record.delay.Load()); d > 0 {
		say("Last back-off", "before a retry", "%v", d.Round(time.Millisecond))
	}
	if p.Throttle.Enabled() {
		say("Throttle", "of calls are held back", "%.0f %%", 100*s.Throttle.Rejection)
	}
	if p.Pacing.Enabled() {
		say("Pace", "attempts a second", "%.1f", s.Pacing.PerSecond)
	}
	if p.Hedge.Enabled() && s.Hedge.Delay > 0 {
		say("Hedge after", "", "%v", s.Hedge.Delay.Round(10*time.Microsecond))
	}
	say("Retries owned by", "the layer of the call chain", "%s", p.RetryOwner)
	return all
}

func gateFacts(g *inbound.Gate, now time.Duration) []fact {
	s, p := g.StateAt(now), g.Describe()
	var all []fact
	say := func(name, about, format string, args ...any) {
		all = append(all, fact{name, fmt.Sprintf(format, args...), about})
	}
	if p.Shed.Enabled() {
		limit := "no limit"
		if s.Shed.Limit > 0 {
			limit = fmt.Sprintf("of %d", s.Shed.Limit)
		}
		say("Handled at once", strconv.Itoa(s.Shed.Queued)+" queued", "%d, %s", s.Shed.InFlight, limit)
		say("Queue delay", "of the last that left the queue", "%v", s.Shed.QueueDelay.Round(10*time.Microsecond))
		say("Retries arriving", "for each first attempt, last 10 s", "%.2f", s.Shed.RetryShare)
		if s.Shed.CPU > 0 {
			say("Processor", fmt.Sprintf("%.0f %% refused for it", 100*s.Shed.CPURefused), "%.0f %%", 100*s.Shed.CPU)
		}
		if s.Shed.Latency > 0 {
			say("Latency without load", "", "%v", s.Shed.Latency.Round(10*time.Microsecond))
		}
		if p.Shed.Shadow {
			say("Shadow", "", "sheds nothing, only says so")
		}
	}
	if p.RateLimit.Enabled() {
		say("Rate limit", fmt.Sprintf("burst %d", p.RateLimit.Burst), "%s", p.RateLimit.Limit.String())
		say("Buckets", "callers with a bucket of their own", "%d", s.RateLimit.Keys)
	}
	return all
}
