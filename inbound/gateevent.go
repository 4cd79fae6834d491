package inbound

import (
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/shed"
)

// GateObserver is told everything a gate does, under the rules of Observer.
type GateObserver interface {
	ObserveGate(GateEvent)
}

// GateObserverFunc makes a GateObserver of a function.
type GateObserverFunc func(GateEvent)

// ObserveGate calls f.
func (f GateObserverFunc) ObserveGate(e GateEvent) { f(e) }

// GateEventKind says what happened at a gate.
type GateEventKind uint8

const (
	// LimitDecided: the rate limit allowed a request, or not (Over). With Shadow one over the limit passed all the same.
	LimitDecided GateEventKind = iota + 1
	// RequestAdmitted: the service gets the request, after Delay.
	RequestAdmitted
	// RequestRefused: it does not, for Reason. With Shadow it does all the same.
	RequestRefused
	// RequestDone: the service is through with it, after Latency.
	RequestDone
	// KeyDecided: a request had an idempotency key; Detail is run, replay, running, mismatch, taken-over, missing, full,
	// away, unrecorded or lost.
	KeyDecided
	// KeysForgotten: the store of idempotency keys was full and forgot finished ones before their retention, the last of
	// them after Delay.
	KeysForgotten
)

var gateEventNames = [...]string{"", "limit-decided", "request-admitted", "request-refused", "request-done",
	"key-decided", "keys-forgotten"}

// String returns the name used in logs, such as "request-refused".
func (k GateEventKind) String() string {
	if int(k) >= len(gateEventNames) {
		return "unknown"
	}
	return gateEventNames[k]
}

// GateEvent is one thing that happened at a gate. It is passed by value and allocates nothing.
type GateEvent struct {
	Kind     GateEventKind
	Gate     string
	At       time.Duration // on the gate's clock: since an arbitrary fixed origin
	Priority shed.Priority
	Attempt  int
	Class    core.Class
	Reason   error // an Err… value
	Shed     shed.Reason
	Delay    time.Duration // since the arrival
	Latency  time.Duration // since the service got it, without the time for which its slot was lent
	Over     bool
	Shadow   bool
	Detail   string
}
