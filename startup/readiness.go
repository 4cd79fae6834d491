package startup

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/abate-go/abate/core"
)

// checkEvery is how often a check is made at most: whoever may ask for the readiness must not thereby load what it
// depends on.
const checkEvery = time.Second

// Readiness reports whether a program is ready for work, and if not, why: for the readiness probe of an orchestrator.
// It knows dependencies that have to be there once (Await, ConnectInBackground), checks that are made when somebody
// asks (Check), and whether the program is about to end (Drain). The zero Readiness is ready; name what it waits for
// before it is served. It is safe for concurrent use.
//
// A dependency that was there once stays ready: when a database goes away, all instances would become unready in the
// same moment, and nobody would be left to say so to a user. What a circuit breaker is for is not for a probe.
type Readiness struct {
	mu       sync.Mutex
	draining string
	awaited  []*Awaited
	checks   []*readinessCheck
}

// Awaited is a dependency that a program is not ready without. It is safe for concurrent use.
type Awaited struct {
	name string

	mu       sync.Mutex
	ready    bool
	attempts int           // 0 if nobody has said; then began means nothing
	began    time.Duration // on the guards' clock
	took     time.Duration // until it was there, or was given up
	over     bool          // nobody is waiting any more
	waits    bool          // for the next attempt
	next     time.Duration // when that is, on the guards' clock
	err      error
}

// readinessCheck is made when somebody asks.
type readinessCheck struct {
	name string
	fn   func(context.Context) error

	turn chan struct{} // has room for the one who makes it or reads its result: others wait, as long as their context
	made bool
	at   time.Duration
	err  error
}

// ReadinessReport is a Readiness at one moment.
type ReadinessReport struct {
	Ready    bool             // nothing is missing, and it does not drain
	Draining string           // why it drains; empty if it does not
	Parts    []ReadinessState // dependencies, then checks, each in the order in which they were named
}

// ReadinessState is how one dependency or check is.
type ReadinessState struct {
	Name     string
	Ready    bool
	Attempts int           // made so far, or until it was there; 0 of a check, and where nobody has said
	Elapsed  time.Duration // since the first attempt began, or until it was there
	NextTry  time.Duration // from now until the next attempt; 0 if one is being made, or none will be
	Err      error         // of the last attempt, or of the check; nil if there was none
}

// Await names a dependency without which the program is not ready, and returns it: call its Ready when it is there.
func (r *Readiness) Await(name string) *Awaited {
	a := &Awaited{name: name}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.awaited = append(r.awaited, a)
	return a
}

// Ready says that the dependency is there.
func (a *Awaited) Ready() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ready, a.waits, a.err = true, false, nil
}

// NotReady says that the dependency is not there, or not any more, and why.
func (a *Awaited) NotReady(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ready, a.waits, a.err = false, false, err
}

// Check names a check, which is made whenever somebody asks for a report, but at most once a second, one after the
// other. It has to return when its context is done, which the one who asks sets a time limit. A panic is an error.
// Check what is this instance's own (a full disk, a cache that is warm), and no service that others would miss at the
// same moment.
func (r *Readiness) Check(name string, fn func(context.Context) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checks = append(r.checks, &readinessCheck{name: name, fn: fn, turn: make(chan struct{}, 1)})
}

// Drain makes the program unready, and says why ("shutting down"): no new work, please. Resume takes it back.
func (r *Readiness) Drain(why string) {
	if why == "" {
		why = "draining"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draining = why
}

// Resume ends what Drain began.
func (r *Readiness) Resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draining = ""
}

// Report makes the checks and tells how everything is. now is Now(); ctx bounds the checks.
func (r *Readiness) Report(ctx context.Context, now time.Duration) ReadinessReport {
	r.mu.Lock()
	report := ReadinessReport{Draining: r.draining, Ready: r.draining == ""}
	awaited, checks := r.awaited, r.checks // only appended to
	r.mu.Unlock()
	for _, a := range awaited {
		report.Parts = append(report.Parts, a.state(now))
	}
	for _, c := range checks {
		err := c.result(ctx, now)
		report.Parts = append(report.Parts, ReadinessState{Name: c.name, Ready: err == nil, Err: err})
	}
	for i := range report.Parts {
		report.Ready = report.Ready && report.Parts[i].Ready
	}
	return report
}

func (a *Awaited) state(now time.Duration) ReadinessState {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := ReadinessState{Name: a.name, Ready: a.ready, Attempts: a.attempts, Elapsed: a.took, Err: a.err}
	if a.attempts > 0 && !a.ready && !a.over {
		s.Elapsed = now - a.began
	}
	if a.waits {
		s.NextTry = max(0, a.next-now)
	}
	return s
}

// follow notes a step of the wait for the dependency, and the failure that led to it.
func (a *Awaited) follow(w *core.Startup, now time.Duration, step core.Step) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.began, a.attempts, a.err = w.Began(), w.Attempts(), w.Last()
	a.waits, a.next = step.Action == core.Sleep, step.Until
	if a.over = step.Action == core.Finish; a.over {
		a.took = now - w.Began()
		if a.ready = step.Err == nil; a.ready {
			a.err = nil
		}
	}
}

// result makes the check, unless that was done a moment ago.
func (c *readinessCheck) result(ctx context.Context, now time.Duration) (err error) {
	select {
	case c.turn <- struct{}{}: // also if the time is over
	default:
		select {
		case c.turn <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("the check that began before has not ended: %w", ctx.Err())
		}
	}
	defer func() { <-c.turn }()
	if c.made && now-c.at < checkEvery {
		return c.err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the check panicked: %v", p)
		}
		c.made, c.at, c.err = true, now, err
	}()
	return c.fn(ctx)
}
