package abatekafka

import "sync"

// maxRecent is how many identities a partition of a retry topic remembers.
const maxRecent = 4096

// recent remembers the identities of the records that a partition has delivered lately, so that one that was forwarded
// twice, because somebody was killed between the forward and the commit, is delivered once. A repeat that comes later
// than that is delivered again. It is safe for concurrent use.
type recent struct {
	mu    sync.Mutex
	seen  map[string]int64 // the offset at which it came first
	order []string
	next  int
}

// note reports whether the identity stood at another offset before.
func (r *recent) note(id string, offset int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.seen[id]; ok {
		return at != offset
	}
	if r.seen == nil {
		r.seen = map[string]int64{}
	}
	if len(r.order) < maxRecent {
		r.order = append(r.order, id)
	} else {
		delete(r.seen, r.order[r.next])
		r.order[r.next] = id
		r.next = (r.next + 1) % maxRecent
	}
	r.seen[id] = offset
	return false
}
