// Package repeats remembers calls that have failed, for adapters whose callers may retry by themselves: a call that is
// made again is known by a sign. What a sign is, the adapter knows.
//
// Who retries waits for one try to fail before he makes the next. Two calls with one sign that overlap are not from one
// who retries, so a sign that such calls have shared tells nothing any more.
package repeats

import (
	"sync"
	"sync/atomic"
	"time"
)

// For is how long a failed call is remembered, since its last attempt that was sent. A retrier that waits longer makes
// calls of their own.
const For = 30 * time.Second

// Most is how many signs of failed calls are kept. Beyond that the oldest is forgotten, and a repeat of it counts as a
// call of its own.
const Most = 1 << 13

// Memory is what is known of failed calls. The zero Memory is ready to use, by many at once. While nothing has failed
// it costs one load.
type Memory[S comparable] struct {
	n    atomic.Int32
	mu   sync.Mutex
	of   map[S]failure
	line []dated[S] // the oldest first; may name some that are gone
}

// failure is what is known of a failed call.
type failure struct {
	sent   time.Duration
	keep   any
	serial uint64
	taken  bool // its repeat is under way
	many   bool // calls with this sign have overlapped
}

type dated[S comparable] struct {
	sign   S
	serial uint64
}

// Len is how many signs are kept.
func (m *Memory[S]) Len() int { return int(m.n.Load()) }

// Take reports whether a call with these signs repeats one that has failed, and when an attempt of that was sent last.
// A failure is repeated once, so who has taken it says how that ended, with Add or Done.
func (m *Memory[S]) Take(now time.Duration, signs []S) (sent time.Duration, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range signs {
		known, found := m.of[s]
		switch {
		case !found || known.many || now-known.sent > For:
			continue
		case known.taken:
			known.many = true
		case !ok || known.sent > sent:
			sent, ok, known.taken = known.sent, true, true
		default:
			known.taken = true
		}
		m.of[s] = known
	}
	m.forget(now)
	return sent, ok
}

// Add remembers a call that has failed, of which an attempt was sent last at that time; took tells that Take has called
// it a repeat. keep is kept with it, so that its address does not become that of something else.
func (m *Memory[S]) Add(sent time.Duration, signs []S, took bool, keep any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = make(map[S]failure)
	}
	for _, s := range signs {
		serial := uint64(1)
		if len(m.line) > 0 {
			serial = m.line[len(m.line)-1].serial + 1
		}
		known, found := m.of[s]
		if found = found && sent-known.sent <= For; found {
			sent = max(sent, known.sent)
		}
		many := found && (known.many || known.taken != took)
		m.of[s] = failure{sent: sent, keep: keep, serial: serial, many: many}
		m.line = append(m.line, dated[S]{s, serial})
	}
	m.forget(sent)
}

// Done forgets the failure that Take has given to a call, which has not failed.
func (m *Memory[S]) Done(signs []S) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range signs {
		if known := m.of[s]; known.taken && !known.many {
			delete(m.of, s)
		}
	}
	m.n.Store(int32(len(m.of)))
}

// forget lets the oldest go: what was taken, what is over, and what is too much.
func (m *Memory[S]) forget(now time.Duration) {
	for len(m.line) > 0 {
		first := m.line[0]
		known, there := m.of[first.sign]
		if there = there && known.serial == first.serial; there {
			if now-known.sent <= For && len(m.line) <= Most {
				break
			}
			delete(m.of, first.sign)
		}
		m.line[0] = dated[S]{}
		m.line = m.line[1:]
	}
	m.n.Store(int32(len(m.of)))
}
