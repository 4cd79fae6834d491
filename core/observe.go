package core

import (
	"context"
	"time"

	"github.com/abate-go/abate/internal/listeners"
	"github.com/abate-go/abate/policy/breaker"
)

// Observer is told everything a guard does. Observe is called on the goroutine that caused the event: the call's, or
// for a hedge its timer's. No lock of the guard is held, so it may read and update the guard; the events of one call
// come one after the other. It must be quick, and safe for concurrent use. A guard without an observer pays nothing for
// it.
//
// A panic in Observe is caught: whoever only listens must not cost a call its result. The call goes on, the other
// observers are told, State counts the panic, and slog.Default gets it with its stack (the first one of a guard, then
// the second, the fourth, and so on). An Observe that ends its goroutine, as the FailNow of a test does, ends the call
// with it; its permits are given back.
type Observer interface {
	Observe(Event)
}

// ObserverFunc makes an Observer of a function.
type ObserverFunc func(Event)

// Observe calls f.
func (f ObserverFunc) Observe(e Event) { f(e) }

type observerKey struct{}

// WithObserver returns a context under which guarded calls tell o what they do, besides the observer of their guard's
// policy: for whoever writes down what became of one piece of work, such as a trace. o is told only what belongs to a
// call, from CallBegan to CallEnded, one event after the other, and on any goroutine. Calls inside a guarded function
// that was given the context tell o too; a context with a nil observer ends that. A call with an observer of its own
// allocates 1.5 KB once; for all others it is one more look-up in their context.
func WithObserver(ctx context.Context, o Observer) context.Context {
	if _, asked := watchersOf(ctx); asked {
		return context.WithValue(ctx, observerKey{}, attemptAsked{o})
	}
	return context.WithValue(ctx, observerKey{}, o)
}

// ObserverOf returns whom calls under ctx tell what they do, as WithObserver has set it; nil for nobody.
func ObserverOf(ctx context.Context) Observer {
	o, _ := watchersOf(ctx)
	return o
}

// watchersOf returns ObserverOf(ctx), and whether WithAttemptInfo has been asked for: one look-up finds both.
func watchersOf(ctx context.Context) (o Observer, asked bool) {
	return watchersIn(ctx.Value(observerKey{}))
}

// watchersIn is watchersOf for what a context has under observerKey.
func watchersIn(v any) (o Observer, asked bool) {
	switch v := v.(type) {
	case attemptAsked:
		return v.Observer, true
	case Observer:
		return v, false
	}
	return nil, false
}

// Watch has the call tell o what it does, besides its guard's observer; nil for nobody. Call it before Begin.
func (c *Call) Watch(o Observer) {
	if o != nil {
		c.s = &settings{observer: o} // until Begin, which keeps a Call small for those that nobody watches
	}
}

// watchedBy makes own, which has nothing but an observer, s for one call that tells it, too.
func (s *settings) watchedBy(own *settings) *settings {
	o := own.observer
	*own = *s
	own.timed = true
	if s == unguarded { // what one of its calls has learned is nothing to another dependency's
		own.typical = new(typicalLatency)
	}
	if own.observer = o; s.observer != nil {
		own.observer = observers{listeners.Link[Observer]{First: s.observer, Rest: o}}
	}
	return own
}

// EventKind says what happened.
type EventKind uint8

const (
	// CallBegan: a call arrived at the guard.
	CallBegan EventKind = iota + 1
	// CallQueued: the bulkhead is full and the call waits.
	CallQueued
	// AttemptBegan: an attempt is sent. Attempt is its number, from 1.
	AttemptBegan
	// AttemptEnded: it came back, or was given up (Ignored, without Err) because another copy has decided the call.
	// Attempt, Class, Latency and Err are set. Every AttemptBegan and HedgeSent has one.
	AttemptEnded
	// RetryScheduled: another attempt follows after Delay.
	RetryScheduled
	// HedgeSent: a further copy of a running attempt is sent. Attempt is its number.
	HedgeSent
	// HedgeDenied: a copy was due, and the budget (ErrBudgetExhausted) or the breaker (ErrCircuitOpen) said no.
	HedgeDenied
	// HiddenRetry: something below the guard sent an attempt again by itself.
	HiddenRetry
	// CallEnded: the call is over. Attempt is how many were sent, Latency the whole time, Reason why a failed call got no
	// further attempt.
	CallEnded
	// BreakerChanged: the circuit breaker went From one state To another.
	BreakerChanged
	// FallbackUsed: the caller gets the fallback instead of Err.
	FallbackUsed
	// PolicyChanged: Guard.Update put another policy in force.
	PolicyChanged
	// AnswerBroke: the answer of an attempt that had ended as a success broke off before its end: it is a failure now,
	// with Err. It comes after CallEnded.
	AnswerBroke
)

var eventNames = [...]string{"", "call-began", "call-queued", "attempt-began", "attempt-ended", "retry-scheduled",
	"hedge-sent", "hedge-denied", "hidden-retry", "call-ended", "breaker-changed", "fallback-used", "policy-changed",
	"answer-broke"}

// String returns the name used in logs, such as "retry-scheduled".
func (k EventKind) String() string {
	if int(k) >= len(eventNames) {
		return "unknown"
	}
	return eventNames[k]
}

// Event is one thing that happened. It is passed by value and allocates nothing.
type Event struct {
	Kind    EventKind
	Guard   string        // the guard's name
	At      time.Duration // on the guard's clock: since an arbitrary fixed origin
	Attempt int
	Retries int // retries so far; with RetryScheduled and CallEnded
	Class   Class
	Delay   time.Duration
	Latency time.Duration
	Reason  error // an Err… value, where a policy decided
	Err     error // the attempt's error
	From    breaker.State
	To      breaker.State
	Detail  string // why the breaker changed
}
