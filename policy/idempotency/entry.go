package idempotency

import "time"

// entry is what is remembered of one key.
type entry struct {
	key          string
	fp           Fingerprint
	token        uint64        // of the try that holds the key, or held it last
	lease        time.Duration // until when, while it is not done
	due          time.Duration // when it is forgotten
	answer       []byte        // once done, as long as there is room for it; never changed
	older, newer *entry        // in the list of those with an answer
	at           int           // in the heap
	status       int           // of the answer, once done
	takenOver    bool          // a try before this one never ended
	done         bool
}

// answerList is a ring of the entries that have an answer, in the order in which they got it.
type answerList struct{ root entry }

func (l *answerList) init() { l.root.older, l.root.newer = &l.root, &l.root }

func (l *answerList) empty() bool { return l.root.newer == &l.root }

// oldest is the root if the list is empty.
func (l *answerList) oldest() *entry { return l.root.newer }

// push adds e as the newest.
func (l *answerList) push(e *entry) {
	e.older, e.newer = l.root.older, &l.root
	e.older.newer, e.newer.older = e, e
}

func (l *answerList) remove(e *entry) {
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
