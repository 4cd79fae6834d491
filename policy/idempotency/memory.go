package idempotency

import (
	"container/heap"
	"context"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// What a key costs besides its bytes and its answer. TestBytesAreTheTruth compares with what the runtime says.
const (
	entryBytes = 144
	// in the map, which is half empty when it has just grown, and in the heap, which is copied when it grows
	slotBytes = 64 + 24
)

// A call forgets at most so many expired keys, and drops at most so many answers to make room. The memory of that many
// is more than the largest key takes.
const (
	forgetsPerCall = 16
	dropsPerCall   = 128
)

// Memory is a Store for one process, in a bounded amount of memory; the package comment says what happens when that is
// full. Keys expire in the calls of others, a few in each, so nothing runs in the background. All methods are safe for
// concurrent use: one mutex, held for about a microsecond.
type Memory struct {
	now func() time.Duration

	mu        sync.Mutex // guards what follows
	max, used int64
	slots     int // the most entries there ever were: neither map nor heap shrink
	entries   map[string]*entry
	due       dueHeap
	done      doneList
	token     uint64
	floor     time.Duration // how long a finished key is kept at least; above all others: its whole retention
	early     Shortened     // what was forgotten early
	report    func(Shortened)

	unreported atomic.Bool // something was forgotten early, and report has not been called for it
}

// NewMemory returns a store that takes up at most maxBytes, keys, answers and what the store itself needs counted: see
// Config.MaxMemory. now is the time since a fixed origin, such as core.Now. If it goes backwards, keys live longer.
func NewMemory(maxBytes int64, now func() time.Duration) *Memory {
	m := &Memory{now: now, max: maxBytes, entries: make(map[string]*entry), floor: math.MaxInt64}
	m.done.init()
	return m
}

var _ Store = (*Memory)(nil)

// Reconfigure changes how much memory the store may take. No key is forgotten for that. A store that is above the new
// bound drops answers, the oldest first, and accepts no further keys until it is below.
func (m *Memory) Reconfigure(maxBytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.max = maxBytes
	for e := m.done.answer; m.used > m.max && e != &m.done.root; e = e.newer {
		if e.answer != nil {
			m.drop(e)
		}
	}
}

// Shorten sets how long a finished key is remembered at least (see Config.Floor). A store that is full forgets those
// that are older to make room for others, the oldest first, and calls report after the call in which it did, outside of
// its lock; nil for nobody. Without a call of Shorten no key is forgotten early.
func (m *Memory) Shorten(floor time.Duration, report func(Shortened)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.floor, m.report = floor, report
}

// Usage implements Measured.
func (m *Memory) Usage() Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := Usage{Keys: int64(len(m.entries)), Bytes: m.used, MaxBytes: m.max,
		MaxKeys: m.max / (keyBytes(sampleKey) + slotBytes), Shortened: m.early}
	if e := m.done.oldest(); e != nil {
		u.Oldest = max(m.now()-e.lease, 0)
	}
	return u
}

// Bytes returns the memory in use. It is never above what NewMemory or Reconfigure was given, unless Reconfigure
// lowered it.
func (m *Memory) Bytes() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// Len returns the number of keys remembered, including those that have expired and have not been removed yet.
func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.entries)
}

// Begin implements Store.
func (m *Memory) Begin(ctx context.Context, key string, fp Fingerprint, lease time.Duration) (Begun, error) {
	if err := check(ctx, key); err != nil {
		return Begun{}, err
	}
	begun, answer, err := m.begin(key, fp, lease)
	m.reportEarly()
	if err == nil && answer != nil {
		begun.Response, err = ParseResponse(answer)
	}
	return begun, err
}

// begin returns the answer as it is stored, so that it is read outside the lock.
func (m *Memory) begin(key string, fp Fingerprint, lease time.Duration) (begun Begun, answer []byte, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	m.expire(now)
	e := m.entries[key]
	if e != nil && e.due <= now {
		m.forget(e)
		e = nil
	}
	switch {
	case e == nil:
		if e = m.add(key, fp, now); e == nil {
			return Begun{}, nil, ErrFull
		}
	case e.fp != fp:
		return Begun{State: Mismatch}, nil, nil
	case e.done:
		return Begun{State: Replay, Response: Response{Status: e.status, Truncated: true}}, e.answer, nil
	case e.lease > now:
		return Begun{State: Running, Lease: e.lease - now}, nil, nil
	default:
		e.takenOver = true
	}
	m.token++
	e.token = m.token
	m.hold(e, after(now, lease))
	return Begun{State: Run, Token: e.token, TakenOver: e.takenOver}, nil, nil
}

// Renew implements Store.
func (m *Memory) Renew(ctx context.Context, key string, token uint64, lease time.Duration) error {
	return m.held(ctx, key, token, func(e *entry, now time.Duration) { m.hold(e, after(now, lease)) })
}

// Complete implements Store.
func (m *Memory) Complete(ctx context.Context, key string, token uint64, r Response, retention time.Duration) error {
	var answer []byte
	if !r.Truncated {
		answer = r.AppendTo(nil)
	}
	if err := check(ctx, key); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	m.expire(now)
	e := m.entries[key]
	if e == nil || e.token != token || token == 0 {
		return ErrLost
	}
	if e.done && (e.answer != nil || answer == nil) {
		return nil // what was stored stays
	}
	size := int64(cap(answer))
	fits := size > 0 && m.room(size)
	if e.done && !fits {
		return nil
	}
	if e.done {
		m.done.remove(e) // it is the newest again
	}
	e.done, e.status, e.lease = true, r.Status, now
	m.expireAt(e, after(now, retention))
	if fits {
		e.answer = answer
		m.used += size
	}
	m.done.push(e)
	return nil
}

// Fail implements Store.
func (m *Memory) Fail(ctx context.Context, key string, token uint64) error {
	return m.held(ctx, key, token, func(e *entry, now time.Duration) {
		if !e.takenOver {
			m.forget(e)
			return
		}
		e.token = 0 // nobody's
		m.hold(e, now)
	})
}

// held calls do with the entry of a key that token holds.
func (m *Memory) held(ctx context.Context, key string, token uint64, do func(e *entry, now time.Duration)) error {
	if err := check(ctx, key); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	m.expire(now)
	e := m.entries[key]
	if e == nil || e.done || e.token != token || token == 0 {
		return ErrLost
	}
	do(e, now)
	return nil
}

// check is what every method begins with.
func check(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return CheckKey(key)
}

// after is now + d without overflow. A negative d is none.
func after(now, d time.Duration) time.Duration {
	return now + min(max(d, 0), math.MaxInt64-max(now, 0))
}

// expire forgets a few of the keys whose time is over. A call adds one key at most, so they cannot pile up.
func (m *Memory) expire(now time.Duration) {
	for range forgetsPerCall {
		if len(m.due) == 0 || m.due[0].due > now {
			return
		}
		m.forget(m.due[0])
	}
}

// add makes an entry for key, or returns nil if there is no room for it.
func (m *Memory) add(key string, fp Fingerprint, now time.Duration) *entry {
	size := keyBytes(key)
	if len(m.entries) == m.slots {
		size += slotBytes
	}
	if !m.room(size) && !m.shorten(size, now) {
		return nil
	}
	m.used += size
	e := &entry{key: strings.Clone(key), fp: fp, due: math.MaxInt64}
	m.entries[e.key] = e
	heap.Push(&m.due, e)
	m.slots = max(m.slots, len(m.entries))
	return e
}

// keyBytes is what key costs while it is remembered. The allocator rounds up.
func keyBytes(key string) int64 { return entryBytes + int64(len(key)+len(key)/8+16) }

func (m *Memory) forget(e *entry) {
	if e.answer != nil {
		m.drop(e)
	}
	if e.done {
		m.done.remove(e)
	}
	delete(m.entries, e.key)
	heap.Remove(&m.due, e.at)
	m.used -= keyBytes(e.key)
}

// drop lets e's answer go, not e.
func (m *Memory) drop(e *entry) {
	m.used -= int64(cap(e.answer))
	e.answer = nil
}

// room makes room for size bytes, by dropping the oldest answers if need be. If a few are not enough it drops none.
func (m *Memory) room(size int64) bool {
	free := m.max - m.used
	if free >= size {
		return true
	}
	for n := 0; n < dropsPerCall && m.done.answer != &m.done.root && m.done.answer.answer == nil; n++ {
		m.done.answer = m.done.answer.newer
	}
	e := m.done.answer
	for n := 0; free < size; n++ {
		if n == dropsPerCall || e == &m.done.root {
			return false
		}
		free += int64(cap(e.answer))
		e = e.newer
	}
	for e := m.done.answer; m.max-m.used < size; e = e.newer {
		if e.answer != nil {
			m.drop(e)
		}
	}
	return true
}

// shorten makes room for size bytes, which no answer makes, by forgetting the finished keys that are oldest, if it may.
func (m *Memory) shorten(size int64, now time.Duration) bool {
	for range forgetsPerCall {
		e := m.done.oldest()
		if e == nil || now-e.lease < m.floor {
			return false
		}
		m.early.Keys++
		m.early.Held = now - e.lease
		m.unreported.Store(true)
		m.forget(e)
		if m.max-m.used >= size {
			return true
		}
	}
	return false
}

// reportEarly reports what was forgotten early, if there is anything that has not been reported.
func (m *Memory) reportEarly() {
	if !m.unreported.Load() || !m.unreported.CompareAndSwap(true, false) {
		return
	}
	m.mu.Lock()
	report, early := m.report, m.early
	m.mu.Unlock()
	if report != nil {
		report(early)
	}
}

func (m *Memory) hold(e *entry, lease time.Duration) {
	e.lease = lease
	m.expireAt(e, after(lease, Abandoned))
}

// expireAt sets when e is forgotten.
func (m *Memory) expireAt(e *entry, due time.Duration) {
	e.due = due
	heap.Fix(&m.due, e.at)
}
