// Package abate keeps a short outage short: it stops retries from becoming the outage.
//
// A Guard is one named dependency under one Policy. Do calls a function under it:
//
//	g, err := abate.New("payment-service", abate.DefaultPolicy())
//	charge, err := abate.Do(ctx, g, func(ctx context.Context) (Charge, error) { return client.Charge(ctx, order) })
//
// Every call goes through one pipeline, always in this order:
//
//	deadline → bulkhead → retry loop { breaker → hedge { attempt timeout → the call } } → fallback
//
// The order is not for you to choose, because there is one that works: a retry asks the breaker before it sleeps, the
// bulkhead counts calls and not attempts, and what retries and hedges add together is bounded by one budget.
//
// What to call: Do for a function; DoHedged for one that may run beside itself; DoWithFallback when there is a degraded
// answer. Do works inside a testing/synctest bubble.
//
// Around this package:
//
//   - core has the state machine behind Do, without the waiting, for adapters, for other drivers and for those who
//     bring their own clock. The types below are its types, so their methods are documented there. So are the kinds of
//     Events, AdmitOne (for a hook before and one after instead of a function), Run (for adapters) and CallTree.
//   - inbound is the receiving side: a Gate in front of one service.
//   - startup waits for what a program needs when it starts, and answers readiness probes.
//   - policyfile reads a Policy per service from YAML and swaps it while the program runs.
//   - adapter/abatehttp and its siblings guard the clients of HTTP, gRPC, Kafka, Redis and SQL.
//   - The policies themselves are in the folders below policy, one decision each. They know nothing of each other.
package abate

import (
	"context"
	"time"

	"github.com/abate-go/abate/core"
)

// Guard is one named dependency under one policy. It holds the state that calls share (breaker, budget, bulkhead), so
// make one per dependency, once, and keep it: a guard made per call limits nothing. It is safe for concurrent use, has
// no goroutine and needs no closing. A nil *Guard lets every call pass as it is.
type Guard = core.Guard

// New makes the guard of the dependency called name. The name is the label in errors, events and metrics. An invalid
// policy gives an error that joins one *FieldError per mistake.
func New(name string, p Policy) (*Guard, error) { return core.New(name, p) }

// Guards are the guards of many dependencies of one kind under one policy: of each tenant, shard or host. It is safe
// for concurrent use.
type Guards[K comparable] = core.Guards[K]

// NewGuards returns guards under p, at most max of them and one for all others; max is 1 or more. A guard is named
// after prefix and its key, as fmt.Sprint writes it: "orders/eu-1". Names are labels of metrics, so what keys there are
// should not be anybody's choice.
func NewGuards[K comparable](prefix string, p Policy, max int) (*Guards[K], error) {
	return core.NewGuards[K](prefix, p, max)
}

// State is a guard's state at one moment, for dashboards and people. Parts that are off are zero.
type State = core.State

// Policy is everything one guard needs to know: the twin of what the policy file says of it, field for key. The zero
// Policy is a plain pass-through; DefaultPolicy is where the policy file starts from.
type Policy = core.Policy

// Retry is the retry part of a Policy.
type Retry = core.Retry

// AttemptLimit is a rate limit on the attempts that a guard sends.
type AttemptLimit = core.AttemptLimit

// FieldError is one thing wrong with a Policy. Path names the field as the policy file does ("circuitBreaker.rampUp").
type FieldError = core.FieldError

// DefaultPolicy returns the policy for most dependencies: retries with back-off and jitter, of which a budget bounds
// the load, and a circuit breaker. See core.DefaultPolicy for its numbers.
func DefaultPolicy() Policy { return core.DefaultPolicy() }

// ConnectionPolicy returns the policy for opening connections to a database, a cache or a broker, of which every client
// lost all at the same moment. See core.ConnectionPolicy for its numbers.
func ConnectionPolicy() Policy { return core.ConnectionPolicy() }

// Override is what somebody has put above the policy of a guard by hand, in an emergency: see Guard.Override. It
// concerns the circuit breaker alone, and outlives reloads of the policy.
type Override = core.Override

const (
	// NoOverride leaves the circuit breaker to the policy.
	NoOverride = core.NoOverride
	// OverrideForcedOpen rejects every call, whatever the policy says.
	OverrideForcedOpen = core.OverrideForcedOpen
	// OverrideDisabled lets every call pass the circuit breaker. Retries, budget and limits stay as they are.
	OverrideDisabled = core.OverrideDisabled
	// OverrideShadow has the circuit breaker decide and report, and reject nothing.
	OverrideShadow = core.OverrideShadow
)

// Outcome is what one attempt came to. Policy.Classify makes it.
type Outcome = core.Outcome

// Class says what an attempt tells us about the dependency.
type Class = core.Class

const (
	// Success: the dependency did what was asked.
	Success = core.Success
	// Failure: the dependency, or the way to it, failed. Counts against the circuit breaker; retried unless NoRetry is
	// set.
	Failure = core.Failure
	// Overload: the dependency refused for load. Like Failure, but a retry draws the budget's overload cost.
	Overload = core.Overload
	// Ignored: the attempt says nothing about the dependency. Never retried, counted neither way.
	Ignored = core.Ignored
)

// Permanent marks err as a failure that another attempt cannot fix. The call returns err itself, at once. It still
// counts as a failure of the dependency; for an answer that is nobody's failure ("card declined"), use Ignore. Marks
// hold for the innermost guard around the function; if there is another one further out, mark what Do returned again.
func Permanent(err error) error { return core.Permanent(err) }

// Ignore marks err as an answer rather than a failure: the call returns err itself, at once, and neither the circuit
// breaker nor the retry budget counts it.
func Ignore(err error) error { return core.Ignore(err) }

// RetryAfter marks err as a refusal for load whose sender asked for a pause of d. The next attempt waits at least d, or
// the call ends when d is above the policy's maxRetryAfter or does not fit the deadline.
func RetryAfter(err error, d time.Duration) error { return core.RetryAfter(err, d) }

// RetryIf returns fn with a judge of its results: an answer for which pending is true, and which came without an error,
// is returned with ErrPending and tried again.
func RetryIf[T any](fn func(context.Context) (T, error), pending func(T) bool) func(context.Context) (T, error) {
	return core.RetryIf(fn, pending)
}

// Error is what a guarded call returns when the policy, and not only the dependency, had a say in how it ended.
// errors.Is and errors.As find both the reason and the last attempt's error in it. Get at it with errors.As, not with a
// type assertion.
type Error = core.Error

// Reason returns why a guard's policy ended a call with err: the Reason of the *Error that err is, nil if it is none.
// It looks at err alone and not at what it wraps, and it allocates nothing.
func Reason(err error) error { return core.Reason(err) }

// Reasons why a call ended without success, for errors.Is. Each is found on the *Error that a call returns.
var (
	// ErrCircuitOpen: the circuit breaker refused the attempt.
	ErrCircuitOpen = core.ErrCircuitOpen
	// ErrSilent: the attempt failed, and was not tried again, because nothing shows that another one would be answered.
	ErrSilent = core.ErrSilent
	// ErrBudgetExhausted: the attempt failed and the retry budget had nothing left for another.
	ErrBudgetExhausted = core.ErrBudgetExhausted
	// ErrAttemptsExhausted: all attempts that maxRetries allows have failed.
	ErrAttemptsExhausted = core.ErrAttemptsExhausted
	// ErrTreeExhausted: the attempt failed, and the call tree has no extra attempts left: another layer owns retries.
	ErrTreeExhausted = core.ErrTreeExhausted
	// ErrBulkheadFull: too many calls are running and the queue is full, or the wait in it took too long.
	ErrBulkheadFull = core.ErrBulkheadFull
	// ErrRateLimited: the rate limit or the pacing refused the attempt.
	ErrRateLimited = core.ErrRateLimited
	// ErrThrottled: the throttle refused the attempt, because the dependency has been refusing too many.
	ErrThrottled = core.ErrThrottled
	// ErrOverloaded: the dependency asked for a longer pause than maxRetryAfter.
	ErrOverloaded = core.ErrOverloaded
	// ErrDeadline: no time is left, or the next attempt would not fit in what is left. It is also a
	// context.DeadlineExceeded for errors.Is, and a timeout for net.Error users.
	ErrDeadline = core.ErrDeadline
	// ErrPending is the error of an answer that is not there yet: see RetryIf.
	ErrPending = core.ErrPending
)

// Observer is told everything a guard does: see core.Observer. It must be quick, and safe for concurrent use.
type Observer = core.Observer

// Places is a number of places of which a caller holds one while its calls last, see Policy.Places.
type Places = core.Places

// ObserverFunc makes an Observer of a function.
type ObserverFunc = core.ObserverFunc

// Event is one thing that happened. Its kinds are in package core, such as core.CallEnded.
type Event = core.Event

// Observers makes one observer of several: it tells all of them each event, in their order. A policy takes one, so
// whoever adds another keeps the one that is there:
//
//	policy.Observer = abate.Observers(mine, policy.Observer)
func Observers(all ...Observer) Observer { return core.Observers(all...) }

// WithObserver returns a context under which guarded calls tell o what they do, besides the observer of their guard's
// policy: for whoever writes down what became of one piece of work, such as a trace.
func WithObserver(ctx context.Context, o Observer) context.Context { return core.WithObserver(ctx, o) }
