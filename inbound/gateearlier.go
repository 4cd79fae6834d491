package inbound

import (
	"reflect"
	"slices"
	"time"

	"github.com/abate-go/abate/policy/idempotency"
)

// earlierStore is where a gate kept its idempotency keys before an Update, and until when something may be found there.
type earlierStore struct {
	store idempotency.Store
	until time.Duration
}

// EarlierStores returns where the gate kept its idempotency keys before Updates that moved them elsewhere, for as long
// as what was stored there is to be remembered. Drivers ask there first: what was done must not be done again because a
// policy has changed. As a rule there are none.
func (g *Gate) EarlierStores(now time.Duration) (stores []idempotency.Store) {
	for _, e := range g.inForce().earlier {
		if now < e.until {
			stores = append(stores, e.store)
		}
	}
	return stores
}

// earlierThan returns the stores that came before s, whose store is settled.
func (s *gateSettings) earlierThan(before *gateSettings, now time.Duration) (all []earlierStore) {
	if before == nil {
		return nil
	}
	all = slices.Clone(before.earlier)
	if _, none := before.store.(noStore); before.store != nil && !none {
		all = append(all, earlierStore{before.store, now + before.protection.Idempotency.Retention})
	}
	return slices.DeleteFunc(all, func(e earlierStore) bool { return now >= e.until || sameStore(e.store, s.store) })
}

// sameStore reports whether two stores hold the same keys: they are the same value, or one of them says so by a method
// SameKeys. Those that cannot be compared are taken for the same.
func sameStore(a, b idempotency.Store) bool {
	if s, ok := a.(interface {
		SameKeys(idempotency.Store) bool
	}); ok {
		return s.SameKeys(b)
	}
	if b == nil || reflect.TypeOf(a) != reflect.TypeOf(b) {
		return false
	}
	return !reflect.TypeOf(a).Comparable() || a == b
}
