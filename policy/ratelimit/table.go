package ratelimit

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// table keeps the buckets of all keys but the empty one. A key is its hash: 64 bits with a seed.
//
// A bucket that is full is as good as one that is not kept. Such buckets, and no others, are dropped: when another key
// needs the slot, when a shard has to grow, and, once MaxKeys are kept, a few with each new key.
type table struct {
	keys   atomic.Int64  // slots in use
	shared atomic.Int64  // requests that found no place
	hand   atomic.Uint32 // the shard where sweep goes on
	_      [40]byte
	shards [shards]shard
}

const shards = 256

func newTable(s *settings) *table {
	t := &table{}
	for i := range t.shards {
		t.shards[i].s = s
	}
	return t
}

// hashOf is never 0, which stands for no bucket.
func hashOf(seed maphash.Seed, key string) uint64 { return max(maphash.String(seed, key), 1) }

// take is settings.take for the bucket of hash, with the settings that it was done with. False means that there is no
// bucket and no place for one.
func (t *table) take(hash, own uint64, cost float64, maxWait time.Duration) (a answer, s *settings, ok bool) {
	h := &t.shards[hash%shards]
	h.mu.Lock()
	s = h.s
	x := max(own, h.seen)
	b, found := h.find(hash)
	tat := uint64(0)
	if found {
		tat = b.tat
	}
	price := s.price(cost)
	a, ok = s.take(x, own, tat, price, maxWait), true
	if !a.over && price != 0 {
		if a.full == a.earned+price {
			h.seen = x
		}
		if found {
			b.tat = a.full
		} else {
			ok = t.put(h, x, slot{hash, a.full})
		}
	}
	h.mu.Unlock()
	return a, s, ok
}

// put adds a bucket that is not there, at time x. False means that there is no place.
func (t *table) put(h *shard, x uint64, b slot) bool {
	if t.keys.Load() <= h.s.maxKeys { // which may have been lowered
		if spare := h.findSpare(b.hash, x); spare != nil {
			*spare = b
			return true
		}
	}
	if t.keys.Add(1) > h.s.maxKeys {
		t.keys.Add(-1)
		return false
	}
	if (h.used+1)*8 > len(h.lines)*perLine*7 {
		t.keys.Add(int64(-h.grow(x)))
	}
	empty, _ := h.find(b.hash)
	*empty = b
	h.used++
	return true
}

// sweep looks through a few slots for buckets that are not needed and reports whether it dropped one. Every slot's time
// comes within shards + slots/64 calls; if there are no more than 64, within one.
func (t *table) sweep(own uint64) bool {
	dropped := 0
	for looked, n := 0, 0; looked < 16 && n < shards && dropped == 0; n++ {
		h := &t.shards[t.hand.Add(1)%shards]
		h.mu.Lock()
		lines := min(16, len(h.lines))
		dropped = h.sweep(max(own, h.seen), lines)
		looked += lines
		h.mu.Unlock()
	}
	t.keys.Add(int64(-dropped))
	return dropped > 0
}

// reconfigure carries all buckets over to s, one shard after the other.
func (t *table) reconfigure(s *settings, own uint64) {
	for i := range t.shards {
		h := &t.shards[i]
		h.mu.Lock()
		if !s.sameBucket(h.s) {
			h.adopt(s, max(own, h.seen))
		}
		h.s = s
		h.mu.Unlock()
	}
}
