package shed

import "time"

// reserved is the share of the places kept free of each priority, one in so many; 0 is none. What matters may have them
// all, so that it is never held up by what does not; what matters less may have nearly all, so that it can use a
// service that is otherwise idle.
var reserved = [len(Priorities)]int{8, 16, 0, 0}

// Reconfigure puts c into effect. Permits stay valid, waiters keep their places, and what was learned is kept within
// the new bounds. A limit that was fixed, or none, begins to learn from InitialConcurrency, or goes on where it once
// ended. A raised limit admits waiters at once; a lowered one, and a shorter queue, take effect as requests end.
// Waiters are admitted when the shedder is switched off, or to shadow mode.
func (s *Shedder) Reconfigure(now time.Duration, c Config) {
	woken := chain{}
	now = s.lock(now)
	s.c = c.WithDefaults().clamped()
	if s.c.Concurrency.adaptive() {
		if s.learn.limit == 0 {
			s.learn.limit = float64(s.c.InitialConcurrency)
		}
		s.learn.limit = min(max(s.learn.limit, float64(s.c.MinConcurrency)), float64(s.c.MaxConcurrency))
	}
	if !s.c.Concurrency.measures() {
		s.learn.probe = noProbe
	}
	if s.c.CPU == 0 || !s.c.Enabled() {
		s.cpu.forget()
		s.setMode(modeBusy, false)
	}
	fair := s.c.MaxCallerShare > 0 && s.c.Concurrency != ""
	if fair && s.callers == nil {
		s.callers = &callers{}
	}
	s.bbr.Store(s.c.Concurrency == BBR)
	if s.c.Concurrency != BBR || s.c.Shadow || s.c.NoQueue || !s.c.Enabled() {
		s.pipe.hush = hush{}
		s.silent.Store(false)
	}
	s.apply()
	s.setMode(modeFair, fair)
	s.setMode(modeShadow, s.c.Shadow)
	s.setMode(modeOff, !s.c.Enabled())
	if s.c.Shadow {
		for s.queue.len() > 0 {
			s.hand(now, s.queue.lists[s.queue.most()].oldest, &woken)
		}
	}
	s.serve(now, &woken)
	s.unlock(now, &woken)
}

// setMode switches a part of the mode on or off. The lock is held.
func (s *Shedder) setMode(bit uint32, on bool) {
	mode := s.mode.Load() &^ bit
	if on {
		mode |= bit
	}
	s.mode.Store(mode)
}

// apply puts what was configured and learned into effect. The lock is held.
func (s *Shedder) apply() {
	limit := unlimited
	if s.c.Enabled() {
		switch {
		case s.c.Concurrency == Fixed:
			limit = s.c.MaxConcurrency
		case s.c.Concurrency == BBR:
			limit = s.pipe.places(s.patience(), &s.c)
		case s.c.Concurrency != "":
			limit = s.learn.most()
		}
	}
	for i, part := range reserved {
		places := limit
		if part > 0 && limit < unlimited {
			places -= limit / part
		}
		s.places[i].Store(int32(places))
	}
	room := s.c.MaxQueue
	switch {
	case s.c.NoQueue || s.c.Concurrency == "":
		room = 0
	case room == 0 && s.c.Concurrency == BBR:
		room = s.pipe.room(s.patience())
		if s.waits.Load() != 0 {
			room = s.pipe.room(roomFor * s.patience())
		}
	case room == 0:
		room = max(limit/2, 1)
		if l := &s.learn; l.latency > l.base {
			room = max(int(float64(limit)/2*l.base/l.latency), 1)
		}
	}
	s.room.Store(int32(room))
	if s.callers != nil {
		s.callers.most.Store(int32(max(float64(limit)*s.c.MaxCallerShare, 1)))
	}
	q := &s.codel
	if q.patient = s.c.Concurrency == BBR; q.patient {
		q.wait, q.many, q.told = s.patience(), room/2, s.waits.Load() != 0
	}
	q.target, q.interval = s.c.QueueTarget, s.c.QueueInterval
	if q.interval == 0 {
		q.interval = max(leastInterval, time.Duration(2*s.learn.base), 2*q.target)
	}
	if q.target == 0 {
		q.target = min(max(leastTarget, time.Duration(s.learn.base/2)), q.interval/2)
	}
}

// State is what a shedder looks like at one moment.
type State struct {
	Limit      int // of requests handled at once; 0 for none
	InFlight   int // above Limit for a while after Limit was lowered
	Queued     int
	QueueDelay time.Duration      // how long the last to leave the queue had waited
	Latency    time.Duration      // how long requests take without load, as far as known
	CPU        float64            // the last reading, 0 to 1
	CPURefused float64            // the share of requests refused for it
	Attempts   [laterAttempts]int // first, second, third and later attempts that arrived in the last ten seconds
	RetryShare float64            // retries for each first attempt among them
}

// State returns what there is now. In shadow mode it is the model's: those that would have been admitted, and those
// that would have waited.
func (s *Shedder) State(now time.Duration) State {
	if now >= time.Duration(s.nextSlot.Load()) {
		s.roll(now)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	word := s.word.Load()
	lately := s.arrived.lately(s.arrived.counts(word))
	st := State{
		InFlight: inFlight(word), Queued: waiting(word), QueueDelay: s.delay, Latency: time.Duration(s.learn.base),
		CPU: s.cpu.use, CPURefused: 1 - s.cpu.pass, RetryShare: lately.retryShare(),
	}
	if s.c.Concurrency == BBR {
		st.Latency = time.Duration(s.pipe.base)
	}
	for i, n := range lately.attempts {
		st.Attempts[i] = int(n)
	}
	if limit := int(s.places[CriticalPlus-Sheddable].Load()); limit < unlimited {
		st.Limit = limit
		if s.c.Shadow && st.InFlight > limit {
			st.InFlight, st.Queued = limit, st.InFlight-limit
		}
	}
	return st
}
