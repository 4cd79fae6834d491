package abate

import (
	"time"

	"github.com/abate-go/abate/policy/comeback"
)

// What those who are refused are told, wherever nothing better is known.
const (
	soonest   = time.Second           // nobody who was refused for load should come earlier
	longAway  = 30 * time.Second      // nor later, however long the line is
	unknownBy = 50 * time.Millisecond // between one and the next, for a service of which nobody knows what it can do: 20 a second
)

// WholeSeconds is RetryAfter as HTTP says it. For a rate limit it is rounded up: earlier is in vain. What is refused for load is
// rounded down, and at least a second: RetryAfter is a second more than the service needs.
func (r *Refusal) WholeSeconds() int64 {
	switch {
	case r.RetryAfter <= 0:
		return 0
	case r.Reason == ErrRateLimited:
		return int64((r.RetryAfter-1)/time.Second) + 1
	}
	return max(int64(r.RetryAfter/time.Second), 1)
}

// comeBackForLoad is how long one whom the gate refuses for load should stay away: as long as the service needs for what waits and for
// those who were told before.
func (s *gateSettings) comeBackForLoad(now time.Duration) time.Duration {
	t := comeback.Terms{First: soonest, Each: unknownBy, Most: longAway}
	if s.shedder != nil && s.protection.Shed.Enabled() {
		wait, each := s.shedder.Backlog(now)
		t.First, t.Each = min(soonest+wait, longAway), each
	}
	return s.gate.parts.load.Book(now, t, s.rnd())
}

// comeBackForTokens is how long one whom the rate limit refuses should stay away: until its bucket has what it asked for, after those of
// the same bucket who were told before. It is at most twice as long as the bucket needs for it alone, or half a minute.
func (s *gateSettings) comeBackForTokens(now time.Duration, a *Arrival) time.Duration {
	t := comeback.Terms{First: a.limit.RetryAfter, Most: max(longAway, later(a.limit.RetryAfter, a.limit.RetryAfter))}
	if perSecond := s.protection.RateLimit.Limit.PerSecond(); perSecond > 0 {
		t.Each = time.Duration(min(a.request.Cost/perSecond*float64(time.Second), float64(t.Most)))
	}
	return s.tokens.Book(now, s.hash(a.request.Key), t, s.rnd())
}

// ComeBackAt is ComeBack at a time of the caller's clock.
func (g *Gate) ComeBackAt(now time.Duration) time.Duration { return g.inForce().comeBackForLoad(now) }

// ComeBackAt is ComeBack at a time of the caller's clock.
func (g *Guard) ComeBackAt(now time.Duration, reason error) time.Duration {
	s := g.inForce()
	t := comeback.Terms{First: soonest, Each: unknownBy, Most: longAway}
	if reason == ErrCircuitOpen && s.breaker != nil {
		if b := s.breaker.Snapshot(now); b.OpenUntil > 0 {
			t.First = max(b.OpenUntil-now, soonest)
			t.Most = later(t.First, min(max(b.OpenUntil-b.Since, soonest), longAway))
		}
	}
	return s.line.Book(now, t, s.rnd())
}
