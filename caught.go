package abate

import "sync/atomic"

// panics are those that were caught because they had no way to go: an observer's, and that of a copy whose call is over.
type panics struct {
	count atomic.Uint64
	log   func(who string, nth uint64, of string, value any)
}

func (p *panics) note(who, of string, value any) {
	nth := p.count.Add(1)
	if p.log != nil {
		p.log(who, nth, of, value)
	}
}

// emit tells the observers, one after the other, whatever becomes of one of them.
func (s *settings) emit(e Event) {
	if s.observer != nil {
		e.Guard = s.name
		s.emitTo(s.observer, &e)
	}
}

func (s *settings) emitTo(list Observer, e *Event) {
	l, several := list.(observers)
	for ; several; l, several = list.(observers) {
		s.tell(l.first, e)
		list = l.rest
	}
	s.tell(list, e)
}

// tell tells one observer. Its panic ends here: whoever only listens must not cost a call its result, or the guard a permit.
func (s *settings) tell(o Observer, e *Event) {
	defer s.caughtObserver()
	o.Observe(*e)
}

func (s *settings) caughtObserver() {
	if v := recover(); v != nil {
		s.panics.note(s.name, "an observer", v)
	}
}

// emit is that of settings.
func (s *gateSettings) emit(e GateEvent) {
	if s.observer == nil {
		return
	}
	e.Gate = s.gate.name
	list := s.observer
	l, several := list.(gateObservers)
	for ; several; l, several = list.(gateObservers) {
		s.tell(l.first, &e)
		list = l.rest
	}
	s.tell(list, &e)
}

func (s *gateSettings) tell(o GateObserver, e *GateEvent) {
	defer s.caughtObserver()
	o.ObserveGate(*e)
}

func (s *gateSettings) caughtObserver() {
	if v := recover(); v != nil {
		s.gate.parts.panics.note(s.gate.name, "an observer", v)
	}
}
