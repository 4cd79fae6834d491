package inbound

// emit is that of settings.
func (s *gateSettings) emit(e GateEvent) {
	if s.observer == nil {
		return
	}
	e.Gate = s.gate.name
	list := s.observer
	l, several := list.(gateObservers)
	for ; several; l, several = list.(gateObservers) {
		s.tell(l.First, &e)
		list = l.Rest
	}
	s.tell(list, &e)
}

func (s *gateSettings) tell(o GateObserver, e *GateEvent) {
	defer s.caughtObserver()
	o.ObserveGate(*e)
}

func (s *gateSettings) caughtObserver() {
	if v := recover(); v != nil {
		s.gate.parts.panics.Note(s.gate.name, "an observer", v)
	}
}
