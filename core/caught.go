package core

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
		s.tell(l.First, e)
		list = l.Rest
	}
	s.tell(list, e)
}

// tell tells one observer. Its panic ends here: whoever only listens must not cost a call its result, or the guard a
// permit.
func (s *settings) tell(o Observer, e *Event) {
	defer s.caughtObserver()
	o.Observe(*e)
}

func (s *settings) caughtObserver() {
	if v := recover(); v != nil {
		s.panics.Note(s.name, "an observer", v)
	}
}
