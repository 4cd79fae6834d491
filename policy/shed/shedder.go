package shed

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Shedder decides about arrivals. It is safe for concurrent use, has no goroutine and needs no closing.
type Shedder struct {
	// word holds, from the top, a counter of arrivals that wraps, the requests in flight and the waiting ones, so that
	// one atomic operation sees and changes all three.
	word atomic.Uint64
	_    [56]byte

	// Read by every call and seldom written.
	nextRoll atomic.Int64
	nextSlot atomic.Int64
	// how many requests may be in flight for another of each priority to be admitted
	places   [len(Priorities)]atomic.Int32
	mode     atomic.Uint32
	mask     atomic.Uint32 // learner.mask
	room     atomic.Int32  // how many may wait
	barrier  atomic.Uint32 // 0, or, while the queue is full, the lowest rank in it plus one
	due      atomic.Int64  // when the next waiter has waited too long
	heldBack atomic.Bool
	halfT    atomic.Int64
	bbr      atomic.Bool
	silent   atomic.Bool // pipe.hush.silent
	_        [16]byte
	waits    atomic.Int64  // mean time that arrivals have left
	ended    atomic.Uint64 // successes below, all above
	late     atomic.Uint32 // given up late

	arrived arrivals
	cpu     processor
	callers *callers // written once, before modeFair is set for the first time

	mu         sync.Mutex // guards what follows and every change of the waiting part of word
	c          Config
	learn      learner
	pipe       pipe
	slotEnd    time.Duration
	queue      queue
	codel      codel
	now        time.Duration // when the lock was last taken for the queue
	delay      time.Duration // of the last to leave the queue
	admissions uint32        // counts the waiters that were admitted
}

// The layout of the word.
const (
	fieldBits    = 20
	field        = 1<<fieldBits - 1
	arrivalShift = 2 * fieldBits
	arrivalBits  = 64 - arrivalShift

	oneWaiting  = 1
	oneInFlight = 1 << fieldBits
	oneArrival  = 1 << arrivalShift

	most      = 1_000_000 // in flight, and waiting, by configuration
	unlimited = field - 1
)

func inFlight(word uint64) int { return int(word >> fieldBits & field) }
func waiting(word uint64) int  { return int(word & field) }

// What the fast path of Admit does not do.
const (
	modeOff    = 1 << iota
	modeShadow // everything passes
	modeFair   // callers are counted
	modeBusy   // the processor is busy, or nearly
)

// New returns a shedder that has seen nothing. Values outside their range are moved to the nearest end. One that is off
// still counts the requests in flight, so that it can be switched on later.
func New(c Config) *Shedder {
	s := &Shedder{}
	s.nextRoll.Store(math.MinInt64)
	s.nextSlot.Store(math.MinInt64)
	s.now = math.MinInt64
	s.slotEnd = math.MinInt64
	s.cpu.pass = 1
	s.learn.varies = 2 // until it is known: more than most
	s.Reconfigure(math.MinInt64, c)
	return s
}

// Admit decides about a request that arrives now. A new arrival never overtakes those that wait, unless it matters
// more. Full means that it may Enqueue. In shadow mode it is Admitted, with the Reason for which it would have been
// refused.
func (s *Shedder) Admit(now time.Duration, r Request) (Permit, Verdict, Reason) {
	if now >= time.Duration(s.nextRoll.Load()) {
		s.turn(now)
	}
	if r.Attempt > 1 {
		s.arrived.retry(r.Attempt)
	}
	if s.mode.Load() != 0 || r.Deadline != 0 && now >= r.Deadline {
		return s.admitSpecial(now, r)
	}
	places := int(s.places[level(r.Priority)].Load())
	for {
		word := s.word.Load()
		if waiting(word) != 0 || inFlight(word) >= places {
			return s.contend(now, r, 0)
		}
		if s.word.CompareAndSwap(word, word+oneArrival+oneInFlight) {
			p := s.permit(now, uint32(word>>arrivalShift), 0)
			if p.kind&sampled != 0 && r.Deadline != 0 {
				s.learnPatience(now, r.Deadline)
			}
			return p, Admitted, None
		}
	}
}

// permit makes a permit for a place that has been taken. Every so many are learned from.
func (s *Shedder) permit(now time.Duration, n, caller uint32) Permit {
	p := Permit{start: now, caller: caller, kind: held}
	if n&s.mask.Load() == 0 {
		p.kind = held | sampled
	}
	return p
}

// admitSpecial is Admit for requests and modes of which the fast path knows nothing.
func (s *Shedder) admitSpecial(now time.Duration, r Request) (Permit, Verdict, Reason) {
	mode := s.mode.Load()
	reason := None
	switch {
	case mode&modeOff != 0:
	case r.Deadline != 0 && now >= r.Deadline:
		reason = Expired
	case mode&modeBusy != 0 && s.cpu.refuses(r):
		reason = CPU
	}
	caller := uint32(0)
	if mode&modeFair != 0 {
		caller = hashOf(r.Caller)
	}
	switch {
	case mode&(modeShadow|modeOff) != 0:
		return s.pass(now, r, caller, reason)
	case reason != None:
		return s.refuse(reason)
	}
	return s.contend(now, r, caller)
}

func (s *Shedder) refuse(reason Reason) (Permit, Verdict, Reason) {
	s.arrived.turnedAway.Add(1)
	return Permit{}, Refused, reason
}

// pass lets an arrival pass that is not to be refused whatever happens. It has a place if it would have had one, or
// would have waited for one: that is the model of the queue in shadow mode.
func (s *Shedder) pass(now time.Duration, r Request, caller uint32, reason Reason) (Permit, Verdict, Reason) {
	k := rankOf(r)
	places, room := int(s.places[k.level()].Load()), int(s.room.Load())
	for reason == None {
		word := s.word.Load()
		n := inFlight(word)
		switch {
		case n >= places && s.unfair(caller):
			reason = Unfair
		case n >= places+room:
			reason = noPlace(s, word, k, room)
		case s.word.CompareAndSwap(word, word+oneArrival+oneInFlight):
			s.count(caller, 1)
			return s.permit(now, uint32(word>>arrivalShift), caller), Admitted, None
		}
	}
	if s.mode.Load()&modeOff != 0 {
		reason = None
	}
	s.arrived.turnedAway.Add(1)
	return Permit{}, Admitted, reason
}

// noPlace is why one of rank k is refused when nobody may wait, or nobody more.
func noPlace(s *Shedder, word uint64, k rank, room int) Reason {
	if inFlight(word) < int(s.places[CriticalPlus-Sheddable].Load())+room {
		return LowPriority
	}
	return QueueFull
}

// contend decides about an arrival that found no free place, or others before it. Most are refused here when there is
// far too much, so that is done without the lock.
func (s *Shedder) contend(now time.Duration, r Request, caller uint32) (Permit, Verdict, Reason) {
	k := rankOf(r)
	if b := rank(s.barrier.Load()); k < b && now < time.Duration(s.due.Load()) {
		return s.refuse(k.below(b - 1))
	}
	for word := s.word.Load(); waiting(word) == 0 && !s.silent.Load(); word = s.word.Load() {
		switch {
		case inFlight(word) < int(s.places[k.level()].Load()):
			if s.word.CompareAndSwap(word, word+oneArrival+oneInFlight) {
				s.count(caller, 1)
				return s.permit(now, uint32(word>>arrivalShift), caller), Admitted, None
			}
		case s.unfair(caller):
			return s.refuse(Unfair)
		case s.room.Load() == 0:
			return s.refuse(noPlace(s, word, k, 0))
		default:
			s.word.Add(oneArrival)
			s.heldBack.Store(true)
			return Permit{}, Full, None
		}
	}
	woken := chain{}
	now = s.lock(now)
	s.expire(now, &woken)
	p, verdict, reason := s.decide(now, k, caller)
	s.unlock(now, &woken)
	if verdict == Refused {
		return s.refuse(reason)
	}
	s.word.Add(oneArrival)
	return p, verdict, reason
}

// decide takes a place for one of rank k if one is free and nobody waits that matters as much. The lock is held.
func (s *Shedder) decide(now time.Duration, k rank, caller uint32) (Permit, Verdict, Reason) {
	for {
		word := s.word.Load()
		if s.free(word, k) || s.queue.len() == 0 && s.pipe.hush.probe(now, 0) {
			if s.word.CompareAndSwap(word, word+oneInFlight) {
				s.count(caller, 1)
				return s.permit(now, uint32(word>>arrivalShift), caller), Admitted, None
			}
			continue
		}
		room := int(s.room.Load())
		switch {
		case s.unfair(caller):
			return Permit{}, Refused, Unfair
		case room == 0:
			return Permit{}, Refused, noPlace(s, word, k, 0)
		case s.queue.len() >= room && k <= s.queue.least():
			return Permit{}, Refused, k.below(s.queue.least())
		}
		return Permit{}, Full, None
	}
}

// free reports whether one of rank k may have a place. The lock is held.
func (s *Shedder) free(word uint64, k rank) bool {
	return inFlight(word) < int(s.places[k.level()].Load()) && (s.queue.len() == 0 || s.queue.most() < k)
}

// unfair reports whether a caller holds its share of the places. It is asked only where none is free, so the share of a
// caller that is alone goes to waste for nobody.
func (s *Shedder) unfair(caller uint32) bool {
	return caller != 0 && s.callers.held(caller) >= s.callers.most.Load()
}

func (s *Shedder) count(caller uint32, n int32) {
	if caller != 0 {
		s.callers.add(caller, n)
	}
}

// Release gives a permit back, and the place to a waiter. The zero Permit is ignored. It panics when no permit is out,
// as unlocking an unlocked mutex does: the limit would not hold any more.
func (s *Shedder) Release(now time.Duration, p Permit, r Result) {
	if p.kind == 0 {
		return
	}
	s.count(p.caller, -1)
	if s.bbr.Load() {
		if r == Done {
			s.ended.Add(1<<32 + 1)
		} else {
			s.ended.Add(1 << 32)
		}
	}
	if p.kind&sampled != 0 || r == Dropped || s.silent.Load() {
		s.result(now, p, r)
	}
	word := s.word.Add(^uint64(oneInFlight - 1))
	if inFlight(word) == field {
		s.word.Add(oneInFlight)
		panic("shed: Release without a permit")
	}
	if waiting(word) != 0 {
		woken := chain{}
		now = s.lock(now)
		s.serve(now, &woken)
		s.unlock(now, &woken)
	}
}

// Scarce reports whether little is left of what the service can do at once, as far as the shedder knows: somebody waits
// for a slot, or more than three quarters of the limit are in flight. Without a limit nothing is known, and in shadow
// mode there is none. It takes no lock.
func (s *Shedder) Scarce() bool {
	limit := int(s.places[CriticalPlus-Sheddable].Load())
	if limit >= unlimited || s.mode.Load()&(modeShadow|modeOff) != 0 {
		return false
	}
	word := s.word.Load()
	return waiting(word) != 0 || 4*inFlight(word) > 3*limit
}

// NeedsTime reports whether Release has a use for the time. For a permit for which it has none, and that was not
// Dropped, it may be given the time of its Admit: a service with tens of thousands of requests per second saves reading
// the clock.
func (s *Shedder) NeedsTime(p Permit) bool {
	return p.kind&sampled != 0 || waiting(s.word.Load()) != 0 || s.silent.Load()
}

// result learns from what became of a request. An ignored one teaches nothing.
func (s *Shedder) result(now time.Duration, p Permit, r Result) {
	if s.bbr.Load() {
		s.flowed(now, p, r)
		return
	}
	if r == Ignored {
		return
	}
	woken := chain{}
	now = s.lock(now)
	changed := false
	if r == Dropped {
		changed = s.learn.drop(now, p.start, &s.c)
	} else {
		changed = s.learn.sample(now, now-p.start, inFlight(s.word.Load()), &s.c)
		s.mask.Store(s.learn.mask)
	}
	if changed {
		s.apply()
		s.serve(now, &woken)
	}
	s.unlock(now, &woken)
}

// flowed is result for BBR. An ignored one teaches only that the service is alive, if it was quick: else its caller has
// left, perhaps.
func (s *Shedder) flowed(now time.Duration, p Permit, r Result) {
	woken := chain{}
	now = s.lock(now)
	took, b := now-p.start, &s.pipe
	changed := false
	switch {
	case r == Done:
		b.sample(p.start, took, true)
	case r == Dropped && took > time.Duration(s.halfT.Load()): // given up
		s.late.Add(1)
		b.sample(p.start, took, false)
	}
	if r == Done || took < b.overdue(s.patience()) && (r == Ignored || float64(took) < 2*b.base) {
		if changed = b.hush.heard(now); changed {
			s.silent.Store(false)
		}
	}
	if now-b.begin >= windowOf(s.patience()) {
		s.window(now, &woken)
	} else if changed {
		s.apply()
		s.serve(now, &woken)
	}
	s.unlock(now, &woken)
}

// SetCPU sets which share of the processor time that there is for this process was used lately, 0 to 1. Call it at
// even intervals of a tenth of a second to a second. While no reading comes for ten seconds nothing is refused for it.
func (s *Shedder) SetCPU(now time.Duration, share float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	busy := s.cpu.read(now, share, s.c.CPU)
	s.setMode(modeBusy, busy && s.c.Enabled())
}

// RetriesTooMany reports whether so many of the requests that arrived in the last ten seconds, refused ones included,
// are retries that clients should stop: more than MaxRetryShare, of at least 20 requests. It is up to half a second
// old.
func (s *Shedder) RetriesTooMany(now time.Duration) bool {
	if now >= time.Duration(s.nextSlot.Load()) {
		s.roll(now)
	}
	return s.arrived.tooMany.Load()
}

// Backlog is how long the service needs for what waits, and how long for each further request: 1/each is what it can
// do. So those who are refused can be asked to come back at the rate at which they can be taken. By Little's law, as
// many as have a place take as long as a request does; until that is known they are taken to need a second. It is up to
// half a second old.
func (s *Shedder) Backlog(now time.Duration) (wait, each time.Duration) {
	if now >= time.Duration(s.nextSlot.Load()) {
		s.roll(now)
	}
	each = time.Duration(s.arrived.each.Load())
	return time.Duration(min(float64(waiting(s.word.Load()))*float64(each), float64(longest))), each
}
