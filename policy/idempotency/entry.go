package idempotency

import "time"

// entry is what is remembered of one key.
type entry struct {
	key          string
	fp           Fingerprint
	token        uint64        // of the attempt that holds the key, or held it last
	lease        time.Duration // until when, while it is not done; then when it was done
	due          time.Duration // when it is forgotten
	answer       []byte        // once done, as long as there is room for it; never changed
	older, newer *entry        // in the list of those that are done
	at           int           // in the heap
	status       int           // of the answer, once done
	takenOver    bool          // an attempt before this one never ended
	done         bool
}

// doneList is a ring of the entries that are done, in the order in which they were. Those that have lost their answer
// come before those that have one, but for some that never got any.
type doneList struct {
	root   entry
	answer *entry // no entry before it has an answer; the root if none has
}

func (l *doneList) init() { l.root.older, l.root.newer, l.answer = &l.root, &l.root, &l.root }

// oldest is the one that was done first; nil if none is.
func (l *doneList) oldest() *entry {
	if l.root.newer == &l.root {
		return nil
	}
	return l.root.newer
}

// push adds e as the newest.
func (l *doneList) push(e *entry) {
	e.older, e.newer = l.root.older, &l.root
	e.older.newer, e.newer.older = e, e
	if l.answer == &l.root {
		l.answer = e
	}
}

func (l *doneList) remove(e *entry) {
	if l.answer == e {
		l.answer = e.newer
	}
	e.older.newer, e.newer.older = e.newer, e.older
	e.older, e.newer = nil, nil
}

// dueHeap has all entries, the one that is forgotten next on top. It implements heap.Interface.
type dueHeap []*entry

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due < h[j].due }

func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push is for package heap.
func (h *dueHeap) Push(x any) {
	e := x.(*entry)
	e.at = len(*h)
	*h = append(*h, e)
}

// Pop is for package heap.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}
