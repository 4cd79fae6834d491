package shed

import "time"

// chain is a list of waiters that have their outcome and are to be woken.
type chain struct{ first, last *Waiter }

func (c *chain) add(w *Waiter) {
	if c.last == nil {
		c.first = w
	} else {
		c.last.next = w
	}
	c.last = w
}

// lock begins a use of the queue, and returns the time: it never runs backwards here, whoever comes first.
func (s *Shedder) lock(now time.Duration) time.Duration {
	s.mu.Lock()
	s.now = max(s.now, now)
	return s.now
}

// unlock ends a use of the queue: it brings up to date what is read without the lock, unlocks, and wakes.
func (s *Shedder) unlock(now time.Duration, woken *chain) {
	s.codel.watch(now, &s.queue)
	barrier := uint32(0)
	if n := s.queue.len(); n > 0 && n >= int(s.room.Load()) {
		barrier = uint32(s.queue.least()) + 1
	}
	s.barrier.Store(barrier)
	s.due.Store(int64(s.queue.due()))
	s.mu.Unlock()
	for w := woken.first; w != nil; {
		next := w.next
		w.next = nil
		if w.Wake != nil {
			w.Wake()
		}
		w = next
	}
}

// Enqueue puts a request, for which Admit answered Full, in the queue. Queued: wait for Wake until until at the latest,
// then Leave. Admitted and Refused: w.Outcome says which; Wake is not called. One that matters more than another that
// waits takes its place when the queue is full.
func (s *Shedder) Enqueue(now time.Duration, w *Waiter, r Request) (v Verdict, until time.Duration) {
	k, caller := rankOf(r), uint32(0)
	woken := chain{}
	now = s.lock(now)
	defer s.unlock(now, &woken)
	mode := s.mode.Load() // under the lock: nobody queues who came past Reconfigure
	if mode&modeFair != 0 {
		caller = hashOf(r.Caller)
	}
	if w.queued {
		return Queued, w.until
	}
	switch {
	case mode&(modeOff|modeShadow) != 0: // since it began to wait
		return Admitted, 0
	case r.Deadline != 0 && now >= r.Deadline:
		w.reason = Expired
		s.arrived.givenUp++
		return Refused, 0
	}
	s.expire(now, &woken)
	for {
		word := s.word.Load()
		w.permit, v, w.reason = s.decide(now, k, caller)
		switch {
		case v == Refused:
			s.arrived.givenUp++
			return v, 0
		case v == Admitted:
			return v, 0
		case !s.free(word, k) && s.word.CompareAndSwap(word, word+oneWaiting):
			s.join(now, w, r, k, caller, &woken)
			return Queued, w.until
		}
	}
}

// join puts w in the queue, and the least important one out if there is no room for both. w has been counted.
func (s *Shedder) join(now time.Duration, w *Waiter, r Request, k rank, caller uint32, woken *chain) {
	s.count(caller, 1)
	w.rank, w.since, w.deadline = k, now, r.Deadline
	w.permit.caller = caller
	w.until = now + s.codel.patience()
	if r.Deadline != 0 {
		if s.codel.patient {
			s.learnPatience(now, r.Deadline)
			w.until = r.Deadline
			if d := r.Deadline - time.Duration(s.pipe.base); d > now {
				w.until = d
			}
		}
		w.until = min(w.until, r.Deadline)
	}
	s.queue.push(w)
	if s.queue.len() > int(s.room.Load()) {
		least := s.queue.least() // not k: then it would have been refused
		s.giveUp(now, s.queue.lists[least].newest, least.below(k), woken)
	}
}

// Leave ends the wait of w: its time is up (timedOut) or its caller has left. True: w has left the queue without a
// permit, and Outcome has the reason, Expired if its caller left. False: it had an outcome already, perhaps a permit,
// and Wake has been called or will be.
func (s *Shedder) Leave(now time.Duration, w *Waiter, timedOut bool) bool {
	woken := chain{}
	now = s.lock(now)
	defer s.unlock(now, &woken)
	if !w.queued {
		return false
	}
	s.take(now, w)
	s.arrived.givenUp++
	w.reason = Expired
	if timedOut {
		w.reason = w.late(now)
	}
	s.expire(now, &woken)
	return true
}

// late is why w is refused when its time is up.
func (w *Waiter) late(now time.Duration) Reason {
	if w.deadline != 0 && now >= w.deadline {
		return Expired
	}
	return QueueDelay
}

// expire refuses those whose time is up. The lock is held.
func (s *Shedder) expire(now time.Duration, woken *chain) {
	for s.queue.due() <= now {
		w := s.queue.heap[0]
		s.giveUp(now, w, w.late(now), woken)
	}
	s.codel.watch(now, &s.queue)
}

// take takes w out of the queue, without a place. The lock is held.
func (s *Shedder) take(now time.Duration, w *Waiter) {
	s.queue.remove(w)
	s.word.Add(^uint64(oneWaiting - 1))
	s.count(w.permit.caller, -1)
	w.permit = Permit{}
	s.delay = now - w.since
}

// giveUp refuses a waiter. The lock is held.
func (s *Shedder) giveUp(now time.Duration, w *Waiter, reason Reason, woken *chain) {
	s.take(now, w)
	s.arrived.givenUp++
	w.reason = reason
	woken.add(w)
}

// serve gives free places to waiters: the most important first, and among equals the oldest, or the newest while the
// queue is a standing one. While somebody waits nobody takes a place without the lock, so what is free stays free. The
// lock is held.
func (s *Shedder) serve(now time.Duration, woken *chain) {
	s.expire(now, woken)
	for s.queue.len() > 0 {
		k := s.queue.most()
		// Where there is no place for the most important there is none for the others.
		if inFlight(s.word.Load()) >= int(s.places[k.level()].Load()) {
			return
		}
		w := s.queue.lists[k].oldest
		switch {
		case s.pipe.hush.silent:
			w = s.pipe.hush.prober(now, s.patience(), s.queue.lists[k])
		case s.codel.standing, s.codel.told && s.pipe.inVain(now, s.patience(), w):
			w = s.queue.lists[k].newest
		}
		s.hand(now, w, woken)
	}
}

// inVain reports whether w, the oldest of BBR's queue, would be answered too late. Then the newest has a better chance.
func (b *pipe) inVain(now, patience time.Duration, w *Waiter) bool {
	takes := min(time.Duration(max(b.base, b.lately)), patience/2)
	return w.deadline != 0 && now+takes > w.deadline
}

// hand gives a place to w. The lock is held.
func (s *Shedder) hand(now time.Duration, w *Waiter, woken *chain) {
	s.queue.remove(w)
	s.word.Add(oneInFlight - oneWaiting)
	s.admissions++
	w.permit = s.permit(now, s.admissions, w.permit.caller)
	s.delay = now - w.since
	woken.add(w)
}
