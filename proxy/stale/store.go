package stale

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/abate-go/abate/proxy/h1"
)

const (
	maxEntry    = 1 << 20
	maxVariants = 8
)

// Store keeps the last good response of each resource, in as much memory as it was given. When that is full, the
// response that was neither renewed nor given for the longest time goes. All methods are safe for concurrent use.
type Store struct {
	entryMax, keptMax, pendingMax int64

	mu        sync.Mutex // guards what follows
	resources map[string]*resource
	places    map[string]*resource // by the part of their keys that AppendKey wrote: the first of those that have it
	kept      list                 // front: most recently stored or given
	pending   list                 // of recorders; front: most recently written
	touches   uint64
}

// resource is what one key leads to.
type resource struct {
	key      string
	place    string     // the part of it that AppendKey wrote
	next     *resource  // with the same place
	vary     string     // of all variants: a response with another Vary replaces them all
	variants []*variant // newest first
}

// New returns a store that takes up at most maxBytes, a quarter of it for responses under way. Keys, fields and what
// the store itself needs are counted. One response takes at most maxBytes/16, and at most 1 MiB; a store of less than
// about 16 KiB therefore keeps nothing.
func New(maxBytes int64) *Store {
	maxBytes = max(maxBytes, 0)
	s := &Store{
		entryMax: min(maxBytes/16, maxEntry), keptMax: maxBytes - maxBytes/4, pendingMax: maxBytes / 4,
		resources: make(map[string]*resource), places: make(map[string]*resource),
	}
	s.kept.init()
	s.pending.init()
	return s
}

// Entry is a response from the store. Fields and Body are shared with everybody who gets the same one: nobody may
// change them.
type Entry struct {
	// Status is always 200.
	Status int
	// Fields are the response's without those about one connection or message: Connection and what it names,
	// Transfer-Encoding, Trailer, Content-Length, Age and their like. Whoever sends the response adds Content-Length,
	// which is len(Body) also in answer to HEAD, and Age; a response that came without Date is kept without.
	Fields []h1.Field
	// Body is complete and as it was sent, Content-Encoding included.
	Body []byte
	// Age is for the field of this name, in whole seconds: how long ago the response was received, plus the age that it
	// had then (RFC 9111 section 4.2.3).
	Age time.Duration
}

// Get returns the response to a request with this key and these fields that was received at most maxAge before now,
// unless the response itself asks not to be used for so long. now is on the same clock as in Commit. Neither body nor
// fields are copied.
func (s *Store) Get(key []byte, requestFields []h1.Field, now, maxAge time.Duration) (*Entry, bool) {
	var e Entry // here and not in get, so that it need not be on the heap
	if !s.get(&e, key, requestFields, now, maxAge) {
		return nil, false
	}
	return &e, true
}

func (s *Store) get(e *Entry, key []byte, requestFields []h1.Field, now, maxAge time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	res := s.resources[string(key)]
	if res == nil {
		return false
	}
	var room [256]byte
	v := res.find(appendSelection(room[:0], res.vary, requestFields))
	if v == nil {
		return false
	}
	since := max(now-v.received, 0)
	if since > maxAge || since >= v.usable {
		return false
	}
	s.kept.remove(v)
	s.kept.push(v)
	*e = Entry{Status: 200, Fields: slices.Clip(v.fields), Body: slices.Clip(v.body), Age: since + v.age}
	return true
}

// find returns the variant for requests with this selection, nil if there is none.
func (r *resource) find(selection []byte) *variant {
	for _, v := range r.variants {
		if bytes.Equal(v.selection, selection) {
			return v
		}
	}
	return nil
}

// Forget removes all that is kept under a key: when the service itself answers a GET with a definite no (401, 403, 404,
// 410), or with something that may not be kept. A response under way is not stopped.
func (s *Store) Forget(key []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if res := s.resources[string(key)]; res != nil {
		s.remove(res)
	}
}

// ForgetAll removes all that is kept of the resource that a key begins with, whosever it is: after a POST, PUT, PATCH
// or DELETE that did not fail (RFC 9111 section 4.4). A response under way is not stopped.
func (s *Store) ForgetAll(key []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	place := key[:placeOf(key)]
	for res := s.places[string(place)]; res != nil; res = s.places[string(place)] {
		s.remove(res)
	}
}

func (s *Store) add(v *variant) *resource {
	res := &resource{key: v.key, vary: v.vary}
	res.place = res.key[:placeOf([]byte(res.key))]
	res.next = s.places[res.place]
	s.resources[res.key], s.places[res.place] = res, res
	return res
}

// remove takes a resource away, with its variants.
func (s *Store) remove(res *resource) {
	s.clear(res)
	delete(s.resources, res.key)
	first := s.places[res.place]
	if first != res {
		for first.next != res {
			first = first.next
		}
		first.next = res.next
		return
	}
	delete(s.places, res.place) // with its key, which lies in the resource that goes
	if next := res.next; next != nil {
		s.places[next.place] = next
	}
}

// keep makes v the response to requests like the one it answered, unless a later one is there already.
func (s *Store) keep(v *variant) {
	res := s.resources[v.key]
	switch {
	case res == nil:
		res = s.add(v)
	case res.vary != v.vary:
		if slices.ContainsFunc(res.variants, func(o *variant) bool { return o.received > v.received }) {
			return
		}
		s.clear(res)
		res.vary = v.vary
	}
	if same := res.find(v.selection); same != nil {
		if same.received > v.received {
			return
		}
		s.detach(same)
	} else if len(res.variants) == maxVariants {
		s.detach(res.variants[maxVariants-1])
	}
	v.of, v.key, v.vary = res, res.key, res.vary
	res.variants = slices.Insert(res.variants, 0, v)
	s.kept.push(v)
	for s.kept.bytes > s.keptMax {
		last := s.kept.last()
		if s.detach(last); len(last.of.variants) == 0 {
			s.remove(last.of)
		}
	}
}

// detach takes v away from what is kept. Its resource may then be without variants.
func (s *Store) detach(v *variant) {
	s.kept.remove(v)
	v.of.variants = slices.DeleteFunc(v.of.variants, func(o *variant) bool { return o == v })
}

// clear takes away all variants of a resource.
func (s *Store) clear(res *resource) {
	for _, v := range res.variants {
		s.kept.remove(v)
	}
	res.variants = nil
}

// Bytes is the memory in use, of responses kept and under way. It is never above what New was given.
func (s *Store) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept.bytes + s.pending.bytes
}

// Len is the number of responses kept.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept.len
}
