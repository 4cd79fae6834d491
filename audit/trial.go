package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
	"github.com/abate-go/abate/topology"
)

// How many runs say something.
const (
	fewRuns = 2 // enough to see which way of failing does most harm
	// So many runs that all collapse say that more than half of all do (0.5⁵ = 3 %). A run that collapses is the one that
	// takes long, so nothing is gained by more of them.
	clearRuns = 5
	// A run of more events is long. One of these has to do to see which way of failing does most harm, and five are
	// enough if none of them collapses, too: then most do not. It is a number of events, so that it is the same runs on
	// every machine.
	manyEvents = 500_000
)

// trial is one way in which a service fails, as it is played. Both variants have the same seeds, from the first one on,
// so that what differs is the policy.
type trial struct {
	v             Verdict
	scenario      *scenario.Scenario
	before, after tally
	failed        error
}

func (r *Result) trial(service string, way topology.Outcome, o SimulateOptions) *trial {
	t := &trial{v: Verdict{Service: service, Outcome: way}, before: tally{variant: asConfigured},
		after: tally{variant: withChanges}}
	p := Play{Service: service, Fails: way, For: cmp.Or(o.Outage, 30*time.Second), Rate: o.Rate}
	if len(r.Changes) > 0 {
		p.Fixed = &r.fixed
	}
	if t.v.Scenario, t.v.Assumed, t.failed = p.Scenario(r.Form); t.failed != nil {
		return t
	}
	if t.scenario, t.failed = scenario.Parse("outage-of-"+service+".yaml", t.v.Scenario); t.failed != nil {
		t.failed = fmt.Errorf("the scenario cannot be played: %w", t.failed)
	}
	return t
}

// settle plays a variant until it is clear what it does, or so many runs are made.
func (t *trial) settle(ctx context.Context, c *tally, o SimulateOptions) {
	t.play(ctx, c, min(clearRuns, o.Runs))
	if c.collapsed < c.runs && (c.collapsed > 0 || o.all || !c.long(o.many)) {
		t.play(ctx, c, o.Runs)
	}
}

// scout plays each of several trials at the same time until it is seen how much harm it does.
func scout(ctx context.Context, trials []*trial, o SimulateOptions) {
	for runs := range min(fewRuns, o.Runs) {
		var all sync.WaitGroup
		for _, t := range trials {
			if runs == 0 || o.all || !t.before.long(o.many) {
				all.Go(func() { t.play(ctx, &t.before, 1+runs) })
			}
		}
		all.Wait()
	}
}

// play makes runs of a variant until there are so many.
func (t *trial) play(ctx context.Context, c *tally, upTo int) {
	if t.failed != nil || ctx.Err() != nil || c.runs >= upTo {
		return
	}
	r, err := sim.Run(ctx, t.scenario, sim.Options{Seed: uint64(1 + c.runs), Runs: upTo - c.runs, Exactly: true,
		Variants: []string{c.variant}})
	switch {
	case err == nil:
		c.add(&r.Variants[0], t.v.Service)
	case t.before.runs == 0 || !errors.Is(err, context.Cause(ctx)):
		t.failed = err
	}
}

func (t *trial) verdict() Verdict {
	v := t.v
	if t.failed != nil {
		v.Failed = strings.ReplaceAll(t.failed.Error(), "\n", "; ")
		return v
	}
	v.Before = t.before.outage()
	if t.after.runs > 0 {
		after := t.after.outage()
		v.After = &after
	}
	return v
}

// tally is what came of the runs of one variant.
type tally struct {
	variant         string
	runs, collapsed int
	recoveries      []float64
	attempts        float64 // for one request while the service fails, summed over the runs
	events          int64
}

// long reports whether a run takes long.
func (c *tally) long(many int64) bool { return c.runs > 0 && c.events/int64(c.runs) > many }

func (c *tally) add(v *sim.VariantResult, service string) {
	c.runs += v.Runs
	c.events += v.Events
	c.collapsed += int(math.Round(v.Collapse.Share * float64(v.Runs)))
	c.recoveries = append(c.recoveries, v.Recovery...)
	slices.Sort(c.recoveries)
	for _, m := range v.Measures {
		if m.Name == "amplification("+service+", during)" {
			c.attempts += m.Mean * float64(v.Runs)
		}
	}
}

func (c *tally) outage() Outage {
	o := Outage{Runs: c.runs, Recovery: -1}
	if c.runs == 0 {
		return o
	}
	o.Collapse.Share = float64(c.collapsed) / float64(c.runs)
	o.Collapse.Low, o.Collapse.High = expect.Wilson(c.collapsed, c.runs)
	o.Amplification = c.attempts / float64(c.runs)
	if n := len(c.recoveries); n > 0 {
		o.Recovered, o.Recovery = n, c.recoveries[n/2]
	}
	return o
}
