package inbound

import "github.com/abate-go/abate/internal/listeners"

// GateObservers is Observers for gates.
func GateObservers(all ...GateObserver) GateObserver {
	return listeners.Chain(all, func(l listeners.Link[GateObserver]) GateObserver { return gateObservers{l} })
}

type gateObservers struct{ listeners.Link[GateObserver] }

// ObserveGate walks the list, too.
func (o gateObservers) ObserveGate(e GateEvent) {
	o.First.ObserveGate(e)
	last := o.Rest
	for l, more := last.(gateObservers); more; l, more = last.(gateObservers) {
		l.First.ObserveGate(e)
		last = l.Rest
	}
	last.ObserveGate(e)
}
