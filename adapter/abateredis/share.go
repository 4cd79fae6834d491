package abateredis

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/budget"
)

// sharing is a guard whose budget or breaker the fleet shares.
type sharing struct {
	guard     *abate.Guard
	budgeted  bool          // the fleet's budget has been seen
	touched   time.Duration // when it was exchanged last; of the keeper only
	published time.Duration // when the breaker's finding was last published; only the keeper uses it
}

// Share shares a guard's retry budget and breaker with the guards of its name in other instances, as far as its policy
// says "fleet: true", also if that changes later. Another guard of the same name takes its place.
//
// The budget: what this instance's first attempts earn and its retries do not need goes to the others, a few times per
// second. Over the fleet extra attempts stay within ratio × first attempts + one reserve. While Redis is away every
// instance has its own deposits only. What was on its way when Redis went away is lost, never doubled. A Redis that
// lost its data comes back without a reserve, unless the first instance that asks is new too.
//
// The breaker: see breaker.Breaker.Advise.
func (f *Fleet) Share(g *abate.Guard) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.guards[g.Name()]; s == nil || s.guard != g {
		f.guards[g.Name()] = &sharing{guard: g}
	}
}

func (f *Fleet) shared() []*sharing {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.guards))
}

// exchange is one offer of a budget, under way.
type exchange struct {
	*sharing
	budget *budget.Budget
	offer  budget.Offer
}

// touchEvery is how often a budget is exchanged when there is nothing to move: it must not be forgotten.
const touchEvery = 30 * time.Second

// exchange moves what the budgets have too much of and too little.
func (f *Fleet) exchange(now time.Duration, shared []*sharing) {
	if f.away(now) {
		return
	}
	// A budget that guards of this instance share is exchanged once, or each would bring a reserve: under the first of
	// their names, which is the same everywhere.
	slices.SortFunc(shared, func(a, b *sharing) int { return strings.Compare(a.guard.Name(), b.guard.Name()) })
	var all []exchange
	seen := make(map[*budget.Budget]bool, len(shared))
	for _, s := range shared {
		b := s.guard.Budget()
		if b == nil || seen[b] {
			continue
		}
		seen[b] = true
		o, ok := b.Offer(now)
		if ok && (o.Earned+o.Back+o.Want > 0 || now-s.touched > touchEvery || !s.budgeted) {
			all = append(all, exchange{s, b, o})
		}
	}
	if len(all) == 0 {
		return
	}
	err := f.ask(f.ctx, "budget", func(ctx context.Context, l *link) error { return f.settle(ctx, l, now, all) })
	if err == nil {
		return
	}
	for _, e := range all {
		f.fellBack("retryBudget")
		if errors.Is(err, abate.ErrCircuitOpen) { // not sent, so nothing is lost
			e.budget.Settle(now, e.offer.Earned+e.offer.Back)
		}
	}
}

// settle sends offers and hands the answers out. It returns an error if there was none.
func (f *Fleet) settle(ctx context.Context, l *link, now time.Duration, all []exchange) error {
	results := runAll(ctx, l, budgetScript, budgetText, len(all), func(i int) (string, []any) {
		o, reserve := all[i].offer, all[i].offer.Reserve
		if all[i].budgeted {
			reserve = 0
		}
		key := l.key(digest("budget", all[i].guard.Name()), ":budget")
		return key, []any{o.Earned, o.Back, o.Want, reserve, o.Floor, o.Window.Microseconds()}
	})
	var failed error
	for i, e := range all {
		v, err := results[i].Result()
		if err != nil {
			failed = err
			continue
		}
		granted, err := parseCount(v, 0, e.offer.Want)
		if err != nil {
			failed = err
			continue
		}
		e.budgeted, e.touched = true, now
		e.budget.Settle(now, granted)
	}
	return failed
}

// publishEvery is how often a finding is published while it holds.
const publishEvery = 250 * time.Millisecond

// publish reports to the others which breakers this instance has opened.
func (f *Fleet) publish(now time.Duration, shared []*sharing) {
	var findings []finding
	for _, s := range shared {
		if !s.guard.Describe().CircuitBreaker.Fleet || s.guard.Breaker() == nil {
			continue
		}
		f.listen()
		wait, ok := s.guard.Breaker().Finding(now)
		switch {
		case !ok:
			s.published = 0
		case now-s.published >= publishEvery || s.published == 0:
			s.published = now
			findings = append(findings, finding{f.id, s.guard.Name(), wait})
		}
	}
	if len(findings) == 0 || f.away(now) {
		return
	}
	_ = f.ask(f.ctx, "publish", func(ctx context.Context, l *link) error { // it will be published again
		_, err := l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, found := range findings {
				p.Publish(ctx, l.channel(), found.message())
			}
			return nil
		})
		return err
	})
}

// channel is the name of the channel on which findings are published.
func (l *link) channel() string { return l.config.Prefix + "breakers" }
