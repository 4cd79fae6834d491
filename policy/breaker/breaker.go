package breaker

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Breaker is one circuit breaker. All methods may be called from many goroutines at once. Times are durations
// since any fixed origin, the same for all calls; a time a little earlier than one seen before does no harm.
// Make one with New.
type Breaker struct {
	cur      atomic.Pointer[phase]
	rnd      func() uint64
	onChange func(Change)
	_        [cacheLine]byte

	mu       sync.Mutex // guards all changes of cur, and what follows
	probes   probes
	reopens  int // openings since the last full recovery, less the first
	openings uint64
	advice   advice

	loop adaptive // what the kind Adaptive decides by; it has a lock of its own
}

// New returns a breaker for c, closed (or forced open). Values outside their range are moved to its nearest end.
//
// rnd returns 64 uniform random bits for the jitter and the ramp-up, and must be safe for concurrent use. When
// it is nil the breaker uses a fixed sequence, the same in each process; then waits do not spread over a fleet.
//
// onChange, which may be nil, is called for each change of state. It is called by the goroutine whose call caused
// the change, without any lock, so it may use the breaker; changes that follow each other closely on two
// goroutines may arrive in the wrong order.
func New(c Config, rnd func() uint64, onChange func(Change)) *Breaker {
	if rnd == nil {
		rnd = sequence()
	}
	b := &Breaker{rnd: rnd, onChange: onChange}
	b.advice.deafUntil = math.MinInt64 // also on a clock that is before its origin
	c = c.effective()
	b.loop.reset()
	first := phase{gen: 1, ev: newEvidence(&c, nil, nil)}
	if c.forced() {
		first.state = Open
	}
	b.cur.Store(first.settle(&c))
	return b
}

// Allow decides about one call at now. When it returns true, make the call and Record the permit, whatever
// becomes of the call: a permit that is never recorded counts as hanging, or as a lost probe. When it returns
// false do not make the call; there is nothing to record.
//
// It takes no lock except when the state changes, while half-open, and, with slow-call detection, once per
// eighth of the slow threshold. It does not allocate except when the state changes.
func (b *Breaker) Allow(now time.Duration) (Permit, bool) { return b.AllowFor(now, 0) }

// AllowFor is Allow for a call that may take as long as patience, from which the kind Adaptive learns; 0: nobody knows.
func (b *Breaker) AllowFor(now, patience time.Duration) (Permit, bool) {
	p := b.cur.Load()
	switch {
	case p.quiet:
		return Permit{start: now, gen: p.gen}, true
	case p.loop:
		return b.steer(p, now, patience)
	}
	return b.admit(now)
}

// steer is AllowFor of the kind Adaptive.
func (b *Breaker) steer(p *phase, now, patience time.Duration) (Permit, bool) {
	permit, ok, change := b.loop.allow(now, patience)
	if change.From != change.To {
		b.reportProbing(change, permit)
	}
	return permit, ok || p.shadow
}

func (b *Breaker) admit(now time.Duration) (Permit, bool) {
	p := b.cur.Load()
	switch {
	case p.state == Open && (p.forced || now < p.until):
		return p.refuse()
	case p.state == Open || p.state == HalfOpen:
		return b.probe(now)
	case p.state == RampUp && now >= p.until:
		b.finishRampUp(now)
		return b.admit(now)
	}
	if h := p.ev.hanging; h != nil && h.due(now) {
		if b.advance(p, now); b.cur.Load() != p {
			return b.admit(now)
		}
	}
	if p.state == RampUp && !p.admits(now, b.rnd()) {
		return p.refuse()
	}
	permit := Permit{start: now, gen: p.gen}
	if p.ev.hanging != nil {
		permit.mark = p.ev.hanging.start()
	}
	return permit, true
}

// probe admits a call while half-open, and makes an open breaker whose wait is over half-open.
func (b *Breaker) probe(now time.Duration) (Permit, bool) {
	var change Change
	b.mu.Lock()
	p := b.cur.Load()
	if p.state == Open && !p.forced && now >= p.until {
		b.probes.reset()
		change = b.enter(phase{state: HalfOpen, advised: p.advised}, p.cfg, now, reasonWaitOver)
		p = b.cur.Load()
	}
	if p.state != HalfOpen { // another goroutine was faster
		b.mu.Unlock()
		return b.admit(now)
	}
	if n := b.probes.outlived(now); n > 0 {
		if b.probes.successes += n; b.probes.successes >= p.cfg.SuccessThreshold {
			recovered := b.recover(p.cfg, now)
			b.mu.Unlock()
			b.notify(change)
			b.notify(recovered)
			return b.admit(now)
		}
	}
	serial, ok := b.probes.take(now, p.cfg.PermittedCallsInHalfOpen, p.cfg.HalfOpenPermitLease)
	b.mu.Unlock()
	permit := Permit{start: now, gen: p.gen, mark: serial}
	if change.From != change.To {
		b.reportProbing(change, permit)
	}
	if !ok {
		return p.refuse()
	}
	return permit, true
}

// reportProbing reports that the breaker begins to probe, with a permit that is free if onChange panics: nobody gets it
// then.
func (b *Breaker) reportProbing(change Change, permit Permit) {
	notified := false
	defer func() {
		if !notified {
			b.takeBack(permit)
		}
	}()
	b.notify(change)
	notified = true
}

// Record takes the result of an admitted call. A permit from before the breaker last opened or began to probe
// is ignored, and so is a probe that reports twice. A probe that reports after its lease counts, though its permit
// has gone to another: to have run out of time is a result. Recording any other
// permit twice counts its call twice and may hide one hanging call, nothing else. A Result that is none of the
// three is Neutral.
//
// A success takes no lock except while half-open and once per bucket of a time window (a tenth of it). A
// failure or slow call adds up the window, and takes the lock if that opens the breaker.
func (b *Breaker) Record(now time.Duration, permit Permit, r Result) {
	b.record(now, permit, r, false)
}

// record is Record, also for a success whose answer has only begun: that does not end a row of answers that broke off.
func (b *Breaker) record(now time.Duration, permit Permit, r Result, begun bool) {
	if permit.gen&adaptiveMark != 0 {
		woken, change := b.loop.record(now, permit, r)
		defer b.notify(change)
		wake(woken)
		return
	}
	p := b.cur.Load()
	if permit.gen != p.gen {
		return
	}
	r = r.plain()
	if p.state == HalfOpen {
		b.report(now, permit, r)
		return
	}
	ev, slow, look := p.ev, false, false
	if h := ev.hanging; h != nil {
		if permit.start != sending {
			h.end(permit.mark)
		}
		slow = now-permit.start >= p.cfg.SlowCallDurationThreshold
		look = h.due(now)
	}
	if r <= Failure {
		if b.count(ev, now, r == Failure, slow, begun) || r == Failure || slow {
			b.judge(p, now)
		}
	}
	if look {
		b.advance(p, now)
	}
}

// count adds a call to the evidence and reports whether anything but the call itself asks for a judgement.
func (b *Breaker) count(ev *evidence, now time.Duration, failed, slow, begun bool) (look bool) {
	if w := ev.byTime; w != nil {
		if w.due(now) {
			b.mu.Lock()
			w.rotate(now)
			b.mu.Unlock()
			look = true // old calls have left: the rates may be up
		}
		w.add(failed, slow)
	} else if ev.byCount != nil {
		ev.byCount.add(failed, slow)
	}
	if failed {
		ev.row.failed()
		return look || ev.pending.Load()
	}
	ev.row.end(!begun)
	if !ev.works.Load() {
		ev.works.Store(true)
	}
	return look || ev.pending.Load()
}

// advance moves the clock of the hanging calls on, and judges when there was something to move.
func (b *Breaker) advance(p *phase, now time.Duration) {
	b.mu.Lock()
	moved := p.ev.hanging.moveTo(now)
	b.mu.Unlock()
	if moved {
		b.judge(p, now)
	}
}

// judge opens the breaker if the evidence says so. It looks without the lock first, and with it before it acts.
func (b *Breaker) judge(p *phase, now time.Duration) {
	if p.ev.pending.Load() { // cleared before the look: a failure counted during it sets it again
		p.ev.pending.Store(false)
	}
	reason, pending := p.verdict(now)
	if pending {
		p.ev.pending.Store(true)
	}
	if reason == "" {
		return
	}
	var change Change
	draw := b.rnd()
	b.mu.Lock()
	if q := b.cur.Load(); q.gen == p.gen { // then q is closed or ramping up, like p
		if reason, _ = q.verdict(now); reason != "" {
			change = b.open(q, now, reason, draw)
		}
	}
	b.mu.Unlock()
	b.notify(change)
}

// report takes the result of a probe.
func (b *Breaker) report(now time.Duration, permit Permit, r Result) {
	var change Change
	draw := b.drawFor(permit)
	b.mu.Lock()
	p := b.cur.Load()
	if p.gen == permit.gen && p.state == HalfOpen && b.probes.give(permit.mark) && r <= Failure {
		c := p.cfg
		slow := c.SlowCallRateThreshold > 0 && now-permit.start >= c.SlowCallDurationThreshold
		switch {
		case r == Failure:
			change = b.open(p, now, reasonProbeFailed, draw)
		case slow:
			change = b.open(p, now, reasonProbeSlow, draw)
		default:
			b.probes.successes++
			if b.probes.successes >= c.SuccessThreshold {
				change = b.recover(c, now)
			}
		}
	}
	b.mu.Unlock()
	b.notify(change)
}

// drawFor draws a random number for a permit, which is free if the source panics.
func (b *Breaker) drawFor(permit Permit) uint64 {
	drawn := false
	defer func() {
		if !drawn {
			b.takeBack(permit)
		}
	}()
	draw := b.rnd()
	drawn = true
	return draw
}

// takeBack takes the permit of a probe back that will not be recorded, because its holder is gone.
func (b *Breaker) takeBack(permit Permit) {
	if permit.gen&adaptiveMark != 0 {
		woken, _ := b.loop.record(permit.start, permit, Neutral)
		wake(woken)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.cur.Load(); p.gen == permit.gen && p.state == HalfOpen {
		b.probes.give(permit.mark)
	}
}

// open starts a wait. The lock is held.
func (b *Breaker) open(p *phase, now time.Duration, reason string, draw uint64) Change {
	if p.state == Closed {
		b.reopens = 0
	} else {
		b.reopens++
	}
	b.openings++
	return b.enter(phase{state: Open, until: after(now, p.cfg.wait(b.reopens, draw))}, p.cfg, now, reason)
}

// recover leaves half-open for the better. The lock is held.
func (b *Breaker) recover(c *Config, now time.Duration) Change {
	next := phase{state: Closed, ev: newEvidence(c, nil, nil)}
	next.ev.works.Store(true)
	if c.RampUp > 0 {
		next.state = RampUp
	}
	if b.cur.Load().advised {
		b.advice.deafUntil = after(now, c.MaxWaitDurationInOpenState)
	}
	return b.enter(next, c, now, reasonProbesOK)
}

// finishRampUp closes a breaker whose ramp-up is over. The evidence and the generation stay: a ramp-up and the
// closed state after it see the same calls.
func (b *Breaker) finishRampUp(now time.Duration) {
	var change Change
	b.mu.Lock()
	if p := b.cur.Load(); p.state == RampUp && now >= p.until {
		next := *p
		next.state = Closed
		change = b.publish(next, p.cfg, now, reasonRampUpOver)
	}
	b.mu.Unlock()
	b.notify(change)
}

// enter begins a new generation. The lock is held.
func (b *Breaker) enter(next phase, c *Config, now time.Duration, reason string) Change {
	next.gen = (b.cur.Load().gen + 1) &^ adaptiveMark
	if next.gen == 0 { // 0 is the generation of inert permits
		next.gen = 1
	}
	return b.publish(next, c, now, reason)
}

// publish makes next the phase that calls see. The lock is held.
func (b *Breaker) publish(next phase, c *Config, now time.Duration, reason string) Change {
	from := b.State()
	if next.state != from {
		next.since = now
	}
	b.cur.Store(next.settle(c))
	return Change{From: from, To: next.state, At: now, Reason: reason}
}

// notify passes a change on. No lock is held.
func (b *Breaker) notify(c Change) {
	if c.From != c.To && b.onChange != nil {
		b.onChange(c)
	}
}

// sequence returns a generator that is safe for concurrent use (splitmix64 over a counter).
func sequence() func() uint64 {
	var n atomic.Uint64
	return func() uint64 {
		z := n.Add(0x9e3779b97f4a7c15)
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
}
