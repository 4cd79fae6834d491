package abateadmin

import (
	"fmt"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/registry"
	"github.com/abate-go/abate/policy/breaker"
)

// guardFacts says how the policies of a guard stand that are on. Of several with one name it is one of them.
func guardFacts(g *abate.Guard, n *named, now time.Duration) []fact {
	s, p := g.StateAt(now), g.Describe()
	var all []fact
	say := func(name, about, format string, args ...any) {
		all = append(all, fact{name, fmt.Sprintf(format, args...), about})
	}
	if p.CircuitBreaker.Enabled() {
		circuitFacts(&s.Breaker, now, say)
	}
	for i := range registry.Guard {
		if facts := registry.Guard[i].Facts; facts != nil {
			facts(p, &s, say)
		}
	}
	if s.Typical > 0 {
		say("Typical latency", "of a successful attempt", "%v", s.Typical.Round(10*time.Microsecond))
	}
	if d := time.Duration(n.record.delay.Load()); d > 0 {
		say("Last back-off", "before a retry", "%v", d.Round(time.Millisecond))
	}
	say("Retries owned by", "the layer of the call chain", "%s", p.RetryOwner)
	return all
}

// circuitFacts says how a circuit breaker stands. It is the first that a reader looks for.
func circuitFacts(b *breaker.Snapshot, now time.Duration, say registry.Say) {
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

// gateFacts is guardFacts for a gate.
func gateFacts(g *inbound.Gate, now time.Duration) []fact {
	s, p := g.StateAt(now), g.Describe()
	var all []fact
	say := func(name, about, format string, args ...any) {
		all = append(all, fact{name, fmt.Sprintf(format, args...), about})
	}
	for i := range registry.Gate {
		if facts := registry.Gate[i].Facts; facts != nil {
			facts(p, &s, say)
		}
	}
	return all
}
