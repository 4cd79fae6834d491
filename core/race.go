package core

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/abate-go/abate/internal/clock"
)

// race drives a hedged call. The first copy of each attempt runs on the caller's goroutine, so that an attempt that is
// not hedged starts none; a hedge runs on the goroutine of the timer that sent it. All of them report under mu, and
// whoever's report decides, decides for all.
type race[T any] struct {
	ctx context.Context
	op  Operation[T]
	Driver

	mu       sync.Mutex
	round    int           // number of the attempt in the air; a hedge timer of an earlier one does nothing
	decided  bool          // the attempt in the air has an end: next, v and winner are set
	returned bool          // run is through: the caller has v
	wake     chan struct{} // made when the caller's goroutine has to wait for the hedges
	next     Step
	v        T
	winner   *attemptContext
	limits   [MaxCopies]*attemptContext
	timer    *hedgeTimer
	panicked any
	handing  *Handing // nil unless the operation hands over

	// Here to save an allocation each: the context of the first attempt's first copy, what the call needs for hedges,
	// and DoHedged's operation.
	first  attemptContext
	hedges beside
	own    hedgedFunc[T]
}

// run is Run for an operation that may be hedged, under a policy that hedges.
func (r *race[T]) run(g *Guard) (T, Release, error) {
	defer r.leave()
	r.beside = &r.hedges
	if hands(r.op) {
		r.handing = &Handing{&r.mu, &r.Call}
	}
	step := r.Start(r.ctx, g)
	for step.Action != Finish {
		if step.Action != Attempt {
			step = r.Wait(r.ctx, step)
			continue
		}
		step = r.attempt(step.Until)
		if step.Action == Queue && r.winner != nil {
			keep(r.op, r.v)
		}
	}
	r.returned = true
	return r.v, Release{r.winner, r.answer()}, step.Err
}

// sending is Call.sending for operations that can tell their callee something: DoHedged's cannot.
func (r *race[T]) sending(n int) Sending {
	if r.own.fn != nil {
		return Sending{Number: int(copyOf(&r.Call, n).number)}
	}
	return r.Call.sending(n)
}

// adorn gives the context of copy n what only some calls need. mu is held.
func (r *race[T]) adorn(limit *attemptContext, n int) {
	limit.lasting = r.own.fn != nil
	if r.asked {
		limit.info = r.infoOf(n)
	}
}

// forget discards what the last attempt has brought, because there is another one.
func (r *race[T]) forget() {
	if winner := r.winner; winner != nil {
		var none T
		v := r.v
		r.v, r.winner = none, nil
		defer winner.end()
		r.op.Discard(v)
	}
}

// attempt runs one attempt with its hedges until it is decided and the first copy is back.
func (r *race[T]) attempt(deadline time.Duration) Step {
	r.forget()
	r.mu.Lock()
	r.round++
	r.decided, r.wake = false, nil
	limit := &r.first
	if r.round > 1 {
		limit = new(attemptContext)
	}
	limit.parent, limit.deadline, limit.began = r.ctx, r.handing.ends(deadline), r.main.start
	r.adorn(limit, 0)
	r.limits = [MaxCopies]*attemptContext{limit}
	s := r.handing.told(r.sending(0), deadline)
	if delay, ok := r.HedgeDelay(r.main.start); ok {
		r.timer = startHedgeTimer(r, r.round, delay)
	}
	r.mu.Unlock()

	v, err := r.op.Attempt(limit, s)
	r.report(r.round, 0, limit, v, err)

	r.mu.Lock()
	for !r.decided {
		decided := make(chan struct{})
		r.wake = decided
		r.mu.Unlock()
		<-decided
		r.mu.Lock()
	}
	defer r.mu.Unlock()
	if r.panicked != nil {
		panic(r.panicked)
	}
	return r.next
}

// hedge sends one more copy, if the call may. It runs on the timer's goroutine.
func (r *race[T]) hedge(round int) {
	done := false
	defer func() {
		if !done {
			r.crash(round, recover())
		}
	}()
	if c, s, limit := r.admitHedge(round); limit != nil {
		v, err := r.op.Attempt(limit, s)
		r.report(round, c, limit, v, err)
	}
	done = true
}

// admitHedge asks the call for a further copy: its number in the air, what to send, and its context, nil if there is
// none.
func (r *race[T]) admitHedge(round int) (c int, s Sending, limit *attemptContext) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if round != r.round || r.decided || r.over {
		return 0, s, nil
	}
	now := clock.Now()
	if delay, early := r.early(now); early {
		r.timer = startHedgeTimer(r, round, delay)
		return 0, s, nil
	}
	c, deadline, ok := r.Hedge(now)
	if !ok {
		return 0, s, nil
	}
	limit = &attemptContext{parent: r.ctx, deadline: r.handing.ends(deadline), began: now}
	r.adorn(limit, c)
	r.limits[c] = limit
	if delay, ok := r.HedgeDelay(now); ok {
		r.timer = startHedgeTimer(r, round, delay)
	}
	s = r.handing.told(r.sending(c), deadline)
	s.Handing = nil // nobody learns when a copy is complete
	return c, s, limit
}

// early reports whether the first copy has not been with the dependency long enough for a hedge, because its sender
// took part of the time, and when to look again. mu is held.
func (r *race[T]) early(now time.Duration) (again time.Duration, early bool) {
	if r.handing == nil || r.inAir != 1 || !r.main.live {
		return 0, false
	}
	delay, ok := r.HedgeDelay(now)
	if r.main.asked&askedSends == 0 { // else it is not even complete
		delay -= now - r.main.start
	}
	return delay, ok && delay > 0
}

// report tells the call how copy c ended. The report that decides the attempt ends the contexts of all other copies;
// the value of a copy that decides nothing is discarded.
func (r *race[T]) report(round, c int, limit *attemptContext, v T, err error) {
	told := false
	defer func() {
		if !told && r.own.fn == nil { // something of the caller's has panicked
			r.op.Discard(v)
		}
	}()
	kept := r.settle(round, c, limit, v, judge(r.s, r.ctx, r.op, v, err))
	switch told = true; {
	case kept:
	case r.own.fn == nil:
		r.op.Discard(v)
	case err == nil:
		r.closeLoser(v)
	}
}

// settle tells the call, and whether v is what the caller gets.
func (r *race[T]) settle(round, c int, limit *attemptContext, v T, o Outcome) (kept bool) {
	r.mu.Lock()
	defer r.mu.Unlock() // deferred: an observer may end the goroutine
	if round != r.round || r.decided {
		return false
	}
	step := r.AttemptDone(clock.Now(), c, o)
	if step.Action == Await {
		return false
	}
	r.decide(step)
	if kept = step.Action == Finish || step.Action == Queue; kept {
		r.v, r.winner, r.limits[c] = v, limit, nil
	}
	r.cancelCopies()
	return kept
}

// decide ends the attempt in the air with step. mu is held.
func (r *race[T]) decide(step Step) {
	r.decided, r.next = true, step
	r.timer.stop()
	r.timer = nil
	if r.wake != nil {
		close(r.wake)
		r.wake = nil
	}
}

// cancelCopies ends the contexts of all copies but the winner's. mu is held.
func (r *race[T]) cancelCopies() {
	for _, limit := range r.limits {
		limit.end()
	}
}

// crash hands a hedge's panic, or the early end of its goroutine (panicked nil), to the caller's goroutine. If the
// attempt is decided the caller has its answer, or is about to: the panic of a copy that lost has nowhere to go but
// into the log. It must not end the process, which the same panic on the caller's goroutine would not have to.
func (r *race[T]) crash(round int, panicked any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if round != r.round || r.decided {
		if panicked != nil {
			r.s.panics.Note(r.s.name, "a copy that came too late", panicked)
		}
		return
	}
	if r.panicked = panicked; panicked == nil {
		r.panicked = errors.New("abate: the guarded function ended its goroutine")
	}
	r.giveUp()
}

// giveUp ends the attempt in the air and the call without a verdict. mu is held.
func (r *race[T]) giveUp() {
	defer r.Abort(clock.Now())
	r.decide(Step{Action: Finish})
	r.cancelCopies()
}

// leave runs when run returns, also by a panic of the first copy. If a hedge has won meanwhile, nobody gets what it
// brought.
func (r *race[T]) leave() {
	lost, v, winner := r.leaving()
	if lost {
		defer winner.end()
		r.op.Discard(v)
	}
}

// leaving is leave as far as it needs mu. It reports whether there is a value that nobody gets.
func (r *race[T]) leaving() (lost bool, v T, winner *attemptContext) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.returned || r.s == nil:
		return false, v, nil
	case !r.over:
		r.giveUp()
	}
	return r.winner != nil, r.v, r.winner
}

// hedgeTimer sends one hedge. What it calls is kept in a pool, so that arming one costs the runtime's timer and nothing
// else. The timer itself cannot be kept: one made in a testing/synctest bubble must not leave it.
type hedgeTimer struct {
	timer *time.Timer
	race  interface{ hedge(round int) }
	round int
	fire  func() // h.send, bound once
}

var hedgeTimers = sync.Pool{New: func() any {
	h := new(hedgeTimer)
	h.fire = h.send
	return h
}}

func startHedgeTimer(race interface{ hedge(round int) }, round int, delay time.Duration) *hedgeTimer {
	h := hedgeTimers.Get().(*hedgeTimer)
	h.race, h.round = race, round
	h.timer = time.AfterFunc(delay, h.fire)
	return h
}

func (h *hedgeTimer) send() { h.race.hedge(h.round) }

// stop disarms the timer. One that has fired is left to the garbage collector: its goroutine still reads it.
func (h *hedgeTimer) stop() {
	if h != nil && h.timer.Stop() {
		h.timer, h.race = nil, nil
		hedgeTimers.Put(h)
	}
}
