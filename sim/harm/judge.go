package harm

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
)

// Options say what the judge runs.
type Options struct {
	Policies []Policy            // the first is no policy, the second naive retries; nil for Policies()
	Systems  []int               // by number
	Seeds    int                 // runs of each system under each policy, with the seeds 1, 2, ... Default: 2
	Parallel int                 // systems at the same time. Default: GOMAXPROCS. It changes no result
	Progress func(done, all int) // told after every system, never by two goroutines at once; may be nil
}

// Run is what came of one run.
type Run struct {
	Offered, Answered float64 // requests; answered means in time
	Normal            float64 // goodput before the trouble
	Recovery          float64 // seconds, see engine.Recovery
	Ends              [engine.EndKinds]int64
}

// Harm is the number of requests that were not answered in time.
func (r *Run) Harm() float64 { return r.Offered - r.Answered }

// Case is a system, and what came of it under each policy.
type Case struct {
	System *System
	Runs   [][]Run // by policy, then by seed
	Events int64
}

// Judge runs systems under policies and returns the cases in the order of the systems.
func Judge(ctx context.Context, o Options) ([]Case, error) {
	o = o.withDefaults()
	cases := make([]Case, len(o.Systems))
	var (
		next atomic.Int64
		wait sync.WaitGroup
		mu   sync.Mutex
		done int
		bad  error
	)
	for range min(o.Parallel, len(o.Systems)) {
		wait.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(cases) {
					return
				}
				c, err := o.run(ctx, New(o.Systems[i]))
				mu.Lock()
				cases[i] = c
				done++
				if err != nil && bad == nil {
					bad = err
					next.Store(int64(len(cases)))
				}
				if o.Progress != nil {
					o.Progress(done, len(cases))
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if bad == nil {
		bad = context.Cause(ctx)
	}
	return cases, bad
}

func (o Options) withDefaults() Options {
	if o.Policies == nil {
		o.Policies = Policies()
	}
	if o.Seeds == 0 {
		o.Seeds = 2
	}
	if o.Parallel == 0 {
		o.Parallel = runtime.GOMAXPROCS(0)
	}
	return o
}

// run runs one system under all policies.
func (o *Options) run(ctx context.Context, s *System) (Case, error) {
	c := Case{System: s, Runs: make([][]Run, len(o.Policies))}
	parsed, err := scenario.Parse(fmt.Sprintf("system-%d.yaml", s.Number), []byte(s.Text(o.Policies, nil)))
	if err != nil {
		return c, fmt.Errorf("system %d: %w", s.Number, err)
	}
	for i := range parsed.Variants {
		e, err := engine.New(parsed, &parsed.Variants[i])
		if err != nil {
			return c, fmt.Errorf("system %d: %w", s.Number, err)
		}
		for seed := range o.Seeds {
			record, err := e.Run(uint64(seed)+1, false, func() bool { return ctx.Err() != nil })
			if err != nil {
				return c, fmt.Errorf("system %d: %w", s.Number, err)
			}
			if record == nil { // stopped
				return c, nil
			}
			c.Events += record.Events
			c.Runs[i] = append(c.Runs[i], look(record))
		}
	}
	return c, nil
}

// look keeps what the judge wants to know of a run.
func look(record *engine.Record) Run {
	f := &record.Fleets[0]
	r := Run{Ends: f.Ends, Recovery: record.Value(&expect.Expectation{Measure: "recovery"}),
		Normal: record.Value(&expect.Expectation{Measure: "goodput", Window: expect.Before})}
	for i := range f.Offered {
		r.Offered += float64(f.Offered[i])
		r.Answered += float64(f.Good[i])
	}
	return r
}
