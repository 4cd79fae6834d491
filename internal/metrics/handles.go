package metrics

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// handles are the counters of things that come by a key, one of a bounded number. Finding those that are there takes no
// lock.
type handles[K comparable, T any] struct {
	resolve func(K) *T
	// full is what a key counts as once there are max of them.
	full func(K) K
	max  int

	known atomic.Pointer[map[K]*T] // never changed, but replaced
	mu    sync.Mutex               // of those who replace it
}

func (h *handles[K, T]) of(key K) *T {
	if known := h.known.Load(); known != nil {
		if t := (*known)[key]; t != nil {
			return t
		}
	}
	return h.first(key)
}

// first resolves a key that was not met before.
func (h *handles[K, T]) first(key K) *T {
	h.mu.Lock()
	defer h.mu.Unlock()
	next := map[K]*T{}
	if known := h.known.Load(); known != nil {
		if len(*known) >= h.max && (*known)[key] == nil {
			key = h.full(key)
		}
		if t := (*known)[key]; t != nil {
			return t
		}
		maps.Copy(next, *known)
	}
	t := h.resolve(key)
	next[key] = t
	h.known.Store(&next)
	return t
}

// keys lists what was met.
func (h *handles[K, T]) keys() []K {
	known := h.known.Load()
	if known == nil {
		return nil
	}
	return slices.Collect(maps.Keys(*known))
}
