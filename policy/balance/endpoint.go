package balance

import (
	"sync/atomic"
	"time"
)

// endpoint is what is known of one endpoint, for as long as it is there: balancers that follow each other share it. Its
// first half is one cache line, so that attempts on different endpoints do not wait for each other.
type endpoint struct {
	hot

	// What a success need not touch.
	failures  atomic.Int64 // attempts that failed
	neutrals  atomic.Int64 // that said nothing
	starts    atomic.Int64 // the sum of the times at which attempts began, with zones
	ends      atomic.Int64 // and ended
	position  atomic.Int32 // in the newest balancer, if it is there
	unhealthy atomic.Bool  // says its health check

	ramp time.Duration // when it began, see ramps; guarded
	seen tally         // up to the last look at its zone; guarded
}

type hot struct {
	// Two numbers that only grow instead of one that goes up and down: they cost the same, and begun also says how many
	// attempts there were since the return.
	begun, ended atomic.Int64
	streak       atomic.Int64 // failures in a row
	lately       atomic.Bool  // multiplier > 0: a failure must look at the time

	// The lower half, guarded by the balancer's lock.
	out         bool
	multiplier  int32         // of the base time in the last ejection, less one for each base time without a failure since
	ejections   uint32        // ever
	since       time.Duration // out: the ejection began then; else the multiplier was right then
	until       time.Duration // the last ejection ends then
	begunAtBack int64         // begun, at the return
}

func newEndpoint() *endpoint { return &endpoint{ramp: warm} }

// pending reads ended first: in the other order an attempt that begins and ends in between would be missing twice.
func (e *endpoint) pending() int64 {
	ended := e.ended.Load()
	return e.begun.Load() - ended
}

// sinceReturn is how many attempts have begun since the endpoint came back.
func (e *endpoint) sinceReturn() int64 { return e.begun.Load() - e.begunAtBack }

// comeBack ends the ejection. The streak starts again, and so does the time without a failure.
func (e *endpoint) comeBack() {
	e.out, e.since, e.begunAtBack = false, e.until, e.begun.Load()
	e.streak.Store(0)
}

// forgive takes one off the multiplier for each base time without a failure, and begins a new such time.
func (e *endpoint) forgive(now, base time.Duration) {
	e.multiplier = e.forgiven(now, base)
	e.since = max(e.since, now)
	e.lately.Store(e.multiplier > 0)
}

// forgiven is what is left of the multiplier of an endpoint that is not out.
func (e *endpoint) forgiven(now, base time.Duration) int32 {
	if now <= e.since {
		return e.multiplier
	}
	quiet := uint64(now) - uint64(e.since) // may be more than a Duration holds
	return e.multiplier - int32(min(quiet/uint64(base), uint64(e.multiplier)))
}

// EndpointState is what a balancer knows of one endpoint, for pages and metrics.
type EndpointState struct {
	Pending             int           // attempts that have begun and not ended
	ConsecutiveFailures int           // failed attempts in a row; 0 while ejected
	Ejected             bool          // out of the choice
	EjectedUntil        time.Duration // when it comes back; 0 if it is not ejected
	Ejections           int           // how often it has been ejected; never falls
	Multiplier          int           // the last ejection took this many base times, less those without a failure since
	Unhealthy           bool          // says its health check; out of the choice, unless State.Panic
}

// Endpoint returns the state of endpoint i at a time. It takes the lock that ejections take.
func (b *Balancer) Endpoint(i int, now time.Duration) EndpointState {
	b.at(now)
	b.line.mu.Lock()
	defer b.line.mu.Unlock()
	e := b.endpoints[i]
	s := EndpointState{
		Pending:    int(e.pending()),
		Ejected:    e.out,
		Ejections:  int(e.ejections),
		Multiplier: int(e.multiplier),
		Unhealthy:  e.unhealthy.Load(),
	}
	if e.out {
		s.EjectedUntil = e.until
		return s
	}
	s.ConsecutiveFailures = int(e.streak.Load())
	if s.Multiplier > 0 {
		s.Multiplier = int(e.forgiven(now, b.config.BaseEjectionTime))
	}
	return s
}

// Results returns how many attempts at endpoint i were a Success, and how many a Failure, ever. It takes no lock.
func (b *Balancer) Results(i int) (successes, failures uint64) {
	e := b.endpoints[i]
	failed, neutral, ended := e.failures.Load(), e.neutrals.Load(), e.ended.Load()
	return uint64(max(ended-failed-neutral, 0)), uint64(failed)
}
