// Package drill is the engine of drills: acts that send a load through an outage, over real sockets, so that what
// policies do can be seen rather than believed. It knows nothing of what the acts send: package httpdrill has HTTP
// clients, and the command "abate drill kafka" consumers of Kafka.
//
// An act sets up what it needs, sends its load on schedule while things break and are fixed again, waits for what is
// under way, and tears down. Drill.Run gives acts that run at once; who wants them one after the other calls it for
// each.
//
// # Reading order
//
// act.go (what an act is) → drill.go (Run) → report.go and plot.go (what people read).
package drill

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Drill is what all acts that run at once have in common. The time of an act is 0 at the end of its warm-up.
type Drill struct {
	WarmUp time.Duration
	Length time.Duration // from 0 to the end of the load
	Drain  time.Duration // the longest wait for what is still under way then

	EachSecond func(at time.Duration) // called on Run's goroutine while the load runs; may be nil
}

// Run runs acts at once. When ctx is done it stops early and returns nil: the acts know how far they came. An error
// means that the drill could not be run to its end. Every act is torn down when Run returns.
func (d Drill) Run(ctx context.Context, acts ...Act) error {
	defer each(acts, Act.TearDown)
	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	try := func(do func(Act) error) func(Act) {
		return func(a Act) {
			if err := do(a); err != nil {
				cancel(err) // the first one is kept
			}
		}
	}
	c := &clock{warmUp: d.WarmUp}
	each(acts, try(func(a Act) error { return a.SetUp(run, c.since) }))
	if run.Err() == nil {
		events := eventsOf(acts)
		c.start()
		var load sync.WaitGroup
		load.Go(func() { each(acts, try(func(a Act) error { return a.Load(run) })) })
		if err := d.watch(run, c, acts, events); err != nil {
			cancel(err)
		}
		load.Wait()
		drain, done := context.WithTimeout(run, d.Drain)
		each(acts, func(a Act) { a.Drain(drain) })
		done()
	}
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(run)
}

// eventsOf returns what the acts do at which time, in the order of the times.
func eventsOf(acts []Act) (events []Event) {
	for _, a := range acts {
		events = append(events, a.Events()...)
	}
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return events
}

// watch lets the time of the acts pass: what breaks does so at its time, and each second is reported.
func (d Drill) watch(ctx context.Context, c *clock, acts []Act, events []Event) error {
	for at := c.since(); at < d.Length; at = c.since() {
		wake := min((at + time.Second).Truncate(time.Second), d.Length)
		if at < 0 { // Truncate rounds towards zero
			wake = at.Truncate(time.Second)
		}
		if len(events) > 0 {
			wake = min(wake, max(events[0].At, at))
		}
		if !Sleep(wake-at, ctx.Done()) {
			return nil
		}
		for len(events) > 0 && events[0].At <= c.since() {
			if err := events[0].Do(); err != nil {
				return err
			}
			events = events[1:]
		}
		if d.EachSecond != nil && wake%time.Second == 0 {
			d.EachSecond(wake)
		}
	}
	return nil
}
