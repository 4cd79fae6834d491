package abatekafka

import (
	"context"
	"time"

	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kgo"
)

// preflight checks before anything is consumed that the topics are there and fit, and creates those that are missing.
// It finds all that is wrong at once, and says of each how to fix it.
type preflight struct {
	findings
	client      *kgo.Client
	chains      []Chain
	cfg         redelivery.Config
	check       bool // creates nothing
	replication int16

	smallest int32 // the least max.message.bytes of the topics it writes to; 0 if not known
}

// patience is how long a request of the preflight may be repeated: brokers that are just starting are waited for, wrong
// addresses are told soon.
const patience = 20 * time.Second

// run returns everything that is wrong, joined.
func (p *preflight) run(ctx context.Context) error {
	p.checkNames()
	if len(p.problems) > 0 { // asking a broker for illegal names brings only more of the same
		return p.err()
	}
	seen, err := p.look(ctx, p.topics())
	if err != nil {
		p.problem("brokers %s: %w; see whether they are up and may be reached from here, "+
			"and whether TLS and SASL are what they want", p.brokers, err)
		return p.err()
	}
	if !p.lookAgain(ctx, seen, unborn(seen)) {
		return p.err()
	}
	p.lookAgain(ctx, seen, p.createMissing(ctx, seen)) // another member was quicker: look at what it made
	for _, chain := range p.chains {
		p.checkChain(chain, seen)
	}
	if !p.cfg.GroupInNames {
		p.checkGroups(ctx, seen)
	}
	return p.err()
}

func (p *preflight) topics() []string {
	var all []string
	for _, chain := range p.chains {
		all = append(all, chain.Topic)
		all = append(all, chain.made()...)
	}
	return all
}

// made are the topics of a chain that a consumer may create.
func (c *Chain) made() []string {
	var all []string
	for _, hop := range c.Hops {
		all = append(all, hop.Topic)
	}
	if c.DeadLetters != "" {
		all = append(all, c.DeadLetters)
	}
	return all
}

// remembered checks that Once remembers a message for as long as it may be on its way.
func (p *preflight) remembered(d *Deduper) {
	chain := d.required(p.cfg)
	switch {
	case d.Retention == 0:
	case d.Retention < chain:
		p.problem("Once.Retention is %v, but a message is on its way through the retry topics for %v: "+
			"it would be handled twice; set at least that, or 0 for what the policy comes to", d.Retention, chain)
	case d.Retention < chain+p.cfg.Outage:
		p.note("Once.Retention is %v: after an outage of the consumers longer than %v, messages may be handled twice; "+
			"kafka.outage allows for %v", d.Retention, d.Retention-chain, p.cfg.Outage)
	case d.Retention < chain+p.cfg.DLTRetention && p.cfg.DLTStrategy != redelivery.DropLast:
		p.note("Once.Retention is %v: a dead letter replayed later than that is handled again even if its effect is there; "+
			"kafka.dltRetention is %v", d.Retention, p.cfg.DLTRetention)
	}
}
