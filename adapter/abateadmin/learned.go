package abateadmin

import (
	"fmt"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/registry"
)

// Learned says in sentences what a guard has found out by itself and acts on, such as "7.2 retries and hedges could be
// sent now.": the figures that its policy, as Describe returns it, does not have. None, if nothing was learned yet.
// The guard is asked for its state once.
func Learned(g *abate.Guard) []string { return learned(g.Describe(), g.State()) }

func learned(p *abate.Policy, s abate.State) []string {
	all := registry.Learned(registry.Guard[:], p, &s)
	if s.Typical > 0 {
		all = append(all, fmt.Sprintf("A successful attempt usually takes %v.", s.Typical.Round(10*time.Microsecond)))
	}
	return all
}

// LearnedByGate is Learned for a gate.
func LearnedByGate(g *inbound.Gate) []string {
	s := g.State()
	return registry.Learned(registry.Gate[:], g.Describe(), &s)
}

// comments are sentences above the text of a policy.
func comments(sentences []string) (text string) {
	for _, s := range sentences {
		text += "# " + s + "\n"
	}
	return text
}
