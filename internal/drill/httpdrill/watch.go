package httpdrill

import (
	"github.com/abate-go/abate"
	"github.com/abate-go/abate/inbound"
)

// Watcher is shown what the guards and the gate of an act do while it is run: a page for people, metrics for a
// scraper. Most of its methods are those of abateadmin.Page and metrics.Metrics.
type Watcher interface {
	// Begin is called when an act begins, with its name: nothing of an act before is of this one.
	Begin(act string)
	Adjust(service string, p *abate.Policy)
	Add(guards ...*abate.Guard)
	Remove(guards ...*abate.Guard)
	AdjustProtection(name string, p *inbound.Protection)
	AddGate(gates ...*inbound.Gate)
}

// Watchers are several of them, none for nobody.
type Watchers []Watcher

// begin tells everybody that an act begins.
func (w Watchers) begin(act string) {
	for _, one := range w {
		one.Begin(act)
	}
}

// adjust has a policy tell everybody what its guard does.
func (w Watchers) adjust(service string, p *abate.Policy) {
	for _, one := range w {
		one.Adjust(service, p)
	}
}

// observer is what a guard has to tell that somebody else makes.
func (w Watchers) observer(service string, own abate.Observer) abate.Observer {
	p := abate.Policy{Observer: own}
	w.adjust(service, &p)
	return p.Observer
}

// add shows a guard.
func (w Watchers) add(g *abate.Guard) {
	for _, one := range w {
		one.Add(g)
	}
}

// remove no longer shows a guard.
func (w Watchers) remove(g *abate.Guard) {
	for _, one := range w {
		one.Remove(g)
	}
}

// adjustGate has a protection tell everybody what its gate does.
func (w Watchers) adjustGate(name string, p *inbound.Protection) {
	for _, one := range w {
		one.AdjustProtection(name, p)
	}
}

// addGate shows a gate.
func (w Watchers) addGate(g *inbound.Gate) {
	for _, one := range w {
		one.AddGate(g)
	}
}
