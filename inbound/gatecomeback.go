package inbound

import (
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/clock"
	"github.com/abate-go/abate/policy/comeback"
)

// WholeSeconds is RetryAfter as HTTP says it. For a rate limit it is rounded up: earlier is in vain. What is refused
// for load is rounded down, and at least a second: RetryAfter is a second more than the service needs.
func (r *Refusal) WholeSeconds() int64 {
	switch {
	case r.RetryAfter <= 0:
		return 0
	case r.Reason == core.ErrRateLimited:
		return int64((r.RetryAfter-1)/time.Second) + 1
	}
	return max(int64(r.RetryAfter/time.Second), 1)
}

// comeBackForLoad is how long one whom the gate refuses for load should stay away: as long as the service needs for
// what waits and for those who were told before.
func (s *gateSettings) comeBackForLoad(now time.Duration) time.Duration {
	t := comeback.Terms{First: comeback.Soonest, Each: comeback.UnknownBy, Most: comeback.LongAway}
	if s.shedder != nil && s.protection.Shed.Enabled() {
		wait, each := s.shedder.Backlog(now)
		t.First, t.Each = min(comeback.Soonest+wait, comeback.LongAway), each
	}
	return s.gate.parts.load.Book(now, t, s.rnd())
}

// comeBackForTokens is how long one whom the rate limit refuses should stay away: until its bucket has what it asked
// for, after those of the same bucket who were told before. It is at most twice as long as the bucket needs for it
// alone, or half a minute.
func (s *gateSettings) comeBackForTokens(now time.Duration, a *Arrival) time.Duration {
	t := comeback.Terms{First: a.limit.RetryAfter, Most: max(comeback.LongAway, clock.Later(a.limit.RetryAfter,
		a.limit.RetryAfter))}
	if perSecond := s.protection.RateLimit.Limit.PerSecond(); perSecond > 0 {
		t.Each = time.Duration(min(a.request.Cost/perSecond*float64(time.Second), float64(t.Most)))
	}
	return s.tokens.Book(now, s.hash(a.request.Key), t, s.rnd())
}

// ComeBackAt is ComeBack at a time of the caller's clock.
func (g *Gate) ComeBackAt(now time.Duration) time.Duration { return g.inForce().comeBackForLoad(now) }
