package abateotel

import (
	"context"
	"errors"
	"io"
	"net"
	"reflect"
	"strings"
	"syscall"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/registry"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/startup"
)

// The attributes that the semantic conventions have no name for.
const (
	guardKey    = attribute.Key("abate.guard")
	attemptKey  = attribute.Key("abate.attempt")  // the number of one, from 1
	attemptsKey = attribute.Key("abate.attempts") // how many were sent
	outcomeKey  = attribute.Key("abate.outcome")
	reasonKey   = attribute.Key("abate.reason")
	delayKey    = attribute.Key("abate.retry.delay") // in seconds
	stateKey    = attribute.Key("abate.circuit_breaker.state")
)

// The events of spans.
const (
	queuedEvent = "abate.call.queued"
	retryEvent  = "abate.retry.scheduled"
	hedgeEvent  = "abate.hedge.sent"
	deniedEvent = "abate.hedge.denied"
	stopEvent   = "abate.call.stopped"
)

// classes are how an attempt can end, and a call that sent one. Their names are those of abate.Class.
var classes = [...]abate.Class{abate.Success, abate.Failure, abate.Overload, abate.Ignored}

// refused is the outcome of a call that no attempt was sent for, after the classes.
const (
	refused      = len(classes)
	callOutcomes = len(classes) + 1
)

func outcomeName(outcome int) string {
	if outcome == refused {
		return "refused"
	}
	return classes[outcome].String()
}

// states are those that a breaker can be in.
var states = [...]breaker.State{breaker.Closed, breaker.HalfOpen, breaker.Open, breaker.RampUp}

// stateName is the breaker's own name for the state, in the letters that the conventions want.
func stateName(s breaker.State) attribute.KeyValue {
	return stateKey.String(strings.ReplaceAll(s.String(), "-", "_"))
}

// reason is why the policy said no, with its name.
type reason struct {
	err  error
	name string
}

// reasons are those of the registry, and some more. The last is for what this list does not know.
var reasons = func() (all [len(registry.Reasons) + 4]reason) {
	for i, r := range registry.Reasons {
		all[i] = reason{r.Err, r.Label}
	}
	copy(all[len(registry.Reasons):], []reason{{startup.ErrGaveUp, "gave_up"}, {startup.ErrPermanent, "permanent"},
		{context.Canceled, canceled}, {nil, "other"}})
	return all
}()

// canceled names what nobody waits for any more. It is nobody's failure.
const canceled = "canceled"

// reasonOf returns the place of a reason in reasons.
func reasonOf(err error) int {
	for i := range reasons[:len(reasons)-1] {
		if reasons[i].err == err {
			return i
		}
	}
	return len(reasons) - 1
}

// ended returns how a call ended: its outcome, and if that is an error, as what. The type of an error is the reason of
// the policy's, or else the class.
func ended(e *abate.Event) (outcome int, errorType string) {
	outcome = int(e.Class & 3)
	switch {
	case e.Reason == context.Canceled:
		return outcome, ""
	case e.Reason != nil:
		if e.Attempt == 0 {
			outcome = refused
		}
		return outcome, reasons[reasonOf(e.Reason)].name
	case e.Class == abate.Failure, e.Class == abate.Overload:
		return outcome, e.Class.String()
	}
	return outcome, ""
}

// errorType names an error for error.type: in a few words for those that networks are known for, else by its Go type.
func errorType(err error) string {
	var timeout interface{ Timeout() bool }
	var dns *net.DNSError
	switch {
	case errors.Is(err, context.Canceled):
		return canceled
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection_refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection_reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection_closed"
	case errors.As(err, &dns):
		return "name_resolution_error"
	}
	// what fmt.Errorf has wrapped says more than its wrapper
	for strings.HasPrefix(reflect.TypeOf(err).String(), "*fmt.") {
		inner := errors.Unwrap(err)
		if inner == nil {
			break
		}
		err = inner
	}
	if abate.Reason(err) != nil { // of a guard inside: the name that its users know
		return "*abate.Error"
	}
	if _, ok := err.(*abate.FieldError); ok {
		return "*abate.FieldError"
	}
	return semconv.ErrorType(err).Value.AsString()
}
