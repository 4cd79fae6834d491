package abateadmin

import (
	"fmt"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/registry"
)

// guardFacts says how the policies of a guard stand that are on. Of several with one name it is one of them.
func guardFacts(g *abate.Guard, n *named, now time.Duration) []fact {
	s, p := g.StateAt(now), g.Describe()
	var all []fact
	say := func(name, about, format string, args ...any) {
		all = append(all, fact{name, fmt.Sprintf(format, args...), about})
	}
	circuitFacts(p, &s.Breaker, now, say)
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
