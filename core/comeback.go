package core

import (
	"time"

	"github.com/abate-go/abate/internal/clock"
	"github.com/abate-go/abate/policy/comeback"
)

// ComeBackAt is ComeBack at a time of the caller's clock.
func (g *Guard) ComeBackAt(now time.Duration, reason error) time.Duration {
	s := g.inForce()
	t := comeback.Terms{First: comeback.Soonest, Each: comeback.UnknownBy, Most: comeback.LongAway}
	if reason == ErrCircuitOpen && s.breaker != nil {
		if b := s.breaker.Snapshot(now); b.OpenUntil > 0 {
			t.First = max(b.OpenUntil-now, comeback.Soonest)
			t.Most = clock.Later(t.First, min(max(b.OpenUntil-b.Since, comeback.Soonest), comeback.LongAway))
		}
	}
	return s.line.Book(now, t, s.rnd())
}
