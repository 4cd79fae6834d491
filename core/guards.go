package core

import (
	"container/list"
	"fmt"
	"sync"
	"time"

	"github.com/abate-go/abate/internal/caught"
	"github.com/abate-go/abate/internal/clock"
)

// Guards are the guards of many dependencies of one kind under one policy: of each tenant, shard or host. There are at
// most so many as NewGuards was told: one that was not used for long goes, if it is at rest: no call is in it, its
// circuit is closed, and its limits are where they began. One whose budget has not come back to what a new one has
// keeps its place for a minute after its last use. Where there is no place, and nobody to forget, keys share one guard,
// the overflow.
//
// A dependency that fails gets no second budget by being forgotten: there are as many budgets as places. Each that was
// forgotten before it was full again is gone for good, and a key that finds none draws from the overflow's. So all keys
// together send ratio × first attempts and max + 1 reserves of extra attempts at most, whatever keys there are.
//
// It is safe for concurrent use. To find a guard costs a short lock and no allocation.
type Guards[K comparable] struct {
	prefix   string
	max      int
	overflow *Guard

	mu     sync.Mutex
	policy Policy
	byKey  map[K]*list.Element // of *keyedGuard[K]
	byUse  list.List           // the one used last in front
	fresh  float64             // the budget of a guard that nobody has used
	own    int                 // budgets of the guards that there are, and of those that were forgotten in debt
}

type keyedGuard[K comparable] struct {
	key    K
	guard  *Guard
	used   time.Duration // when it was last asked for
	shares bool          // the overflow's budget
}

// NewGuards returns guards under p, at most max of them and one overflow; max is 1 or more. A guard is named after
// prefix and its key, as fmt.Sprint writes it: "orders/eu-1". The overflow is "orders/*": what many keys share is one
// dependency. Names are labels of metrics, so what keys there are should not be anybody's choice.
func NewGuards[K comparable](prefix string, p Policy, max int) (*Guards[K], error) {
	if max < 1 {
		return nil, fmt.Errorf("abate: guards of %q: at most %d of them; allowed: 1 or more, for example 1000", prefix, max)
	}
	overflow, err := New(prefix+"/*", p)
	if err != nil {
		return nil, err
	}
	return &Guards[K]{
		prefix: prefix, max: max, overflow: overflow, policy: p.clone(), byKey: make(map[K]*list.Element),
		fresh: overflow.earned(),
	}, nil
}

// For returns the guard of a key: always the same one while it is used. Keep the key, not the guard: a guard that is
// kept may have been forgotten.
func (s *Guards[K]) For(key K) *Guard {
	now := clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.byKey[key]; ok {
		k := e.Value.(*keyedGuard[K])
		k.used = now
		s.byUse.MoveToFront(e)
		return k.guard
	}
	if key != key || s.byUse.Len() >= s.max && !s.forget(now) { // nobody finds the guard of a NaN again
		return s.overflow
	}
	g := &Guard{name: fmt.Sprint(s.prefix, "/", key)}
	g.parts.panics.Log = caught.Log
	g.parts.countCalls(&s.policy)
	k := &keyedGuard[K]{key: key, guard: g, used: now, shares: s.own >= s.max}
	if err := g.Update(s.policyOf(k)); err != nil {
		return s.overflow // cannot be: the policy has been tried
	}
	if !k.shares {
		s.own++
	}
	s.byKey[key] = s.byUse.PushFront(k)
	return g
}

// policyOf returns the policy in force with the budget that is k's. mu is held.
func (s *Guards[K]) policyOf(k *keyedGuard[K]) Policy {
	p := s.policy
	if b := s.overflow.Budget(); k.shares && b != nil {
		p.Budget = b
	}
	return p
}

// lookBack is how many guards are asked whether they can be forgotten, so that a choice takes a bounded time. A debt is
// what has not come back into a budget; only calls bring it back, so a key that is not used any more would keep its
// place for ever.
const (
	lookBack = 8
	debtKept = time.Minute
)

// forget makes a place, if one of the guards that were used the longest time ago can go. Those that cannot go to the
// front: the next choice asks others. mu is held.
func (s *Guards[K]) forget(now time.Duration) bool {
	for range min(lookBack, s.byUse.Len()) {
		e := s.byUse.Back()
		k := e.Value.(*keyedGuard[K])
		debt := !k.shares && k.guard.earned() < s.fresh
		if !k.guard.inForce().rests(now) || debt && now-k.used < debtKept {
			s.byUse.MoveToFront(e)
			continue
		}
		s.byUse.Remove(e)
		delete(s.byKey, k.key)
		if !k.shares && !debt {
			s.own--
		}
		return true
	}
	return false
}

// Idle reports whether another guard under the same policy would let no more through than this one, its retry budget
// and circuit breaker aside: no call holds a permit of its bulkhead, and its rate limit and pace are where they began.
// It is for those who keep many guards, and have to forget some.
func (g *Guard) Idle() bool {
	return g.inForce().idle(clock.Now())
}

// earned is what the guard's own budget holds.
func (g *Guard) earned() float64 {
	if b := g.current.Load().budget; b != nil {
		return b.Balance(clock.Now())
	}
	return 0
}

// Update puts another policy in force, in all guards that there are and will be. They keep their state, as with
// Guard.Update. An invalid policy changes nothing.
func (s *Guards[K]) Update(p Policy) error {
	trial, err := New(s.overflow.name, p)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.policy, s.fresh = p.clone(), trial.earned()
	all := make([]*keyedGuard[K], 0, s.byUse.Len()+1)
	all = append(all, &keyedGuard[K]{guard: s.overflow}) // first: others may draw from its budget
	for e := s.byUse.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*keyedGuard[K]))
	}
	s.mu.Unlock()
	for _, k := range all { // without the lock: their observers may ask for guards
		k.guard.change(clock.Now(), "", func() { k.guard.written = s.latest(k) })
	}
	return nil
}

// latest is k's policy in force: of two Updates at once each guard ends under the later one, whichever comes to it
// first.
func (s *Guards[K]) latest(k *keyedGuard[K]) Policy {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.policyOf(k).clone()
}

// Len returns how many guards there are, without the overflow.
func (s *Guards[K]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byUse.Len()
}
