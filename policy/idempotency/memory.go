package idempotency

import (
	"container/heap"
	"context"
	"math"
	"strings"
	"sync"
	"time"
)

// What a key costs besides its bytes and its answer. TestBytesAreTheTruth compares with what the runtime says.
const (
	entryBytes = 144
	slotBytes  = 64 + 24 // in the map, which is half empty when it has just grown, and in the heap, which is copied when it grows
)

// A call forgets at most so many expired keys, and drops at most so many answers to make room. The memory of that many is
// more than the largest key takes.
const (
	forgetsPerCall = 16
	dropsPerCall   = 128
)

// Memory is a Store for one process, in as much memory as it was given; the package's comment says what happens when that
// is full. Keys expire in the calls of others, a few in each, so nothing runs in the background. All methods are safe for
// concurrent use: one mutex, held for about a microsecond.
type Memory struct {
	now func() time.Duration

	mu        sync.Mutex // guards what follows
	max, used int64
	slots     int // the most entries there ever were: neither map nor heap shrink
	entries   map[string]*entry
	due       dueHeap
	answers   answerList
	token     uint64
}

// NewMemory returns a store that takes up at most maxBytes, keys, answers and what the store itself needs counted: see
// Config.MaxMemory. now is the time since a fixed origin, such as abate.Now; one that goes backwards makes keys live longer.
func NewMemory(maxBytes int64, now func() time.Duration) *Memory {
	m := &Memory{now: now, max: maxBytes, entries: make(map[string]*entry)}
	m.answers.init()
	return m
}

var _ Store = (*Memory)(nil)

// Reconfigure changes how much memory the store may take. No key is forgotten for it: a store that is over the new bound
// drops answers, the oldest first, and takes no further keys until it is below.
func (m *Memory) Reconfigure(maxBytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.max = maxBytes
	for m.used > m.max && !m.answers.empty() {
		m.drop(m.answers.oldest())
	}
}

// Bytes is the memory in use. It is never above what NewMemory or Reconfigure was given, unless Reconfigure lowered it.
func (m *Memory) Bytes() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// Len is the number of keys remembered, those included that have expired and not been met since.
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
		if e = m.add(key, fp); e == nil {
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
	return m.held(ctx, key, token, func(e *entry, now time.Duration) {
		e.done, e.status = true, r.Status
		m.expireAt(e, after(now, retention))
		if size := int64(cap(answer)); size > 0 && m.room(size) {
			e.answer = answer
			m.used += size
			m.answers.push(e)
		}
	})
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
func (m *Memory) add(key string, fp Fingerprint) *entry {
	size := keyBytes(key)
	if len(m.entries) == m.slots {
		size += slotBytes
	}
	if !m.room(size) {
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

// forget removes all about e.
func (m *Memory) forget(e *entry) {
	if e.answer != nil {
		m.drop(e)
	}
	delete(m.entries, e.key)
	heap.Remove(&m.due, e.at)
	m.used -= keyBytes(e.key)
}

// drop lets e's answer go, not e.
func (m *Memory) drop(e *entry) {
	m.answers.remove(e)
	m.used -= int64(cap(e.answer))
	e.answer = nil
}

// room makes room for size bytes, by dropping the oldest answers if need be. If a few are not enough it drops none.
func (m *Memory) room(size int64) bool {
	free := m.max - m.used
	e := m.answers.oldest()
	for n := 0; free < size; n++ {
		if n == dropsPerCall || e == &m.answers.root {
			return false
		}
		free += int64(cap(e.answer))
		e = e.newer
	}
	for m.max-m.used < size {
		m.drop(m.answers.oldest())
	}
	return true
}

// hold sets the end of e's lease.
func (m *Memory) hold(e *entry, lease time.Duration) {
	e.lease = lease
	m.expireAt(e, after(lease, Abandoned))
}

// expireAt sets when e is forgotten.
func (m *Memory) expireAt(e *entry, due time.Duration) {
	e.due = due
	heap.Fix(&m.due, e.at)
}
