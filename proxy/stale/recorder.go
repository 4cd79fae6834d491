package stale

import (
	"time"

	"github.com/abate-go/abate/proxy/h1"
)

// patience is how many calls of Record and Write of others a recorder may let pass without a Write of its own before
// others may take its memory: it is abandoned, or feeds a client so slow that its response would be old when complete.
// With less, many clients at once would push each other's recorders out and few would ever be complete.
const patience = 1024

// Recorder collects the body of a response on its way to the client. It belongs to one goroutine at a time. One that is
// neither committed nor dropped holds its memory, which counts, until others need it. A nil Recorder, and one that gave
// up, does nothing.
type Recorder struct {
	store   *Store
	variant *variant // nil after the end
	length  int64    // that the response announced, -1 if it did not
}

// Record begins to keep the response to a request that may fill the store (see Asks); it is nil if the response may not
// be kept (see Keeps) or there is no room. Everything is copied. Fields about the connection and framing may be among
// those given: they are left out.
//
// Recording 1 KiB takes about 2 µs and as much memory again. Get with a maxAge of a second tells in a tenth of that
// whether there is one so new that another is not worth it.
func (s *Store) Record(key []byte, requestFields []h1.Field, status int, fields []h1.Field) *Recorder {
	t, ok := examine(status, fields)
	if !ok || t.length > s.entryMax {
		return nil
	}
	v := newVariant(key, requestFields, fields, &t)
	if v.cost+max(t.length, 0) > s.entryMax {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touch(v)
	if !s.reserve(v, v.cost+max(t.length, 0), s.pendingMax/2) { // the other half is for those that grow
		return nil
	}
	s.pending.push(v)
	return &Recorder{store: s, variant: v, length: t.length}
}

// Write adds a piece of the body, which it copies. When the body grows beyond what the store takes, or beyond its
// Content-Length, or when memory is short, the recorder gives up.
func (r *Recorder) Write(p []byte) {
	if r == nil || r.variant == nil {
		return
	}
	s, v := r.store, r.variant
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.next == nil { // another recorder has taken its place
		r.variant = nil
		return
	}
	s.pending.remove(v)
	s.touch(v)
	if !r.grow(len(p)) {
		r.variant = nil
		return
	}
	v.body = append(v.body, p...)
	s.pending.push(v)
}

// grow makes room for n more bytes of the body.
func (r *Recorder) grow(n int) bool {
	s, v := r.store, r.variant
	need := int64(len(v.body)) + int64(n)
	if r.length >= 0 && need > r.length {
		return false
	}
	have := int64(cap(v.body))
	if need <= have {
		return true
	}
	most := s.entryMax - (v.cost - have)
	if need > most {
		return false
	}
	want := max(need, r.length)
	if have > 0 {
		want = max(want, min(2*have, fitting(most)))
	}
	body := append(sized(int(want)), v.body...)
	more := int64(cap(body)) - have
	if v.cost+more > s.entryMax || !s.reserve(v, v.cost+more, s.pendingMax) {
		return false
	}
	v.body = body
	v.cost += more
	return true
}

// touch notes that v's recorder is at work.
func (s *Store) touch(v *variant) {
	s.touches++
	v.touched = s.touches
}

// reserve makes room for v, which costs so much and is not on the list, so that the responses under way take at most
// most.
func (s *Store) reserve(v *variant, cost, most int64) bool {
	for s.pending.bytes+cost > most {
		last := s.pending.last()
		if last == nil || v.touched-last.touched < patience {
			return false
		}
		s.pending.remove(last)
		last.fields, last.selection, last.body = nil, nil, nil // its recorder may live on
	}
	return true
}

// Commit keeps the response: the caller has seen its end, and Write got all of it. A body shorter than its
// Content-Length is not kept. received is when the head of the response arrived (not the end of the body, which a slow
// client may put off: the response would seem newer than it is), and a response received later is not replaced.
func (r *Recorder) Commit(received time.Duration) {
	v := r.end()
	if v == nil || r.length >= 0 && int64(len(v.body)) != r.length {
		return
	}
	if cap(v.body)-len(v.body) > max(64, len(v.body)/8) { // it came in pieces
		v.body = append([]byte(nil), v.body...)
		v.cost = v.weigh()
	}
	v.received = received
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	r.store.keep(v)
}

// Drop gives the memory back at once. After Commit it does nothing, so that it may be deferred.
func (r *Recorder) Drop() { r.end() }

// end takes the response out of those under way. It is nil if it was there no more.
func (r *Recorder) end() *variant {
	if r == nil || r.variant == nil {
		return nil
	}
	s, v := r.store, r.variant
	r.variant = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.next == nil {
		return nil
	}
	s.pending.remove(v)
	return v
}
