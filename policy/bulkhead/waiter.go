package bulkhead

import "time"

// Waiter is one caller that waits for a permit. The driver allocates it when
// [Bulkhead.TryAcquire] failed. It is used for one wait and never again, because a Wake
// may still be on its way after [Bulkhead.Abandon].
type Waiter struct {
	// Wake is called once when the caller has been given a permit, by whoever gave it
	// back, in its goroutine and under no lock. It should only signal: send to a buffered
	// channel, or schedule an event. It may be called while Enqueue or Abandon has not
	// returned yet. It may be nil.
	Wake func()
	// Until is when its time is up, on the clock of Enqueue. The driver owns the timer; the
	// bulkhead looks who is running out of time.
	Until time.Duration
	// Again says that the call has had a permit before: see Pause. It goes before those that
	// have had none, whatever the length of the queue.
	Again bool

	since      time.Duration
	prev, next *Waiter // towards the oldest, towards the newest
	queued     bool
}

// queue is a list of waiters. Guarded by the bulkhead's lock.
type queue struct{ oldest, newest *Waiter }

func (q *queue) push(w *Waiter) {
	w.prev, w.queued = q.newest, true
	if w.prev != nil {
		w.prev.next = w
	} else {
		q.oldest = w
	}
	q.newest = w
}

func (q *queue) remove(w *Waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		q.oldest = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		q.newest = w.prev
	}
	w.prev, w.next, w.queued = nil, nil, false
}
